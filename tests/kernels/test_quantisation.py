"""QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear: values by hand and ONNX Runtime's."""

import ml_dtypes
import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from foldline.kernels.quantisation import (
    dequantize_linear,
    dynamic_quantize_linear,
    quantised,
    quantize_linear,
)
from foldline.support.dtypes import BY_NUMPY

RANGES = {
    np.uint8: (0, 255),
    np.int8: (-128, 127),
    np.uint16: (0, 65535),
    np.int16: (-32768, 32767),
    ml_dtypes.uint4: (0, 15),
    ml_dtypes.int4: (-8, 7),
    ml_dtypes.uint2: (0, 3),
    ml_dtypes.int2: (-2, 1),
}


def scalar(value, dtype=np.float32):
    return np.array(value).astype(dtype)


def code(dtype):
    return BY_NUMPY[np.dtype(dtype)].code


def onnxruntime_results(op_type, opset, inputs, *types, **attributes):
    names = [f"x{i}" for i in range(len(inputs))]
    results = [f"y{i}" for i in range(len(types))]
    graph = helper.make_graph(
        [helper.make_node(op_type, names, results, **attributes)],
        "one_node",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for n, x in zip(names, inputs, strict=True)
        ],
        [helper.make_tensor_value_info(n, t, None) for n, t in zip(results, types, strict=True)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return session.run(None, dict(zip(names, inputs, strict=True)))


@pytest.mark.parametrize(("dtype", "limits"), RANGES.items())
def test_integers_saturate(dtype, limits):
    x = np.array([-1e30, -np.inf, np.inf, 1e30, 0.0], np.float32)
    y = quantize_linear(x, scalar(1), scalar(1, dtype))
    assert y.dtype == dtype
    low, high = limits
    assert y.astype(int).tolist() == [low, low, high, high, 1]


def test_halves_round_to_even_before_the_zero_point_is_added():
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5], np.float32)
    assert quantize_linear(x, scalar(1), scalar(3, np.int8)).tolist() == [3, 5, 5, 3, 1, 1]


def test_default_is_uint8_and_output_dtype_names_another():
    x = np.array([-3.0, 300.0], np.float32)
    assert quantize_linear(x, scalar(1)).dtype == np.uint8
    y = quantize_linear(x, scalar(1), output_dtype=code(ml_dtypes.int4))
    assert y.dtype == ml_dtypes.int4
    assert y.astype(int).tolist() == [-3, 7]
    with pytest.raises(ValueError, match="output_dtype is int8, but the zero point is uint8"):
        quantize_linear(x, scalar(1), scalar(0, np.uint8), output_dtype=code(np.int8))


def test_saturate_decides_what_float8_overflow_becomes():
    x = np.array([1e6, -1e6, 1.0], np.float32)
    zero = scalar(0, ml_dtypes.float8_e5m2)
    saturated = quantize_linear(x, scalar(1), zero).astype(np.float32)
    assert saturated.tolist() == [57344.0, -57344.0, 1.0]
    wild = quantize_linear(x, scalar(1), zero, saturate=0).astype(np.float32)
    assert wild.tolist() == [np.inf, -np.inf, 1.0]


def test_saturate_means_nothing_to_types_without_infinity():
    x = np.array([1e6, -1e6, -0.0], np.float32)
    for dtype, most in ((ml_dtypes.float4_e2m1fn, 6.0), (ml_dtypes.float6_e2m3fn, 7.5),
                        (ml_dtypes.float6_e3m2fn, 28.0)):  # fmt: skip
        for saturate in (0, 1):
            y = quantize_linear(x, scalar(1), output_dtype=code(dtype), saturate=saturate)
            assert y.astype(np.float32).tolist() == [most, -most, 0.0]
            assert np.signbit(y.astype(np.float32)[2])


def test_float_zero_point_is_added():
    y = quantize_linear(np.array([1.0], np.float32), scalar(1), scalar(2, ml_dtypes.float4_e2m1fn))
    assert y.astype(np.float32).tolist() == [3.0]


def test_precision_is_that_of_the_division():
    # 2049 is no float16: it becomes 2048 before the division when that is in float16.
    x = np.array([2049.0], np.float32)
    assert quantize_linear(x, scalar(1), scalar(0, np.int16)).tolist() == [2049]
    assert quantize_linear(x, scalar(1, np.float16), scalar(0, np.int16)).tolist() == [2048]
    y = quantize_linear(x, scalar(1), scalar(0, np.int16), precision=TensorProto.FLOAT16)
    assert y.tolist() == [2048]
    y = quantize_linear(x, scalar(1, np.float16), scalar(0, np.int16), precision=TensorProto.FLOAT)
    assert y.tolist() == [2049]


def test_int32_input_and_scale():
    x = np.array([-7, 3, 5, 2**31 - 1], np.int32)
    y = quantize_linear(x, scalar(2, np.int32), scalar(0, np.int8))
    assert y.tolist() == [-4, 2, 2, 127]
    assert quantize_linear(x, scalar(2), scalar(0, np.int8)).tolist() == [-4, 2, 2, 127]


def test_power_of_two_scale():
    x = np.array([1.0, 3.0], np.float32)
    scale = scalar(0.5, ml_dtypes.float8_e8m0fnu)
    y = quantize_linear(x, scale, scalar(0, np.int8))
    assert y.tolist() == [2, 6]
    back = dequantize_linear(y, scale, output_dtype=TensorProto.FLOAT16)
    assert back.dtype == np.float16
    assert back.tolist() == [1.0, 3.0]


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_one_scale_for_each_index_of_an_axis(axis):
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32) * 9
    size = x.shape[axis]
    scale = np.linspace(0.1, 0.3, size, dtype=np.float32)
    zero = np.arange(size, dtype=np.int8)
    (expected,) = onnxruntime_results(
        "QuantizeLinear", 13, [x, scale, zero], TensorProto.INT8, axis=axis
    )
    y = quantize_linear(x, scale, zero, axis=axis)
    assert y.tolist() == expected.tolist()
    (expected,) = onnxruntime_results(
        "DequantizeLinear", 13, [y, scale, zero], TensorProto.FLOAT, axis=axis
    )
    assert dequantize_linear(y, scale, zero, axis=axis).tolist() == expected.tolist()


@pytest.mark.parametrize(("axis", "block", "blocks"), [(0, 2, 3), (1, 4, 2), (1, 3, 3), (-1, 8, 1)])
def test_blocks_of_an_axis(axis, block, blocks):
    random = np.random.default_rng(1)
    x = random.standard_normal((6, 8)).astype(np.float32) * 9
    shape = [6, 8]
    shape[axis] = blocks
    scale = random.uniform(0.1, 1, shape).astype(np.float32)
    zero = random.integers(-9, 9, shape).astype(np.int8)
    options = {"axis": axis, "block_size": block}
    (expected,) = onnxruntime_results(
        "QuantizeLinear", 21, [x, scale, zero], TensorProto.INT8, **options
    )
    y = quantize_linear(x, scale, zero, **options)
    assert y.tolist() == expected.tolist()
    (expected,) = onnxruntime_results(
        "DequantizeLinear", 21, [y, scale, zero], TensorProto.FLOAT, **options
    )
    assert dequantize_linear(y, scale, zero, **options).tolist() == expected.tolist()


def test_a_vector_of_rank_one_needs_no_axis():
    x = np.array([1.0, 1.0], np.float32)
    assert quantize_linear(x, np.array([1, 0.5], np.float32)).tolist() == [1, 2]
    assert quantize_linear(x, np.array([0.5], np.float32)).tolist() == [2, 2]


def test_shapes_that_do_not_fit():
    x = np.zeros((2, 3), np.float32)
    with pytest.raises(ValueError, match=r"scale has shape \(2,\), expected \(3,\)"):
        quantize_linear(x, np.ones(2, np.float32))
    with pytest.raises(ValueError, match=r"scale has shape \(3,\), the zero point \(1,\)"):
        quantize_linear(x, np.ones(3, np.float32), np.zeros(1, np.uint8))
    with pytest.raises(ValueError, match=r"expected \(2, 2\)"):
        quantize_linear(x, np.ones((2, 3), np.float32), block_size=2)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 1)])
def test_scalars_and_nothing(shape):
    y = quantize_linear(np.full(shape, 3, np.float32), scalar(2), scalar(1, np.uint8))
    assert type(y) is np.ndarray
    assert y.shape == shape
    assert (y == 3).all()
    back = dequantize_linear(y, scalar(2), scalar(1, np.uint8))
    assert back.shape == shape
    assert (back == 4).all()


def test_long_inputs_are_tiled_and_out_is_used():
    x = np.random.default_rng(2).standard_normal((3, 50_000)).astype(np.float32) * 50
    out = np.empty(x.shape, np.uint8)
    assert quantize_linear(x, scalar(0.7), scalar(99, np.uint8), out=out) is out
    expected = np.clip(np.rint(x / np.float32(0.7)) + 99, 0, 255)
    assert (out == expected).all()
    wide = np.empty(x.shape, np.float32)
    assert dequantize_linear(out, scalar(0.7), scalar(99, np.uint8), out=wide) is wide
    assert (wide == (out.astype(np.float32) - 99) * np.float32(0.7)).all()


@pytest.mark.parametrize("dtype", RANGES)
def test_every_integer_comes_back(dtype):
    low, high = RANGES[dtype]
    values = np.arange(low, high + 1)
    x = dequantize_linear(values.astype(dtype), scalar(1), scalar(1, dtype))
    assert (x == values - 1).all()


def test_dequantised_once_rounded():
    # In float16 alone 30001 would first become 30000.
    x = np.array([30001], np.uint16)
    y = dequantize_linear(x, scalar(0.5, np.float16))
    assert y.dtype == np.float16
    assert y.tolist() == [float(np.float16(15000.5))]
    y = dequantize_linear(x, scalar(0.5, np.float16), output_dtype=TensorProto.FLOAT)
    assert y.dtype == np.float32
    assert y.tolist() == [15000.5]


def test_dequantise_int32_and_float8():
    big = np.array([-(2**31), 2**24 + 2], np.int32)
    assert dequantize_linear(big, scalar(2)).tolist() == [-(2.0**32), 2.0**25 + 4]
    x = np.array([448, -0.5, np.nan], np.float32).astype(ml_dtypes.float8_e4m3fn)
    y = dequantize_linear(x, scalar(2), scalar(0, ml_dtypes.float8_e4m3fn))
    np.testing.assert_array_equal(y, np.array([896, -1, np.nan], np.float32))


def test_dynamic_range_includes_zero():
    y, scale, zero = dynamic_quantize_linear(np.array([1.0, 2.2, 4.0], np.float32))
    assert (y.tolist(), zero.tolist()) == ([64, 140, 255], 0)
    assert scale == np.float32(4) / np.float32(255)
    assert [a.dtype for a in (y, scale, zero)] == [np.uint8, np.float32, np.uint8]
    assert scale.shape == zero.shape == ()


@pytest.mark.parametrize("low", [-2.0, -0.3, 0.0, 0.7])
def test_dynamic_as_onnxruntime(low):
    x = np.random.default_rng(5).uniform(low, 1.0, (40, 5)).astype(np.float32)
    types = TensorProto.UINT8, TensorProto.FLOAT, TensorProto.UINT8
    expected = onnxruntime_results("DynamicQuantizeLinear", 11, [x], *types)
    for result, wanted in zip(dynamic_quantize_linear(x), expected, strict=True):
        assert result.tolist() == wanted.tolist()


@pytest.mark.parametrize("x", [np.zeros(3, np.float32), np.zeros((0, 2), np.float32)])
def test_dynamic_without_range(x):
    y, scale, zero = dynamic_quantize_linear(x)
    assert y.tolist() == np.zeros(x.shape).tolist()
    assert (scale.tolist(), zero.tolist()) == (1.0, 0)


def test_products_are_requantised_in_float32():
    total = np.array([[1, 3, 2**30]], np.int32)
    y = quantised(total, np.float32(0.5), scalar(-3, np.int8))
    assert y.tolist() == [[-3, -1, 127]]
    y = quantised(
        np.array([[3.0]], np.float32), np.float32(200), scalar(0, ml_dtypes.float8_e4m3fn)
    )
    assert y.astype(np.float32).tolist() == [[448.0]]
