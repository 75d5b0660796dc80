"""Nodes without kernel that run as the function their schema defines them by."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import foldline
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.structure import FunctionOp
from foldline.dialects.plan import CallOp
from foldline.importer import import_function, import_model
from foldline.kernels.registry import find_kernel
from foldline.lowering import Program, select_kernels
from foldline.lowering.expand_functions import function_of
from foldline.support.errors import UnsupportedOperator
from tests.lowering.models import every_kind, model, program

X = np.array([-3, -0.5, 0, 2], np.float32)


@pytest.fixture
def hide(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lets no kernel be found for the operators it is called with."""

    def hide(*op_types: str) -> None:
        def find(domain: str, op_type: str, *rest: Any) -> Any:
            return None if op_type in op_types else find_kernel(domain, op_type, *rest)

        monkeypatch.setattr(select_kernels, "find_kernel", find)

    return hide


def head(version: int) -> str:
    return f'<ir_version: 8, opset_import: ["" : {version}, "local" : 1]>'


def called(ready: Program) -> list[str]:
    return [op.operator[1] for op in ready.source.walk() if isinstance(op, CallOp)]


def check(hide: Any, graph: str, version: int, hidden: list[str], functions: str = "") -> list[str]:
    """What the graph gives is the same without the kernels; gives what is called instead."""
    expected = program(graph, head(version), functions).run([X])
    hide(*hidden)
    ready = program(graph, head(version), functions, read_function=import_function)
    for results in every_kind(ready, [X]):
        for own, wanted in zip(results, expected, strict=True):
            np.testing.assert_allclose(own, wanted, rtol=1e-6, atol=1e-7)
    assert not set(called(ready)) & set(hidden)
    return called(ready)


def test_attributes_and_defaults(hide: Any) -> None:
    graph = """g (float[4] x) => (float[4] a, float[4] b) {
        a = LeakyRelu <alpha = 0.5> (x)
        b = LeakyRelu(x) }"""
    assert "Where" in check(hide, graph, 16, ["LeakyRelu"])


def test_a_body_that_depends_on_the_node(hide: Any) -> None:
    graph = """g (float[4] x) => (float[4] a, float[4] b) {
        a = Gelu <approximate = "tanh"> (x)
        b = Gelu(x) }"""
    kernels = check(hide, graph, 20, ["Gelu"])
    assert {"Tanh", "Erf"} <= set(kernels)


def test_a_body_of_a_later_operator_set(hide: Any) -> None:
    check(hide, "g (float[4] x) => (float[4] y) { y = Softplus(x) }", 11, ["Softplus"])


def test_an_attribute_of_the_function_around(hide: Any) -> None:
    graph = "g (float[4] x) => (float[4] y) { y = local.steep <slope = 0.75> (x) }"
    functions = """<domain: "local", opset_import: ["" : 16]>
        steep <slope> (x) => (y) { y = LeakyRelu <alpha: float = @slope> (x) }"""
    check(hide, graph, 16, ["LeakyRelu"], functions)


def test_functions_made_of_functions(hide: Any) -> None:
    graph = """g (float[4] x) => (float y) <int64[1] labels = {2}, int64[2] s = {1, 4}> {
        z = Reshape(x, s)
        y = SoftmaxCrossEntropyLoss(z, labels) }"""
    kernels = check(hide, graph, 13, ["SoftmaxCrossEntropyLoss", "LogSoftmax"])
    assert "NegativeLogLikelihoodLoss" in kernels


def test_absent_inputs_and_outputs(hide: Any) -> None:
    graph = """g (float[4] x) => (float[4] a, float[4] b, float[1] inverse)
        <float[4] scale = {1, 2, 3, 4}> {
        a = LayerNormalization(x, scale)
        b, _, inverse = LayerNormalization(x, scale) }"""
    check(hide, graph, 17, ["LayerNormalization"])


def test_in_a_body_of_control_flow(hide: Any) -> None:
    graph = """g (float[4] x) => (float[4] y) <bool c = {1}> {
        y = If(c) <
            then_branch = t () => (float[4] p) { p = Mish(x) },
            else_branch = e () => (float[4] q) { q = Neg(x) }
        > }"""
    check(hide, graph, 18, ["Mish"])


def test_a_session_expands(hide: Any) -> None:
    source = model("g (float[4] x) => (float[4] y) { y = Mish(x) }", head(18))
    (expected,) = foldline.compile(source).session().run(None, {"x": X})
    hide("Mish")
    (y,) = foldline.compile(source).session().run(None, {"x": X})
    np.testing.assert_allclose(y, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("graph", "hidden"),
    [
        ("g (float[4] x) => (float[4] y) { y = Mish(x) }", ["Mish", "Tanh"]),
        ("g (float[4] x) => (float[4] y) { y = Abs(x) }", ["Abs"]),
        (
            "g (float[4] x) => (float[4] y) { a = Neg(x) y = LayerNormalization(a, a) }",
            ["LayerNormalization"],
        ),
    ],
    ids=["a part has no kernel", "no function", "types are not known"],
)
def test_what_cannot_be_expanded_is_named(hide: Any, graph: str, hidden: list[str]) -> None:
    hide(*hidden)
    with pytest.raises(
        UnsupportedOperator, match=rf"1 operator has no kernel:\n  ai.onnx {hidden[0]}"
    ):
        program(graph, head(20), read_function=import_function)


def test_without_a_reader_nothing_is_expanded(hide: Any) -> None:
    hide("Mish")
    with pytest.raises(UnsupportedOperator, match="Mish"):
        program("g (float[4] x) => (float[4] y) { y = Mish(x) }", head(18))


def test_nesting_is_bounded(hide: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A schema that is defined by itself has no kernel, and no end either."""
    hide("Mish")
    depth = 0

    def itself(op: NodeOp, read: Any) -> FunctionOp:
        nonlocal depth
        depth += 1
        found = function_of(op, read)
        assert found is not None
        return _of_itself(found)

    monkeypatch.setattr(select_kernels, "function_of", itself)
    with pytest.raises(UnsupportedOperator, match="Mish"):
        program(
            "g (float[4] x) => (float[4] y) { y = Mish(x) }",
            head(18),
            read_function=import_function,
        )
    assert depth == select_kernels.MOST_NESTED


def _of_itself(function: FunctionOp) -> FunctionOp:
    source = """g (float[4] x) => (float[4] y) { y = local.Mish(x) }"""
    body = '<domain: "local", opset_import: ["" : 18]> Mish (x) => (y) { y = Mish(x) }'
    module = import_model(model(source, head(18), body))
    return next(op for op in module.body.block.ops if isinstance(op, FunctionOp))
