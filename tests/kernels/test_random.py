import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.random import (
    bernoulli,
    multinomial,
    random_normal,
    random_normal_like,
    random_uniform,
    random_uniform_like,
)

SHAPE = (40, 50)
HALF = np.full(SHAPE, 0.5, np.float32)
CLASSES = np.array([[0, -np.inf, np.log(3)], [-np.inf, 2, 2]], np.float32)

DRAWS = {
    "normal": lambda seed: random_normal(shape=SHAPE, seed=seed),
    "normal like": lambda seed: random_normal_like(HALF, seed=seed),
    "uniform": lambda seed: random_uniform(shape=SHAPE, seed=seed),
    "uniform like": lambda seed: random_uniform_like(HALF, seed=seed),
    "bernoulli": lambda seed: bernoulli(HALF, seed=seed),
    "multinomial": lambda seed: multinomial(CLASSES, sample_size=200, seed=seed),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
class TestSeeds:
    def test_a_seed_gives_the_same_numbers_each_time(self, draw):
        assert np.array_equal(draw(1.5), draw(1.5))
        assert np.array_equal(draw(-0.0), draw(-0.0))

    def test_seeds_differ_in_every_bit(self, draw):
        seeds = [0.0, -0.0, 0.25, 0.5, -0.5, float("nan")]
        drawn = [draw(seed).tobytes() for seed in seeds]
        assert len(set(drawn)) == len(seeds)

    def test_without_a_seed_every_run_draws_afresh(self, draw):
        assert not np.array_equal(draw(None), draw(None))

    def test_the_global_generator_is_left_alone(self, draw):
        before = np.random.get_state()[1].tobytes()
        draw(None)
        draw(1.0)
        assert np.random.get_state()[1].tobytes() == before


def test_numbers_do_not_change_from_release_to_release():
    assert random_uniform(shape=(3,), seed=1.0).tolist() == pytest.approx(
        [0.975279, 0.520139, 0.351427], abs=1e-6
    )
    assert random_normal(shape=(3,), seed=1.0, dtype=11).tolist() == pytest.approx(
        [0.34733, -0.714001, -0.807788], abs=1e-6
    )
    assert bernoulli(HALF[0, :8], seed=1.0).tolist() == [0, 0, 1, 1, 0, 0, 0, 0]


def test_moments():
    normal = random_normal(shape=(100, 100), mean=3.0, scale=2.0, seed=4.0)
    assert normal.mean() == pytest.approx(3, abs=0.1)
    assert normal.std() == pytest.approx(2, abs=0.1)
    uniform = random_uniform(shape=(100, 100), low=-2.0, high=6.0, seed=4.0)
    assert uniform.mean() == pytest.approx(2, abs=0.1)
    assert -2 <= uniform.min() < -1.9
    assert 5.9 < uniform.max() < 6


def test_moments_of_draws_like_a_tensor():
    like = np.zeros((100, 100), np.int64)
    normal = random_normal_like(like, mean=3.0, scale=2.0, seed=4.0, dtype=1)
    assert (normal.shape, normal.dtype) == (like.shape, np.float32)
    assert (
        normal.tolist() == random_normal(shape=like.shape, mean=3.0, scale=2.0, seed=4.0).tolist()
    )
    uniform = random_uniform_like(like, low=-2.0, high=6.0, seed=4.0, dtype=11)
    assert (uniform.shape, uniform.dtype) == (like.shape, np.float64)
    assert uniform.mean() == pytest.approx(2, abs=0.1)
    assert -2 <= uniform.min() < -1.9
    assert 5.9 < uniform.max() < 6


@pytest.mark.parametrize(
    ("code", "dtype"),
    [(1, np.float32), (10, np.float16), (11, np.float64), (16, ml_dtypes.bfloat16)],
)
def test_float_types(code, dtype):
    like = np.zeros((2, 0, 3), dtype)
    assert random_normal(shape=(2,), dtype=code).dtype == dtype
    assert random_uniform(shape=(2,), dtype=code).dtype == dtype
    assert random_normal_like(like).dtype == dtype
    assert random_uniform_like(np.array(["a"], object), dtype=code).dtype == dtype
    assert random_uniform_like(like).shape == like.shape
    assert isinstance(random_normal(shape=(), dtype=code), np.ndarray)
    with pytest.raises(ValueError, match="int64"):
        random_normal_like(np.zeros(2, np.int64))


def test_double_numbers_use_all_bits():
    fine = random_uniform(shape=(100,), dtype=11, seed=2.0)
    assert (fine != fine.astype(np.float32)).any()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_certain_outcomes(dtype):
    chances = np.array([[0, 1]] * 500, dtype)
    result = bernoulli(chances)
    assert result.dtype == dtype
    assert np.array_equal(result, chances)
    assert bernoulli(chances, dtype=9).dtype == np.bool_
    assert bernoulli(np.array(np.nan, dtype), dtype=7).tolist() == 0


def test_bernoulli_follows_the_probability():
    chances = np.full(10000, 0.2)
    assert bernoulli(chances, seed=3.0).mean() == pytest.approx(0.2, abs=0.02)


def test_multinomial_follows_the_weights():
    result = multinomial(CLASSES + 700, sample_size=4000, dtype=7, seed=5.0)
    assert result.dtype == np.int64
    shares = [np.bincount(row, minlength=3) / 4000 for row in result]
    assert np.allclose(shares, [[0.25, 0, 0.75], [0, 0.5, 0.5]], atol=0.03)
    assert multinomial(CLASSES).shape == (2, 1)
    assert multinomial(CLASSES).dtype == np.int32


def test_classes_without_weight_are_never_drawn():
    logits = np.array([[-np.inf, 0, -np.inf]], np.float16)
    assert set(multinomial(logits, sample_size=1000).ravel().tolist()) == {1}
