import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from foldline.kernels.rational_functions import rational_sigmoid, rational_tanh

SPECIAL = [0.0, -0.0, 9.0, -9.0, 18.0, -18.0, 100.0, -100.0, np.inf, -np.inf, np.nan, 1e-40]
EACH = pytest.mark.parametrize(
    ("op_type", "function"), [("Sigmoid", rational_sigmoid), ("Tanh", rational_tanh)]
)


@EACH
def test_the_bits_of_onnx_runtime(op_type, function):
    """Where it has fused multiply-adds, as on every machine with AVX2."""
    x = np.random.default_rng(0).standard_normal(5000).astype(np.float32) * 4
    x = np.concatenate((x, np.array(SPECIAL, np.float32)))
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, x.shape) for name in "xy"]
    graph = helper.make_graph([helper.make_node(op_type, ["x"], ["y"])], "g", info[:1], info[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (expected,) = session.run(None, {"x": x})
    actual = function(x)
    assert actual.dtype == np.float32
    np.testing.assert_array_equal(actual.view(np.int32)[:-2], expected.view(np.int32)[:-2])
    assert np.isnan(actual[-2])


@EACH
def test_near_the_exact_values(op_type, function):
    x = np.linspace(-20, 20, 4001, dtype=np.float32)
    wide = x.astype(np.float64)
    exact = np.tanh(wide) if op_type == "Tanh" else 1 / (1 + np.exp(-wide))
    np.testing.assert_allclose(function(x), exact, rtol=0, atol=5e-7)


@EACH
def test_no_elements_and_a_scalar(op_type, function):
    assert function(np.empty((0, 3), np.float32)).shape == (0, 3)
    assert function(np.zeros((), np.float32)).shape == ()
