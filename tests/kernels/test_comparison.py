import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.comparison import bit_shift, is_inf, where
from foldline.kernels.registry import compute, find_kernel


def run(op_type, version, *inputs, **attributes):
    return compute(find_kernel("", op_type, version), inputs, **attributes)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_nan_is_unordered_and_zeros_are_equal(dtype):
    a = np.array([np.nan, 0.0, 1, np.inf], dtype)
    b = np.array([np.nan, -0.0, 2, np.inf], dtype)
    assert run("Equal", 13, a, b).tolist() == [False, True, False, True]
    assert run("Less", 13, a, b).tolist() == [False, False, True, False]
    assert run("Greater", 13, a, b).tolist() == [False, False, False, False]
    assert run("LessOrEqual", 16, a, b).tolist() == [False, True, True, True]
    assert run("GreaterOrEqual", 16, a, b).tolist() == [False, True, False, True]


def test_integers_are_compared_exactly():
    assert run("Less", 13, np.array([2**53]), np.array([2**53 + 1])).tolist() == [True]
    huge = np.array([2**64 - 1], np.uint64)
    assert run("Greater", 13, huge, huge - np.uint64(1)).tolist() == [True]


def test_equal_compares_strings():
    a = np.array([["a"], ["b"]], object)
    result = run("Equal", 19, a, np.array(["a", "é"], object))
    assert result.dtype == np.bool_
    assert result.tolist() == [[True, False], [False, False]]


def test_logic():
    a, b = np.array([True, True, False, False]), np.array([True, False, True, False])
    assert run("And", 7, a, b).tolist() == [True, False, False, False]
    assert run("Or", 7, a, b).tolist() == [True, True, True, False]
    assert run("Xor", 7, a, b).tolist() == [False, True, True, False]
    assert run("Not", 1, a).tolist() == [False, False, True, True]
    matrix = np.array([[True, False], [True, False]])
    legacy = run("And", 1, matrix, np.array([True, False]), axis=0, broadcast=1)
    assert legacy.tolist() == [[True, False], [False, False]]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64])
def test_bitwise(dtype):
    a, b = np.array([0b1100], dtype), np.array([0b1010], dtype)
    assert run("BitwiseAnd", 18, a, b).tolist() == [0b1000]
    assert run("BitwiseOr", 18, a, b).tolist() == [0b1110]
    assert run("BitwiseXor", 18, a, b).tolist() == [0b0110]
    assert run("BitwiseNot", 18, a) == np.array([0b1100], dtype) ^ np.array(-1).astype(dtype)


class TestIsNaNAndIsInf:
    @pytest.mark.parametrize(
        "dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2]
    )
    def test_signs(self, dtype):
        x = np.array([-np.inf, np.inf, np.nan, 1], dtype)
        assert run("IsNaN", 20, x).tolist() == [False, False, True, False]
        assert is_inf(x).tolist() == [True, True, False, False]
        assert is_inf(x, detect_negative=0).tolist() == [False, True, False, False]
        assert is_inf(x, detect_positive=0).tolist() == [True, False, False, False]
        assert is_inf(x, detect_negative=0, detect_positive=0).tolist() == [False] * 4

    @pytest.mark.parametrize(
        "dtype",
        [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2fnuz],
    )
    def test_types_without_infinity(self, dtype):
        x = np.arange(256, dtype=np.uint8).view(dtype)
        assert not is_inf(x).any()
        assert run("IsNaN", 20, x).any()


class TestBitShift:
    @pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
    def test_unsigned(self, dtype):
        width = np.iinfo(dtype).bits
        x = np.full(4, np.iinfo(dtype).max, dtype)
        y = np.array([0, 1, width, width + 1], dtype)
        top = int(x[0])
        assert bit_shift(x, y, direction="LEFT").tolist() == [top, top - 1, 0, 0]
        assert bit_shift(x, y, direction="RIGHT").tolist() == [top, top >> 1, 0, 0]

    @pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
    def test_signed_out_of_range_leaves_the_sign(self, dtype):
        width = np.iinfo(dtype).bits
        x = np.array([-5, 5, -5, 5, -5], dtype)
        y = np.array([width, width, -1, -1, 1], dtype)
        assert bit_shift(x, y, direction="RIGHT").tolist() == [-1, 0, -1, 0, -3]
        assert bit_shift(x, y, direction="LEFT").tolist() == [0, 0, 0, 0, -10]

    def test_left_shift_drops_the_sign_bit(self):
        x = np.array([0b01000000, -128], np.int8)
        assert bit_shift(x, np.array([1], np.int8), direction="LEFT").tolist() == [-128, 0]

    def test_unknown_direction(self):
        with pytest.raises(ValueError, match="'left', expected LEFT or RIGHT"):
            bit_shift(np.array([1]), np.array([1]), direction="left")


class TestWhere:
    def test_broadcasts_all_three(self):
        result = where(np.array([[True], [False]]), np.array([1, 2]), np.array(0))
        assert result.tolist() == [[1, 2], [0, 0]]

    @pytest.mark.parametrize("dtype", [object, np.bool_, ml_dtypes.bfloat16, np.uint8, np.float32])
    def test_keeps_the_element_type(self, dtype):
        result = where(np.array([True, False]), np.array([1, 1], dtype), np.array([0, 0], dtype))
        assert result.dtype == dtype
        assert result.tolist() == [1, 0]
