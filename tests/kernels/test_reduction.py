import ml_dtypes
import numpy as np
import pytest

from foldline.kernels import reduction
from foldline.kernels.registry import compute, find_kernel

NAN, INF = np.nan, np.inf
HALVES = [np.float16, ml_dtypes.bfloat16]


def reduce(name, data, axes=None, **keywords):
    """The newest reference kernel of `Reduce<name>`, with `axes` as an input."""
    entry = find_kernel("", f"Reduce{name}", 28, ("reference",))
    assert entry is not None
    given = None if axes is None else np.array(axes, np.int64)
    with np.errstate(all="ignore"):
        return compute(entry, [data, given], **keywords)


X = np.array([[1, -2, 3], [-4, 5, 6]])
BY_NAME = {
    "L1": [6, 15],
    "L2": [14**0.5, 77**0.5],
    "LogSum": [np.log(2), np.log(7)],
    "LogSumExp": [np.log(np.exp([1, -2, 3]).sum()), np.log(np.exp([-4, 5, 6]).sum())],
    "Max": [3, 6],
    "Mean": [2 / 3, 7 / 3],
    "Min": [-2, -4],
    "Prod": [-6, -120],
    "Sum": [2, 7],
    "SumSquare": [14, 77],
}


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, *HALVES, np.int32, np.int64])
def test_values_and_dtypes(name, dtype):
    result = reduce(name, X.astype(dtype), [-1], keepdims=0)
    exact = np.array(BY_NAME[name], np.float64)
    expected = (np.trunc(exact) if dtype in (np.int32, np.int64) else exact).astype(dtype)
    assert result.dtype == dtype
    tolerance = 1e-6 if dtype in (np.float32, np.float64) else 0
    assert np.allclose(result.astype(float), expected.astype(float), rtol=tolerance, atol=0)


@pytest.mark.parametrize("name", BY_NAME)
def test_axes_as_attribute_of_old_versions(name):
    data = X.astype(np.float32)
    entry = find_kernel("", f"Reduce{name}", 11, ("reference",))
    assert entry is not None
    old = compute(entry, [data], axes=(1,), keepdims=0)
    assert old.tolist() == reduce(name, data, [1], keepdims=0).tolist()
    everything = compute(entry, [data])
    assert everything.shape == (1, 1)
    assert everything.ravel() == reduce(name, data, keepdims=0)


@pytest.mark.parametrize(
    ("axes", "keepdims", "noop", "shape"),
    [
        (None, 1, 0, (1, 1, 1)),
        (None, 0, 0, ()),
        ([], 1, 0, (1, 1, 1)),
        ([], 1, 1, (2, 3, 4)),
        (None, 0, 1, (2, 3, 4)),
        ([-1, 0], 1, 1, (1, 3, 1)),
        ([-1, 0], 0, 0, (3,)),
    ],
)
@pytest.mark.parametrize("name", BY_NAME)
def test_shapes(name, axes, keepdims, noop, shape):
    data = np.ones((2, 3, 4), np.float32)
    result = reduce(name, data, axes, keepdims=keepdims, noop_with_empty_axes=noop)
    assert type(result) is np.ndarray
    assert result.shape == shape
    out = np.empty(shape, np.float32)
    options = {"keepdims": keepdims, "noop_with_empty_axes": noop}
    assert reduce(name, data, axes, out=out, **options) is out
    assert out.tolist() == result.tolist()


def test_no_axes_still_apply_the_elementwise_part():
    data = np.array([-2, 3], np.float32)
    noop = {"noop_with_empty_axes": 1}
    assert reduce("SumSquare", data, **noop).tolist() == [4, 9]
    assert reduce("L1", data, **noop).tolist() == [2, 3]
    assert reduce("L2", data, **noop).tolist() == [2, 3]
    assert reduce("LogSum", np.array([1, 0], np.float32), **noop).tolist() == [0, -INF]
    copied = reduce("Sum", data, **noop)
    assert copied.tolist() == [-2, 3]
    assert not np.shares_memory(copied, data)


@pytest.mark.parametrize("axes", [None, [0], [-1]])
def test_scalars(axes):
    for name in ("Sum", "Max", "Mean", "L2", "LogSumExp"):
        result = reduce(name, np.array(3, np.float32), axes)
        assert (result.shape, result.item()) == ((), 3)


@pytest.mark.parametrize(
    ("name", "dtype", "expected"),
    [
        ("Sum", np.float32, 0),
        ("Sum", np.int64, 0),
        ("Prod", np.float16, 1),
        ("L1", np.float32, 0),
        ("L2", np.float32, 0),
        ("SumSquare", np.int32, 0),
        ("LogSum", np.float32, -INF),
        ("LogSumExp", np.float32, -INF),
        ("Max", np.float32, -INF),
        ("Max", ml_dtypes.bfloat16, -INF),
        ("Max", np.int8, -128),
        ("Max", np.uint64, 0),
        ("Max", np.bool_, False),
        ("Min", np.float64, INF),
        ("Min", np.int64, 2**63 - 1),
        ("Min", np.uint8, 255),
        ("Min", np.bool_, True),
        ("Mean", np.float32, NAN),
        ("Mean", np.float16, NAN),
    ],
)
def test_reduction_of_no_elements(name, dtype, expected):
    result = reduce(name, np.zeros((2, 0, 3), dtype), [1])
    assert (result.shape, result.dtype) == ((2, 1, 3), dtype)
    assert np.array_equal(result.astype(float), np.full((2, 1, 3), float(expected)), equal_nan=True)
    assert reduce(name, np.zeros((0, 3), dtype), [1]).shape == (0, 1)


def test_integers_wrap_around_in_their_own_type():
    data = np.array([2**31 - 1, 1], np.int32)
    assert reduce("Sum", data).tolist() == [-(2**31)]
    assert reduce("Prod", np.array([2**31, 2], np.uint32)).tolist() == [0]
    assert reduce("SumSquare", np.array([2**16], np.int32)).tolist() == [0]


@pytest.mark.parametrize(
    ("values", "expected"),
    [([-7, 2], -2), ([-7, -2], -4), ([7, 2], 4), ([2**31 - 1] * 3, 2**31 - 1), ([-1, 1], 0)],
)
def test_mean_of_integers_is_exact_and_cut_towards_zero(values, expected):
    assert reduce("Mean", np.array(values, np.int32)).tolist() == [expected]


@pytest.mark.parametrize("name", ["Sum", "Mean"])
@pytest.mark.parametrize("dtype", HALVES)
def test_half_types_accumulate_in_float32_and_round_once(name, dtype):
    data = np.full(4096, 1.25, dtype)
    assert reduce(name, data, keepdims=0) == (5120 if name == "Sum" else 1.25)
    out = np.empty((), dtype)
    assert reduce(name, data, keepdims=0, out=out) is out
    assert out == (5120 if name == "Sum" else 1.25)


def test_norm_of_half_types_does_not_overflow():
    assert reduce("L2", np.array([300, 400], np.float16)).tolist() == [500]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1000, 1000], 1000 + np.log(2)),
        ([-1000, -1000], -1000 + np.log(2)),
        ([-INF, -INF], -INF),
        ([-INF, 2], 2),
        ([INF, 1], INF),
        ([INF, -INF], INF),
        ([NAN, 1], NAN),
        ([3e38, -3e38], 3e38),
    ],
)
@pytest.mark.parametrize("keepdims", [0, 1])
def test_log_sum_exp_at_the_ends_of_the_range(values, expected, keepdims):
    data = np.array([values], np.float32)
    result = reduce("LogSumExp", data, [1], keepdims=keepdims)
    assert result.shape == ((1, 1) if keepdims else (1,))
    assert np.allclose(result, np.float32(expected), rtol=1e-6, equal_nan=True)


def test_maximum_keeps_nan_and_orders_booleans():
    assert np.isnan(reduce("Max", np.array([1, NAN, 3], np.float32))).all()
    assert np.isnan(reduce("Min", np.array([1, NAN, 3], ml_dtypes.bfloat16)).astype(float)).all()
    flags = np.array([[True, False], [False, False]])
    assert reduce("Max", flags, [1], keepdims=0).tolist() == [True, False]
    assert reduce("Min", flags, [1], keepdims=0).tolist() == [False, False]


def test_infinities():
    data = np.array([INF, -INF, 1], np.float32)
    assert np.isnan(reduce("Sum", data)).all()
    assert reduce("L1", data).tolist() == [INF]
    assert reduce("Min", data).tolist() == [-INF]


def test_an_axis_that_does_not_exist():
    with pytest.raises(np.exceptions.AxisError):
        reduce("Sum", X, [2])


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint64, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize(
    ("kernel", "last", "expected"),
    [
        (reduction.arg_max, 0, [1, 0]),
        (reduction.arg_max, 1, [2, 2]),
        (reduction.arg_min, 0, [0, 0]),
        (reduction.arg_min, 1, [0, 2]),
    ],
)
def test_arg_chooses_the_first_or_last_of_equals(kernel, last, expected, dtype):
    data = np.array([[1, 3, 3], [2, 2, 2]], dtype)
    kept = kernel(data, axis=-1, select_last_index=last)
    assert (kept.dtype, kept.shape) == (np.int64, (2, 1))
    dropped = kernel(data, axis=1, keepdims=0, select_last_index=last)
    assert dropped.tolist() == kept.ravel().tolist() == expected


def test_arg_of_nan_scalars_and_nothing():
    data = np.array([1, NAN, 5, NAN], np.float32)
    assert reduction.arg_max(data).tolist() == [1]
    assert reduction.arg_min(data, select_last_index=1).tolist() == [3]
    assert reduction.arg_max(np.array(5), select_last_index=1).tolist() == 0
    assert reduction.arg_max(np.zeros((2, 0)), axis=0).shape == (1, 0)
    with pytest.raises(ValueError, match="empty sequence"):
        reduction.arg_max(np.zeros((0, 2)))
