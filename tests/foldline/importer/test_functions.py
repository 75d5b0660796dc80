"""Local functions: parameters, imports, overloads, optional inputs; imported and optimised."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, FunctionProto, ModelProto, NodeProto, TensorProto, helper

import foldline
from foldline.support.errors import InvalidModel

X = np.array([[-1, 2]], np.float32)
LEVELS = ("O0", "O3")


def function(name: str, nodes: list[NodeProto], **given: Any) -> FunctionProto:
    """A function of `a` that gives `b`."""
    settings: dict[str, Any] = {"inputs": ["a"], "outputs": ["b"], "opset": 17, **given}
    imports = [helper.make_opsetid("", settings.pop("opset")), helper.make_opsetid("local", 1)]
    return helper.make_function("local", name, nodes=nodes, opset_imports=imports, **settings)


def leaky(parameter: str) -> NodeProto:
    """LeakyRelu whose alpha is a parameter of the function."""
    node = helper.make_node("LeakyRelu", ["a"], ["b"])
    node.attribute.append(reference("alpha", parameter))
    return node


def reference(name: str, parameter: str) -> AttributeProto:
    return AttributeProto(name=name, ref_attr_name=parameter, type=AttributeProto.FLOAT)


def call(name: str = "F", inputs: tuple[str, ...] = ("x",), **attributes: Any) -> NodeProto:
    return helper.make_node(name, inputs, ["y"], name="call", domain="local", **attributes)


def model(node: NodeProto, *functions: FunctionProto) -> ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    one = helper.make_tensor("one", TensorProto.FLOAT, [], [1])
    graph = helper.make_graph([node], "g", [x], [y], [one])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=10)


def results(given: ModelProto) -> list[Any]:
    """The output at each level, and that of the exported model."""
    found: list[Any] = []
    for level in LEVELS:
        compiled = foldline.compile(given, options={"oo.level": level})
        found += compiled.session().run(None, {"x": X})
        again = foldline.compile(compiled.to_bytes(), options={"oo.level": "O0"})
        found += again.session().run(None, {"x": X})
    return found


def refusal(given: ModelProto) -> str:
    """What is said of a model; the same at each level."""
    messages: set[str] = set()
    for level in LEVELS:
        with pytest.raises(InvalidModel) as caught:
            foldline.compile(given, options={"oo.level": level})
        messages.add(str(caught.value))
    (message,) = messages
    return message


PARAMETER = {"attributes": ["alpha"]}
DEFAULT = {"attribute_protos": [helper.make_attribute("alpha", 0.25)]}
PASSED_ON = helper.make_node("G", ["a"], ["b"], domain="local")
PASSED_ON.attribute.append(reference("beta", "alpha"))


@pytest.mark.parametrize(
    ("given", "slope"),
    [
        (model(call(alpha=0.5), function("F", [leaky("alpha")], **PARAMETER)), 0.5),
        (model(call(alpha=0.5), function("F", [leaky("alpha")], **DEFAULT)), 0.5),
        (model(call(), function("F", [leaky("alpha")], **DEFAULT)), 0.25),
        (model(call(), function("F", [leaky("alpha")], **PARAMETER)), 0.01),
        (
            model(
                call(alpha=0.5),
                function("F", [PASSED_ON], **PARAMETER),
                function("G", [leaky("beta")], attributes=["beta"]),
            ),
            0.5,
        ),
        (
            model(
                call(),
                function("F", [PASSED_ON], **PARAMETER),
                function(
                    "G", [leaky("beta")], attribute_protos=[helper.make_attribute("beta", 0.75)]
                ),
            ),
            0.75,
        ),
    ],
    ids=["given", "given over default", "default", "of the operator", "nested", "nested default"],
)
def test_a_parameter_is_the_callers_else_the_default_else_left_out(
    given: ModelProto, slope: float
) -> None:
    for result in results(given):
        np.testing.assert_array_equal(result, [[np.float32(-slope), 2]])


def test_missing_inputs_are_absent_ones() -> None:
    clip = function("F", [helper.make_node("Clip", ["a", "lo", "hi"], ["b"])])
    del clip.input[:]
    clip.input.extend(["a", "lo", "hi"])
    for result in results(model(call(), clip)):
        np.testing.assert_array_equal(result, X)
    for result in results(model(call(inputs=("x", "", "one")), clip)):
        np.testing.assert_array_equal(result, [[-1, 1]])


def test_a_function_runs_by_its_own_import() -> None:
    """Softmax 11 takes all axes from `axis` on as one; Squeeze 11 has its axes as attribute."""
    softmax = function("F", [helper.make_node("Softmax", ["a"], ["b"], axis=0)], opset=11)
    expected = np.exp(X) / np.exp(X).sum()
    for result in results(model(call(), softmax)):
        np.testing.assert_allclose(result, expected, rtol=1e-6)
    squeeze = function("F", [helper.make_node("Squeeze", ["a"], ["b"], axes=[0])], opset=11)
    for result in results(model(call(), squeeze)):
        np.testing.assert_array_equal(result, X[0])


def test_overloads_are_told_apart() -> None:
    negative = function("F", [helper.make_node("Neg", ["a"], ["b"])])
    absolute = function("F", [helper.make_node("Abs", ["a"], ["b"])], overload="abs")
    for result in results(model(call(overload="abs"), negative, absolute)):
        np.testing.assert_array_equal(result, [[1, 2]])
    for result in results(model(call(), negative, absolute)):
        np.testing.assert_array_equal(result, [[1, -2]])


def test_ai_onnx_is_the_default_domain_of_functions_too() -> None:
    given = model(helper.make_node("Foo", ["x"], ["y"]))
    given.functions.append(function("Foo", [helper.make_node("Neg", ["a"], ["b"])]))
    given.functions[0].domain = "ai.onnx"
    session = foldline.compile(given).session()
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], [[1, -2]])


def test_nodes_of_a_function_are_sorted() -> None:
    nodes = [helper.make_node("Neg", ["t"], ["b"]), helper.make_node("Abs", ["a"], ["t"])]
    given = model(call(), function("F", nodes))
    report = foldline.compile(given).report
    notes = [remark.message for remark in report.remarks if remark.stage == "import"]
    assert notes == [
        "function 'local::F': nodes were not in topological order and have been sorted"
    ]
    for result in results(given):
        np.testing.assert_array_equal(result, [[-1, -2]])


def test_a_domain_imported_twice_is_named() -> None:
    neg = function("F", [helper.make_node("Neg", ["a"], ["b"])])
    neg.opset_import.append(helper.make_opsetid("ai.onnx", 14))
    report = foldline.compile(model(call(), neg)).report
    assert report.remarks[0].message == (
        "function 'local::F': domain 'ai.onnx' is imported at versions 17, 14; the highest is taken"
    )


CALLS_F = helper.make_node("F", ["a"], ["b"], domain="local")
CALLS_G = helper.make_node("G", ["a"], ["b"], domain="local")


def _in_a_branch() -> list[NodeProto]:
    out = helper.make_tensor_value_info("t", TensorProto.FLOAT, None)
    inner = helper.make_node("F", ["a"], ["t"], domain="local")
    body = helper.make_graph([inner], "body", [], [out])
    true = helper.make_tensor("true", TensorProto.BOOL, [], [True])
    return [
        helper.make_node("Constant", [], ["c"], value=true),
        helper.make_node("If", ["c"], ["b"], then_branch=body, else_branch=body),
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (model(call(), function("F", [CALLS_F])), "in a circle: local::F -> local::F"),
        (
            model(call(), function("F", [CALLS_G]), function("G", [CALLS_F])),
            "in a circle: local::F -> local::G -> local::F",
        ),
        (model(call(), function("F", _in_a_branch())), "in a circle: local::F -> local::F"),
        (
            model(call(), function("F", [leaky("beta")], **PARAMETER)),
            "attribute 'alpha' refers to 'beta', which the function does not declare",
        ),
        (
            model(call(alpha=3), function("F", [leaky("alpha")], **PARAMETER)),
            "onnx.call (node 'call'): attribute 'alpha' of 'local::F' is INT, expected FLOAT",
        ),
        (
            model(call(alpa=3.0), function("F", [leaky("alpha")], **PARAMETER)),
            "'local::F' has no attribute 'alpa'; did you mean 'alpha'?",
        ),
        (
            model(call(inputs=("x", "x")), function("F", [leaky("alpha")], **PARAMETER)),
            "has 2 inputs, 'local::F' has 1",
        ),
        (
            model(call(), function("F", [leaky("alpha")], opset=99, **PARAMETER)),
            "function 'local::F' imports version 99 of domain 'ai.onnx'",
        ),
        (
            model(call(), function("F", [leaky("alpha")], **PARAMETER, **DEFAULT)),
            "default of 'alpha' is given twice",
        ),
        (
            model(call(), function("F", [helper.make_node("Neg", ["x"], ["b"])])),
            "function 'local::F': node 'b' (Neg) reads 'x', which nothing defines",
        ),
    ],
)
def test_what_is_wrong_with_a_function_is_named(given: ModelProto, message: str) -> None:
    assert message in refusal(given)


def test_a_function_that_imports_nothing_is_refused() -> None:
    neg = function("F", [helper.make_node("Neg", ["a"], ["b"])])
    del neg.opset_import[:]
    assert "operator set 'ai.onnx' is not imported" in refusal(model(call(), neg))


def test_files_pass_the_checker() -> None:
    given = model(call(), function("F", [leaky("alpha")], **DEFAULT))
    given.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2]))
    for level in LEVELS:
        onnx.checker.check_model(foldline.optimize(given, options={"oo.level": level}), True)
