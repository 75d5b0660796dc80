import ml_dtypes
import numpy as np
import pytest

import foldline.kernels.reduction_fast
from foldline.kernels.registry import compute, find_kernel

NAMES = ("L1", "L2", "Max", "Mean", "Min", "Sum", "SumSquare")


def both(name, version, data, *inputs, **keywords):
    """Results of the fast and of the reference kernel."""
    results = []
    for grade in ("fast", "reference"):
        entry = find_kernel("", f"Reduce{name}", version, (grade,))
        assert entry is not None
        with np.errstate(all="ignore"):
            results.append(compute(entry, [data, *inputs], **keywords))
    return results


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int32]
)
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((6, 5), [1]),
        ((6, 5), [0]),
        ((6, 200), [-1]),
        ((2, 3, 4, 5), [3, 2]),
        ((2, 3, 4), [0, 2]),
        ((2, 3, 4), []),
        ((4, 1), [1]),
        ((0, 4), [1]),
        ((3, 0), [1]),
        ((2, 5000), [1]),
        ((), []),
    ],
)
@pytest.mark.parametrize("keepdims", [0, 1])
def test_agrees_with_the_reference(name, dtype, shape, axes, keepdims):
    data = (np.random.default_rng(0).normal(size=shape) * 4).astype(dtype)
    fast, reference = both(name, 18, data, np.array(axes, np.int64), keepdims=keepdims)
    assert (fast.shape, fast.dtype) == (reference.shape, reference.dtype)
    tolerance = 2**-7 if np.dtype(dtype).itemsize == 2 else 1e-5
    left, right = fast.astype(float), reference.astype(float)
    assert np.allclose(left, right, rtol=tolerance, atol=1e-4, equal_nan=True)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [3, 100])
def test_special_values(name, width):
    data = np.ones((5, width), np.float32)
    data[0, 1], data[1, 1], data[2, 1], data[3, :2] = np.nan, np.inf, -np.inf, (np.inf, -np.inf)
    fast, reference = both(name, 11, data, axes=(1,), keepdims=0)
    assert np.array_equal(fast, reference, equal_nan=True)


def test_reads_strided_tensors_and_writes_to_out():
    data = np.arange(24, dtype=np.float32).reshape(4, 6)[:, ::2]
    out = np.empty((4, 1), np.float32)
    entry = find_kernel("", "ReduceSum", 13)
    assert entry is not None
    assert entry.grade == "fast"
    assert compute(entry, [data, np.array([1])], out=out) is out
    assert out.ravel().tolist() == data.sum(1).tolist()
    dense = np.ascontiguousarray(data)
    assert compute(entry, [dense, np.array([1])], out=out) is out
    assert out.ravel().tolist() == data.sum(1).tolist()


def test_long_rows_are_summed_in_pairs():
    data = np.full((1, 1 << 20), 0.1, np.float32)
    fast, reference = both("Sum", 13, data, np.array([1]))
    assert fast.tobytes() == reference.tobytes()
    assert foldline.kernels.reduction_fast._LONGEST < data.shape[1]


@pytest.mark.parametrize("name", ["Mean", "Sum"])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_the_sum_of_one_element_has_the_bits_of_the_reference(name, keepdims):
    data = np.float32([[1.5], [-0.0], [np.nan], [-np.inf]])
    fast, reference = both(name, 11, data, axes=[1], keepdims=keepdims)
    assert fast.shape == reference.shape
    assert fast.tobytes() == reference.tobytes()
    assert not np.shares_memory(fast, data)
