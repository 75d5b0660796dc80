"""One node of ONNX Runtime's own operators, by ONNX Runtime and by a session of Foldline."""

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

import foldline
from foldline.dialects.onnx.structure import main_graph, terminator
from foldline.dialects.onnx.types import element_of, element_type, static_shape


def both(op_type, inputs, attributes=None, *, outputs=1, domain="com.microsoft", constant=()):
    """The results of ONNX Runtime and of Foldline.

    `outputs`: how many, or for each whether it is asked for. `constant`: positions of inputs that
    are initializers. What Foldline infers of the results is checked too, and that the plan for the
    shapes gives what the shape-generic program gives.
    """
    asked = (True,) * outputs if isinstance(outputs, int) else outputs
    model = one_node(op_type, inputs, attributes or {}, asked, domain, constant)
    feed = {f"x{i}": x for i, x in enumerate(inputs) if x is not None and i not in constant}
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    expected = onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, feed)
    return expected, own_results(model, feed)


def own_results(model, feed):
    """What Foldline computes, and says of it before."""
    compiled = foldline.compile(model)
    session = compiled.session()
    first, *later = (session.run(None, feed) for _ in range(4))
    returned = terminator(main_graph(compiled.module).body.block).operands
    for index, result in enumerate(first):
        declared = returned[index].type
        assert static_shape(declared) == result.shape
        element = element_of(element_type(declared))
        assert element.numpy == result.dtype
        for again in later:
            np.testing.assert_array_equal(again[index], result)
    return first


def one_node(op_type, inputs, attributes, asked, domain="com.microsoft", constant=()):
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    results = [f"y{i}" * wanted for i, wanted in enumerate(asked)]
    given = [(i, name, x) for i, (name, x) in enumerate(zip(names, inputs, strict=True)) if name]
    graph = helper.make_graph(
        [helper.make_node(op_type, names, results, "node", domain=domain, **attributes)],
        "one_node",
        [
            helper.make_tensor_value_info(name, _code(x), x.shape)
            for i, name, x in given
            if i not in constant
        ],
        [
            helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None)
            for name in results
            if name
        ],
        [
            helper.make_tensor(name, _code(x), x.shape, x.tobytes(), raw=True)
            for i, name, x in given
            if i in constant
        ],
    )
    for output in graph.output:
        output.ClearField("type")
    imports = [helper.make_opsetid("", 16), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def assert_close(op_type, inputs, attributes=None, *, tolerance=2e-6, **rest):
    """The results agree: floats nearly, integers exactly. Returns those of Foldline."""
    expected, actual = both(op_type, inputs, attributes, **rest)
    for own, wanted in zip(actual, expected, strict=True):
        assert own.dtype == wanted.dtype
        assert own.shape == wanted.shape
        np.testing.assert_allclose(own, wanted, rtol=tolerance, atol=tolerance)
    return actual


def normal(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def integers(*shape, dtype=np.uint8, seed=0):
    info = np.iinfo(dtype)
    random = np.random.default_rng(seed)
    return random.integers(info.min, info.max, shape, endpoint=True).astype(dtype)


def scalar(value, dtype=np.float32):
    return np.array(value, dtype)


def _code(x):
    return helper.np_dtype_to_tensor_dtype(x.dtype)
