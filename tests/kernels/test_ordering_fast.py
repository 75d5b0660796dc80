import ml_dtypes
import numpy as np
import pytest

from foldline.kernels import ordering, ordering_fast

FLOATS = [np.float32, np.float16, ml_dtypes.bfloat16, np.float64]
INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize(("shape", "axis", "k"), [((7,), 0, 3), ((5, 40), 1, 40), ((9, 4), 0, 0)])
def test_agrees_with_the_stable_sort(dtype, largest, shape, axis, k):
    rng = np.random.default_rng(0)
    data = rng.integers(-4, 4, shape).astype(dtype)
    if dtype in FLOATS:
        data.reshape(-1)[:5] = np.array([np.nan, -0.0, 0.0, np.inf, -np.inf], dtype)
    expected = ordering.top_k(data, np.array([k]), axis=axis, largest=largest)
    values, indices = ordering_fast.top_k(data, np.array([k]), axis=axis, largest=largest)
    assert indices.dtype == np.int64
    assert indices.tolist() == expected[1].tolist()
    assert values.dtype == dtype
    assert values.tobytes() == expected[0].tobytes()


def test_extreme_integers_keep_their_order():
    data = np.array([0, 2**32 - 1, 2**31], np.uint32)
    assert ordering_fast.top_k_1(data, k=3)[1].tolist() == [1, 2, 0]
    signed = np.array([-(2**31), 2**31 - 1, -1], np.int32)
    assert ordering_fast.top_k_1(signed, k=3)[1].tolist() == [1, 2, 0]


def test_negative_nan_is_larger_than_all_numbers():
    data = np.array([np.inf, -np.nan], np.float32)
    assert ordering_fast.top_k_1(data, k=1)[1].tolist() == [1]


def test_refuses_k_beyond_the_axis():
    with pytest.raises(ValueError, match="k is 3, but axis 0 has 2 elements"):
        ordering_fast.top_k_1(np.zeros(2, np.float32), k=3)
