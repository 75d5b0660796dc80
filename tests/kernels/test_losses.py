import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.losses import negative_log_likelihood_loss, softmax_cross_entropy_loss

X = -np.array([[1, 2, 4], [8, 16, 32]], np.float32)
TARGET = np.array([1, 2], np.int64)
WEIGHT = np.array([1, 2, 3], np.float32)


@pytest.mark.parametrize("target_type", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("reduction", "weight", "expected"),
    [
        ("none", None, [2, 32]),
        ("sum", None, 34),
        ("mean", None, 17),
        ("none", WEIGHT, [4, 96]),
        ("sum", WEIGHT, 100),
        ("mean", WEIGHT, 20),
    ],
)
def test_reductions(target_type, reduction, weight, expected):
    loss = negative_log_likelihood_loss(X, TARGET.astype(target_type), weight, reduction=reduction)
    assert type(loss) is np.ndarray
    assert loss.dtype == np.float32
    assert loss.tolist() == expected


@pytest.mark.parametrize("ignore_index", [-1, 7, 1])
def test_ignored_classes_count_nowhere(ignore_index):
    target = np.array([ignore_index, 2])
    options = {"ignore_index": ignore_index}
    loss = negative_log_likelihood_loss
    assert loss(X, target, reduction="none", **options).tolist() == [0, 32]
    assert loss(X, target, **options).tolist() == 32
    assert loss(X, target, WEIGHT, reduction="sum", **options).tolist() == 96
    assert loss(X, target, WEIGHT, **options).tolist() == 32


def test_ignored_infinities_give_zero_and_nothing_left_gives_nan():
    x = np.array([[-np.inf, -1]], np.float32)
    target = np.array([0])
    loss = negative_log_likelihood_loss
    assert loss(x, target, reduction="none", ignore_index=0).tolist() == [0]
    assert loss(x, target, reduction="sum").tolist() == np.inf
    with np.errstate(invalid="ignore"):
        assert np.isnan(loss(x, target, ignore_index=0))


def test_more_axes():
    x = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32)
    target = np.random.default_rng(1).integers(0, 3, (2, 4, 5))
    loss = negative_log_likelihood_loss(x, target, WEIGHT, reduction="none")
    for n, i, j in np.ndindex(2, 4, 5):
        c = target[n, i, j]
        assert loss[n, i, j] == -x[n, c, i, j] * WEIGHT[c]


@pytest.mark.parametrize("wrong", [-1, 3])
def test_errors(wrong):
    with pytest.raises(IndexError, match=f"class {wrong} is not one of the 3"):
        negative_log_likelihood_loss(X, np.array([0, wrong]))
    with pytest.raises(ValueError, match="reduction is 'max'"):
        negative_log_likelihood_loss(X, TARGET, reduction="max")


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_types(dtype):
    x = X.astype(dtype)
    loss = negative_log_likelihood_loss(x, TARGET, WEIGHT.astype(dtype))
    assert loss.dtype == dtype
    assert loss.astype(float) == 20
    loss, log_prob = softmax_cross_entropy_loss(x, TARGET, output_count=2)
    assert loss.dtype == log_prob.dtype == dtype


def test_half_sums_are_rounded_once():
    x = np.full((4096, 1), -1, np.float16)
    target = np.zeros(4096, np.int64)
    assert negative_log_likelihood_loss(x, target, reduction="sum") == 4096
    assert negative_log_likelihood_loss(x, target) == 1


def test_cross_entropy():
    scores = np.array([[0, 0], [1000, 0]], np.float32)
    labels = np.array([0, 1])
    loss, log_prob = softmax_cross_entropy_loss(scores, labels, reduction="none", output_count=2)
    np.testing.assert_allclose(loss, [np.log(2), 1000])
    np.testing.assert_allclose(log_prob, [[-np.log(2), -np.log(2)], [0, -1000]])
    mean = softmax_cross_entropy_loss(scores, labels, ignore_index=1)
    assert type(mean) is np.ndarray
    np.testing.assert_allclose(mean, np.log(2))
    weighted = softmax_cross_entropy_loss(scores, labels, np.array([1, 3], np.float32))
    np.testing.assert_allclose(weighted, (np.log(2) + 3000) / 4)
