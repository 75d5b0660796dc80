import numpy as np
import pytest

from tests.kernels.contrib import both, integers, normal, one_node, own_results, scalar

BYTES = pytest.mark.parametrize("dtype", [np.uint8, np.int8])


def assert_within_a_step(op_type, inputs, attributes=None, *, least_equal=0.98, **rest):
    """ONNX Runtime multiplies by ratios of scales: a last bit before the rounding may differ."""
    expected, actual = both(op_type, inputs, attributes, **rest)
    for own, wanted in zip(actual, expected, strict=True):
        assert own.dtype == wanted.dtype
        assert own.shape == wanted.shape
        assert np.abs(own.astype(int) - wanted.astype(int)).max() <= 1
        assert (own == wanted).mean() >= least_equal
    return actual[0]


def parameters(scale, zero, dtype):
    return [scalar(scale), scalar(zero, dtype)]


@BYTES
@pytest.mark.parametrize("op_type", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("shapes", [((3, 40), (3, 40)), ((3, 40), (1,)), ((2, 1, 5), (4, 1))])
def test_binary(dtype, op_type, shapes):
    a, b = (integers(*shape, dtype=dtype, seed=i) for i, shape in enumerate(shapes))
    scale = 0.7 if op_type == "QLinearAdd" else 20.0
    inputs = [a, *parameters(0.3, 5, dtype), b, *parameters(0.4, 9, dtype)]
    inputs += parameters(scale, 60, dtype)
    y = assert_within_a_step(op_type, inputs)
    assert np.unique(y).size > 5


def test_sum_saturates_and_rounds_half_to_even():
    a = np.array([0, 1, 3, 5, 255], np.uint8)
    inputs = [a, *parameters(1, 0, np.uint8), a * 0, *parameters(1, 0, np.uint8)]
    inputs += parameters(2, 200, np.uint8)
    y = assert_within_a_step("QLinearAdd", inputs, least_equal=1)
    assert y.tolist() == [200, 200, 202, 202, 255]


def test_absent_zero_points_are_0():
    a = integers(4, 5)
    absent = [a, scalar(0.5), None, a, scalar(0.25), None, scalar(1)]
    given = [a, *parameters(0.5, 0, np.uint8), a, *parameters(0.25, 0, np.uint8)]
    results = []
    for inputs in (absent, [*given, *parameters(1, 0, np.uint8)]):
        model = one_node("QLinearAdd", inputs, {}, (True,), "com.microsoft", ())
        feed = {f"x{i}": x for i, x in enumerate(inputs) if x is not None}
        results += own_results(model, feed)
    np.testing.assert_array_equal(*results)


@BYTES
@pytest.mark.parametrize(
    ("op_type", "attributes"),
    [("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": 0.3}), ("QLinearLeakyRelu", {})],
)
def test_unary_of_every_code(dtype, op_type, attributes):
    x = np.arange(256, dtype=np.uint8).view(dtype).reshape(16, 16)
    scale = 1 / 200 if op_type == "QLinearSigmoid" else 0.06
    inputs = [x, *parameters(0.05, 10, dtype), *parameters(scale, 3, dtype)]
    y = assert_within_a_step(op_type, inputs, attributes)
    assert np.unique(y).size > 50


@BYTES
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat(dtype, axis):
    a, b = integers(2, 3, 4, dtype=dtype), integers(2, 3, 4, dtype=dtype, seed=1)
    inputs = [*parameters(0.5, 2, dtype), a, *parameters(0.5, 2, dtype), b]
    inputs += parameters(0.3, 7, dtype)
    y = assert_within_a_step("QLinearConcat", inputs, {"axis": axis})
    kept = y.take(range(a.shape[axis]), axis)
    np.testing.assert_array_equal(kept, a)


@BYTES
@pytest.mark.parametrize(("axis", "opset"), [(-1, 13), (1, 13), (1, 11), (2, 12)])
def test_softmax(dtype, axis, opset):
    x = integers(2, 3, 5, dtype=dtype)
    inputs = [
        x,
        *parameters(0.02, 5, dtype),
        *parameters(1 / 256, -128 * (dtype == np.int8), dtype),
    ]
    assert_within_a_step("QLinearSoftmax", inputs, {"axis": axis, "opset": opset}, least_equal=0.8)


@BYTES
@pytest.mark.parametrize("channels_last", [0, 1])
def test_global_average_pool(dtype, channels_last):
    x = integers(2, 6, 5, 7, dtype=dtype)
    inputs = [x, *parameters(0.3, 9, dtype), *parameters(0.1, 20, dtype)]
    attributes = {"channels_last": channels_last}
    assert_within_a_step("QLinearGlobalAveragePool", inputs, attributes, least_equal=0.9)


@BYTES
@pytest.mark.parametrize("channels_last", [0, 1])
@pytest.mark.parametrize(
    "window",
    [
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]},
        {"kernel_shape": [2, 2], "count_include_pad": 1, "pads": [1, 0, 0, 1]},
        {"kernel_shape": [3, 2], "ceil_mode": 1, "strides": [2, 2]},
    ],
)
def test_average_pool(dtype, channels_last, window):
    x = integers(2, 6, 5, 7, dtype=dtype)
    inputs = [x, *parameters(0.3, 9, dtype), *parameters(0.2, 20, dtype)]
    attributes = {"channels_last": channels_last, **window}
    assert_within_a_step("QLinearAveragePool", inputs, attributes, least_equal=0.9)


def test_concat_of_floats_quantises():
    x = normal(2, 3)
    inputs = [*parameters(0.1, 5, np.uint8), x, *parameters(1, 0, np.float32)]
    model = one_node("QLinearConcat", inputs, {"axis": 0}, (True,), "com.microsoft", ())
    (y,) = own_results(model, {f"x{i}": x for i, x in enumerate(inputs)})
    np.testing.assert_array_equal(y, np.clip(np.rint(x / np.float32(0.1)) + 5, 0, 255))


@BYTES
def test_where(dtype):
    a, b = integers(3, 40, dtype=dtype), integers(40, dtype=dtype, seed=1)
    condition = integers(3, 1, seed=2) > 100
    inputs = [condition, a, *parameters(0.3, 5, dtype), b, *parameters(0.4, 9, dtype)]
    assert_within_a_step("QLinearWhere", [*inputs, *parameters(0.5, 20, dtype)])


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint16])
@pytest.mark.parametrize("axis", [None, 1])
def test_quantise_and_back(dtype, axis):
    scale = scalar(0.01) if axis is None else np.array([0.01, 0.02, 0.03], np.float32)
    zero = np.full(scale.shape, 40, dtype)
    attributes = {} if axis is None else {"axis": axis}
    codes = assert_within_a_step("QuantizeLinear", [normal(2, 3, 5), scale, zero], attributes)
    expected, actual = both("DequantizeLinear", [codes, scale, zero], attributes)
    np.testing.assert_array_equal(actual[0], expected[0])
