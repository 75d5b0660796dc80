import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.quantised_matmul import matmul_integer_reference, qlinear_matmul_reference
from foldline.kernels.registry import compute, find_kernel

KINDS = [(a, b) for a in (np.uint8, np.int8) for b in (np.uint8, np.int8)]


def both(op_type, version, inputs):
    results = [
        compute(find_kernel("", op_type, version, (grade,)), inputs)
        for grade in ("fast", "reference")
    ]
    assert results[0].dtype == results[1].dtype
    assert results[0].tolist() == results[1].tolist()
    return results[0]


def integers(shape, dtype, seed):
    info = np.iinfo(dtype)
    random = np.random.default_rng(seed)
    return random.integers(info.min, info.max, shape, endpoint=True).astype(dtype)


@pytest.mark.parametrize(("a_type", "b_type"), KINDS)
def test_matmul_integer(a_type, b_type):
    a, b = integers((2, 3, 700), a_type, 0), integers((700, 4), b_type, 1)
    expected = (a.astype(np.int64) - 5) @ (b.astype(np.int64) - 3)
    result = both("MatMulInteger", 10, [a, b, np.array(5, a_type), np.array(3, b_type)])
    assert result.dtype == np.int32
    assert (result == expected).all()
    assert (both("MatMulInteger", 10, [a, b]) == a.astype(np.int64) @ b.astype(np.int64)).all()


def test_matmul_integer_of_vectors_is_an_array():
    a = np.array([2, 3], np.uint8)
    result = both("MatMulInteger", 10, [a, a])
    assert type(result) is type(matmul_integer_reference(a, a)) is np.ndarray
    assert result.shape == ()
    assert result == 13


def qlinear_inputs(a, b, y_scale, y_zero, a_scale=1.0, b_scale=1.0, scale_type=np.float32):
    def scale(value):
        return np.array(value).astype(scale_type)

    zeros = np.array(0).astype(a.dtype), np.array(0).astype(b.dtype)
    return [a, scale(a_scale), zeros[0], b, scale(b_scale), zeros[1], scale(y_scale), y_zero]


@pytest.mark.parametrize("scale_type", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_qlinear_rounds_half_to_even_then_adds_the_zero_point(scale_type):
    a = np.array([[1], [3], [5], [-1], [-3]], np.int8)
    b = np.array([[1]], np.int8)
    inputs = qlinear_inputs(a, b, 2.0, np.array(1, np.int8), scale_type=scale_type)
    assert both("QLinearMatMul", 21, inputs).ravel().tolist() == [1, 3, 3, 1, -1]


@pytest.mark.parametrize(("dtype", "limits"), [(np.uint8, (0, 255)), (np.int8, (-128, 127))])
def test_qlinear_saturates(dtype, limits):
    a, b = np.array([[127], [-128]], np.int8), np.array([[127]], np.int8)
    result = both("QLinearMatMul", 10, qlinear_inputs(a, b, 1.0, np.array(9, dtype)))
    assert result.dtype == dtype
    assert result.ravel().tolist() == list(limits)[::-1]


def test_qlinear_scales_of_rows_and_columns():
    a, b = np.array([[10], [10]], np.uint8), np.array([[4, 4]], np.int8)
    inputs = qlinear_inputs(
        a, b, 2.0, np.array(0, np.uint8), a_scale=[1.0, 0.5], b_scale=[1.0, 2.0]
    )
    assert both("QLinearMatMul", 10, inputs).tolist() == [[20, 40], [10, 20]]
    inputs[2], inputs[5] = np.array([0, 2], np.uint8), np.array([0, 3], np.int8)
    assert both("QLinearMatMul", 10, inputs).tolist() == [[20, 10], [8, 4]]


def test_qlinear_of_float8():
    kind = ml_dtypes.float8_e4m3fn
    a, b = np.array([[1.5, 2], [448, 448]]).astype(kind), np.array([[2], [1]]).astype(kind)
    result = both("QLinearMatMul", 21, qlinear_inputs(a, b, 1.0, np.array(0).astype(kind)))
    assert result.dtype == kind
    assert result.astype(np.float32).ravel().tolist() == [5.0, 448.0]


def test_qlinear_long_sums_are_exact():
    a, b = integers((4, 3000), np.uint8, 0), integers((3000, 5), np.int8, 1)
    scale = 2.0**17
    total = a.astype(np.int64) @ b.astype(np.int64)
    expected = np.clip(np.rint(total.astype(np.float32) / scale), -128, 127)
    result = both("QLinearMatMul", 10, qlinear_inputs(a, b, scale, np.array(0, np.int8)))
    assert np.unique(result).size > 5
    assert (result == expected).all()
    assert qlinear_matmul_reference(
        *qlinear_inputs(a[:0], b, scale, np.array(0, np.int8))
    ).shape == (0, 5)
