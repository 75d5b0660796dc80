"""Products are exact however long the sums: the oracle is int64 arithmetic."""

import numpy as np
import pytest

from foldline.kernels.integer_products import (
    EXACT_SUM,
    ExactMatMul,
    centred,
    exact_conv,
    exact_matmul,
)
from foldline.kernels.registry import GRADES, Operand, aligned_bytes, find_kernel, run_once

WORST = [(np.uint8, 255, 0), (np.uint8, 0, 255), (np.int8, -128, 127), (np.int8, 127, -128)]


def operand(x, constant=False):
    return None if x is None else Operand(x.shape, x.dtype, x if constant else None)


def matmul(a, b, a_zero=None, b_zero=None, constant=False):
    operands = (operand(a), *(operand(x, constant) for x in (b, a_zero, b_zero)))
    return exact_matmul(*operands)(a, b, a_zero, b_zero)


@pytest.mark.parametrize("k", [1, 257, 259, 1024, 5000])
@pytest.mark.parametrize(("a_type", "a_value", "a_zero"), WORST)
@pytest.mark.parametrize(("b_type", "b_value", "b_zero"), WORST)
@pytest.mark.parametrize("constant", [False, True])
def test_largest_sums(k, a_type, a_value, a_zero, b_type, b_value, b_zero, constant):
    a, b = np.full((2, k), a_value, a_type), np.full((k, 3), b_value, b_type)
    a[1, ::2] = a_zero  # so that sums are odd, too
    zeros = np.array(a_zero, a_type), np.array(b_zero, b_type)
    result = matmul(a, b, *zeros, constant=constant)
    assert result.dtype == np.int32
    expected = (a.astype(np.int64) - a_zero) @ (b.astype(np.int64) - b_zero)
    assert (result == expected).all()


def test_an_odd_sum_above_the_exact_range_needs_blocks():
    k = 2 * EXACT_SUM // (255 * 255) + 1
    a, b = np.full((1, k), 255, np.uint8), np.full((k, 1), 255, np.uint8)
    assert float(np.float32(k * 255 * 255)) != k * 255 * 255
    assert matmul(a, b).item() == k * 255 * 255


def test_the_sum_wraps_like_int32():
    k = 2**31 // (255 * 255) + 1
    a, b = np.full((1, k), 255, np.uint8), np.full((k, 1), 255, np.uint8)
    assert matmul(a, b).item() == k * 255 * 255 - 2**32


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize(
    ("a_shape", "b_shape"),
    [((300,), (300,)), ((300,), (300, 4)), ((5, 300), (300,)), ((2, 1, 3, 300), (4, 300, 2)),
     ((0, 4), (4, 3)), ((3, 0), (0, 4)), ((2, 3, 0), (2, 0, 4)), ((2, 5, 300), (300, 4))],
)  # fmt: skip
def test_shapes(a_shape, b_shape, constant):
    random = np.random.default_rng(0)
    a = random.integers(0, 256, a_shape).astype(np.uint8)
    b = random.integers(-128, 128, b_shape).astype(np.int8)
    zero = np.array(17, np.uint8)
    expected = np.matmul(a.astype(np.int64) - 17, b.astype(np.int64))
    result = matmul(a, b, zero, constant=constant)
    assert result.shape == expected.shape
    assert (result == expected).all()


def test_zero_points_of_rows_and_columns():
    random = np.random.default_rng(1)
    a = random.integers(0, 256, (3, 50)).astype(np.uint8)
    b = random.integers(-128, 128, (50, 4)).astype(np.int8)
    rows, columns = np.array([0, 128, 255], np.uint8), np.array([-128, -1, 0, 127], np.int8)
    expected = (a.astype(np.int64) - rows[:, None]) @ (b.astype(np.int64) - columns)
    assert (matmul(a, b, rows, columns) == expected).all()
    stacked = a[None].repeat(2, 0)
    result = matmul(stacked, b[None], rows.reshape(1, 3, 1), columns.reshape(1, 1, 4))
    assert (result == expected).all()


def conv(x, w, x_zero, w_zero, constant, **attributes):
    options = {
        "auto_pad": "NOTSET", "dilations": None, "group": 1, "kernel_shape": None, "pads": None,
        "strides": None, **attributes,
    }  # fmt: skip
    operands = (operand(x), operand(w, constant), *(operand(z, constant) for z in (x_zero, w_zero)))
    step = exact_conv(*operands, **options)
    return step.run(x, w, x_zero, w_zero, aligned_bytes(max(1, step.scratch_bytes)))


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize(("channels", "group", "window"), [(64, 1, 5), (60, 2, 5), (2, 1, 17)])
def test_largest_convolutions(channels, group, window, constant):
    x = np.full((1, channels, window, window), 255, np.uint8)
    w = np.full((2, channels // group, window, window), -128, np.int8)
    w[1, ..., 0] = 1
    zeros = np.array(0, np.uint8), np.array([0, 127], np.int8)
    result = conv(x, w, *zeros, constant, group=group)
    sums = (w.astype(np.int64) - zeros[1].reshape(-1, 1, 1, 1)).sum(axis=(1, 2, 3)) * 255
    assert result.dtype == np.int32
    assert result.ravel().tolist() == sums.tolist()


def test_centring_keeps_values():
    x = np.array([0, 255], np.uint8)
    assert centred(x, None).tolist() == [0, 255]
    assert centred(x, np.array(255, np.uint8)).tolist() == [-255, 0]
    assert centred(x, np.array(0, np.uint8)).dtype == np.float32


def test_a_convolution_that_floats_would_transform_is_exact():
    """Winograd's transforms have quarters, for which a sum near 2^24 leaves no bits."""
    random = np.random.default_rng(0)
    x = random.integers(200, 256, (1, 160, 18, 18)).astype(np.uint8)
    w = random.integers(35, 46, (160, 160, 3, 3)).astype(np.int8)
    window = {"pads": (1, 1, 1, 1)}
    entry = find_kernel("", "ConvInteger", 10, GRADES["fast"])
    operands = Operand(x.shape, x.dtype), Operand(w.shape, w.dtype, w)
    found = run_once(entry.function(*operands, **window), [x, w])
    reference = find_kernel("", "ConvInteger", 10, ["reference"])
    np.testing.assert_array_equal(found, reference.function(x, w, **window))


def test_a_constant_factor_starts_at_a_cache_line():
    byte = np.dtype(np.uint8)
    b = np.arange(-30, 30, dtype=np.int8).reshape(6, 10)
    for zero in (None, np.array(3, np.int8)):
        point = None if zero is None else Operand((), zero.dtype, zero)
        factor = ExactMatMul(
            Operand((1, 6), byte), Operand(b.shape, b.dtype, b), None, point
        ).factor
        assert factor is not None
        assert factor.ctypes.data % 64 == 0
        np.testing.assert_array_equal(factor, b.astype(np.float32) - (0 if zero is None else 3))
