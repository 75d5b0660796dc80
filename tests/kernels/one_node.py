"""One node run by ONNX Runtime, unoptimised: the oracle of kernel tests, and how to ask it."""

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from foldline.kernels.registry import compute, find_kernel

ML = "ai.onnx.ml"


def onnxruntime_results(
    op_type, opset, inputs, attributes, *, domain="", outputs=(None,), map_types=None
):
    """Results of one node; `outputs` are their types, by code or TypeProto, None to infer them.

    `map_types` are (key code, value code) of inputs that are dicts.
    """
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    feed = {name: x for name, x in zip(names, inputs, strict=True) if name}
    results = [f"y{i}" for i in range(len(outputs))]
    graph = helper.make_graph(
        [helper.make_node(op_type, names, results, domain=domain, **attributes)],
        "one_node",
        [helper.make_value_info(name, _type(x, map_types)) for name, x in feed.items()],
        [
            helper.make_value_info(name, given)
            if isinstance(given, onnx.TypeProto)
            else helper.make_tensor_value_info(name, given or TensorProto.UNDEFINED, None)
            for name, given in zip(results, outputs, strict=True)
        ],
    )
    imports = {"": 22, domain: opset}
    opsets = [helper.make_opsetid(name, version) for name, version in imports.items()]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    if None in outputs:
        model = onnx.shape_inference.infer_shapes(model)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return session.run(None, feed)


def own_results(op_type, opset, inputs, attributes, *, domain=""):
    """What the registered kernel computes, with the defaults of the schema, as a tuple."""
    schema = onnx.defs.get_schema(op_type, opset, domain)
    keywords = {
        name: helper.get_attribute_value(attribute.default_value)
        for name, attribute in schema.attributes.items()
        if attribute.default_value.name
    }
    keywords = {k: v.decode() if isinstance(v, bytes) else v for k, v in keywords.items()}
    keywords |= {name: _kernel_value(value) for name, value in attributes.items()}
    entry = find_kernel(domain, op_type, schema.since_version)
    results = compute(entry, inputs, **keywords)
    return results if isinstance(results, tuple) else (results,)


def assert_as_onnxruntime(
    op_type, opset, inputs, attributes, *, domain="", outputs=(None,), tolerance=2e-5
):
    """The kernel gives what the runtime gives: dtypes, shapes, labels, numbers nearly."""
    expected = onnxruntime_results(
        op_type, opset, inputs, attributes, domain=domain, outputs=outputs
    )
    with np.errstate(all="ignore"):
        actual = own_results(op_type, opset, inputs, attributes, domain=domain)
    for own, wanted in zip(actual, map(np.asarray, expected), strict=True):
        assert own.dtype == (object if wanted.dtype.kind == "U" else wanted.dtype)
        assert own.shape == wanted.shape
        if own.dtype.kind == "f":
            np.testing.assert_allclose(own, wanted, rtol=tolerance, atol=tolerance)
        else:
            assert own.tolist() == wanted.tolist()


def _type(value, map_types):
    if isinstance(value, dict):
        key, element = map_types
        made = onnx.TypeProto()
        made.map_type.key_type = key
        made.map_type.value_type.CopyFrom(helper.make_tensor_type_proto(element, None))
        return made
    is_text = value.dtype == object
    code = TensorProto.STRING if is_text else helper.np_dtype_to_tensor_dtype(value.dtype)
    return helper.make_tensor_type_proto(code, list(value.shape))


def _kernel_value(value):
    """An attribute in the form kernels take it: tuples, float32 values, arrays."""
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    if isinstance(value, list | tuple):
        return tuple(_kernel_value(one) for one in value)
    return float(np.float32(value)) if isinstance(value, float) else value
