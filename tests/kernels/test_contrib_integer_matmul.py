import numpy as np
import pytest

from tests.kernels.contrib import (
    assert_close,
    both,
    integers,
    normal,
    one_node,
    own_results,
    scalar,
)

# Where the right factor is signed, ONNX Runtime saturates pairs of products on some processors:
# small numbers there.
KINDS = [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)]


def factors(a_type, b_type, a=(2, 3, 16), b=(16, 5)):
    left, right = integers(*a, dtype=a_type), integers(*b, dtype=b_type, seed=1)
    return left, right // 4 if b_type == np.int8 else right


@pytest.mark.parametrize(("a_type", "b_type"), KINDS)
@pytest.mark.parametrize("by_column", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("constant", [(), (1, 3, 5)])
def test_matmul_integer_to_float(a_type, b_type, by_column, bias, constant):
    a, b = factors(a_type, b_type)
    columns = np.arange(1, 6) if by_column else 3
    inputs = [
        a,
        b,
        scalar(0.02),
        np.asarray(columns * 0.01, np.float32),
        scalar(7, a_type),
        np.asarray(columns, b_type),
        normal(5) if bias else None,
    ]
    assert_close("MatMulIntegerToFloat", inputs, constant=constant, tolerance=1e-5)


def test_matmul_integer_to_float_without_zero_points():
    a, b = factors(np.uint8, np.uint8)
    assert_close("MatMulIntegerToFloat", [a, b, scalar(0.1), scalar(0.2)], tolerance=1e-5)


@pytest.mark.parametrize("b_type", [np.uint8, np.int8])
@pytest.mark.parametrize("by_column", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_dynamic_quantize_matmul(b_type, by_column, bias):
    _, b = factors(np.uint8, b_type)
    columns = np.arange(1, 6) if by_column else 3
    inputs = [
        3 * normal(2, 3, 16) + 1,
        b,
        np.asarray(columns * 0.01, np.float32),
        np.asarray(columns, b_type),
        normal(5) if bias else None,
    ]
    assert_close("DynamicQuantizeMatMul", inputs, tolerance=1e-5)


def test_dynamic_quantize_matmul_of_zeros():
    inputs = [np.zeros((3, 16), np.float32), integers(16, 5), scalar(0.5), scalar(9, np.uint8)]
    (y,) = assert_close("DynamicQuantizeMatMul", inputs)
    assert not y.any()


def test_long_sums_are_exact():
    a, b = integers(2, 4000, dtype=np.uint8), integers(4000, 3, dtype=np.int8, seed=1)
    inputs = [a, b, scalar(1), scalar(1)]
    model = one_node("MatMulIntegerToFloat", inputs, {}, (True,), "com.microsoft", ())
    (y,) = own_results(model, {f"x{i}": x for i, x in enumerate(inputs)})
    assert y.tolist() == (a.astype(np.int64) @ b.astype(np.int64)).astype(np.float32).tolist()


def gemm_inputs(kinds, flags, by_column):
    a, b = factors(*kinds, a=(4, 16))
    columns = np.arange(1, 6) if by_column else 3
    return [
        a.T.copy() if flags[0] else a,
        scalar(0.02),
        scalar(7, a.dtype),
        b.T.copy() if flags[1] else b,
        np.asarray(columns * 0.01, np.float32),
        np.asarray(columns, b.dtype),
        np.arange(-200, 300, 100).astype(np.int32),
    ]


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("flags", [(0, 0), (0, 1), (1, 0)])
@pytest.mark.parametrize("by_column", [False, True])
@pytest.mark.parametrize("constant", [(), (3, 5)])
def test_gemm_to_float(kinds, flags, by_column, constant):
    attributes = {"alpha": 0.5, "transA": flags[0], "transB": flags[1]}
    inputs = gemm_inputs(kinds, flags, by_column)
    assert_close("QGemm", inputs, attributes, constant=constant, tolerance=1e-5)


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("by_column", [False, True])
def test_gemm_to_bytes(kinds, by_column):
    inputs = gemm_inputs(kinds, (0, 1), by_column)
    inputs += [scalar(1.5), scalar(3, kinds[0])]
    expected, actual = both("QGemm", inputs, {"transB": 1})
    assert actual[0].dtype == kinds[0]
    assert ((actual[0] > np.iinfo(kinds[0]).min) & (actual[0] < np.iinfo(kinds[0]).max)).sum() > 5
    np.testing.assert_array_equal(actual[0], expected[0])
