from __future__ import annotations

import pytest

from foldline.dialects.onnx.op import NodeOp
from foldline.importer import import_model
from foldline.lowering.select_kernels import select_kernels
from foldline.support.errors import FoldlineError, UnsupportedOperator
from tests.lowering.models import model

HEAD = '<ir_version: 8, opset_import: ["" : 17, "test.nowhere" : 3, "local" : 1]>'


def _refusal(graph: str, functions: str = "") -> str:
    with pytest.raises(UnsupportedOperator) as caught:
        select_kernels(import_model(model(graph, HEAD, functions)))
    return str(caught.value)


def test_every_unsupported_operator_is_named_once() -> None:
    message = _refusal("""g (float[2] x) => (float[2] y) {
        [one] a = test.nowhere.Foo(x)
        b = Neg(a)
        [two] c = test.nowhere.Foo(b)
        y = test.nowhere.Bar(c) }""")
    assert message.startswith("2 operators have no kernel:")
    assert "test.nowhere Bar, version 3, 1 node: 'y'" in message
    assert "test.nowhere Foo, version 3, 2 nodes: 'one', 'two'" in message
    assert "Neg" not in message
    assert message.count("no operator of this domain is known") == 2
    assert message.endswith("or export the model without it")


def test_a_misspelt_operator_is_guessed() -> None:
    message = _refusal("g (float[2] x) => (float[2] y) { y = Rleu(x) }")
    assert "ai.onnx Rleu, version 17, 1 node: 'y'; did you mean 'Relu'?" in message


def test_bodies_and_called_functions_are_looked_into() -> None:
    message = _refusal(
        """g (float[2] x, bool c) => (float[2] y) {
            a = local.called(x)
            y = If(c) <
                then_branch = t () => (float[2] p) { p = test.nowhere.InBody(a) },
                else_branch = e () => (float[2] q) { q = Identity(a) }
            > }""",
        """<domain: "local", opset_import: ["" : 17, "test.nowhere" : 4]>
           called (x) => (y) { y = test.nowhere.InFunction(x) }
           <domain: "local", opset_import: ["" : 17, "test.nowhere" : 4]>
           idle (x) => (y) { y = test.nowhere.Idle(x) }""",
    )
    assert "test.nowhere InBody, version 3, 1 node" in message
    assert "test.nowhere InFunction, version 4, 1 node" in message
    assert "Idle" not in message


def test_the_version_of_the_node_chooses() -> None:
    chosen: dict[str, int] = {}
    for version, axes in ((11, "<axes = [0]>(x)"), (13, "(x, a)")):
        head = f'<ir_version: 8, opset_import: ["" : {version}]>'
        graph = f"g (float[1,2] x) => (float[2] y) <int64[1] a = {{0}}> {{ y = Squeeze{axes} }}"
        ((op, selected),) = select_kernels(import_model(model(graph, head))).items()
        assert isinstance(op, NodeOp)
        chosen[selected.kernel.function.__name__] = selected.since
    assert chosen == {"squeeze_by_attribute": 11, "squeeze": 13}


def test_a_grade_can_be_asked_for() -> None:
    module = import_model(model("g (float[2,2] x) => (float[2,2] y) { y = MatMul(x, x) }"))
    grades = [select_kernels(module, [grade]) for grade in ("fast", "reference")]
    assert [next(iter(g.values())).kernel.grade for g in grades] == ["fast", "reference"]


def test_recursive_functions_are_refused() -> None:
    functions = """<domain: "local", opset_import: ["local" : 1]>
        ping (x) => (y) { y = local.pong(x) }
        <domain: "local", opset_import: ["local" : 1]>
        pong (x) => (y) { y = local.ping(x) }"""
    with pytest.raises(FoldlineError, match="ping"):
        select_kernels(
            import_model(
                model("g (float[2] x) => (float[2] y) { y = local.ping(x) }", HEAD, functions)
            )
        )
