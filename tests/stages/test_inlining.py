"""Moving bodies and handing results over: what stands where, what it is called."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.onnx.control import IfOp
from foldline.dialects.onnx.op import NodeOp, opset_versions, result_names
from foldline.dialects.onnx.structure import main_graph, terminator
from foldline.stages.context import PassContext
from foldline.stages.driver.traversal import Traversal
from foldline.stages.driver.visitor import NodeVisitor
from foldline.stages.inlining import (
    accepts,
    copy_refusal,
    derive,
    hand_over,
    label,
    move_body,
    move_refusal,
)
from foldline.stages.rewriting import count_nodes
from tests.stages.check import from_onnx, nodes, op_types

TEXT = """g (float[4] x, bool p) => (float[4] y) {
    [if] y = If(p) <then_branch = t () => (float[4] c) <float w = {1}> {
        [add] a = Add(x, w) [neg] c = Neg(a)
    }, else_branch = e () => (float[4] e) { e = Abs(x) }>
}"""


def conditional(module: ModuleOp) -> IfOp:
    return next(op for op in nodes(module) if isinstance(op, IfOp))


def test_a_body_moves_with_all_it_holds() -> None:
    module = from_onnx(TEXT)
    rewriter = PassContext(module).rewriter
    op = conditional(module)
    values = tuple(terminator(op.then_block).operands)
    assert move_refusal(op.then_block, op) is None
    assert copy_refusal(op, values, opset_versions(op)) is None
    moved = move_body(rewriter, op.then_block, op)
    assert moved == (values, 2)
    hand_over(rewriter, op, moved.values)
    inner = [op.name for op in main_graph(module).body.block.ops]
    assert inner == ["onnx.initializer", "onnx.Add", "onnx.Neg", "onnx.return"]
    assert result_names(nodes(module)[1]) == ("y",)
    assert rewriter.nodes == count_nodes(module) == 2


def test_a_copy_bears_the_name_that_a_value_cannot() -> None:
    module = from_onnx(TEXT)
    rewriter = PassContext(module).rewriter
    op = conditional(module)
    hand_over(rewriter, op, [main_graph(module).body.block.args[0]])
    (copy,) = nodes(module)
    assert copy.name == "onnx.Identity"
    assert result_names(copy) == ("y",)


def test_an_operator_that_cannot_copy_is_a_reason() -> None:
    module = from_onnx(TEXT)
    op = conditional(module)
    argument = main_graph(module).body.block.args[0]
    assert copy_refusal(op, [argument], {"": 21}) is None
    reason = copy_refusal(op, [argument], {})
    assert reason == "the output 'y' needs an Identity, which takes no tensor<4xf32> here"


@pytest.mark.parametrize(
    ("op_type", "version", "element", "expected"),
    [
        ("Identity", 1, "float", True),
        ("Identity", 1, "bfloat16", False),
        ("Identity", 13, "bfloat16", True),
        ("Constant", 1, "float", True),
        ("Constant", 1, "int64", False),
        ("Constant", 9, "int64", True),
        ("Mish", 17, "float", False),
    ],
)
def test_what_an_operator_takes(op_type: str, version: int, element: str, expected: bool) -> None:
    module = from_onnx(f"g ({element}[4] x) => ({element}[4] y) {{ y = Identity(x) }}")
    type_ = main_graph(module).body.block.args[0].type
    assert accepts(op_type, {"": version}, type_) is expected


def test_names_of_copies_begin_with_where_they_come_from() -> None:
    module = from_onnx(TEXT)
    op = conditional(module)
    copy = op.clone()
    derive(copy, label(op))
    names = [result_names(inner) for inner in copy.walk() if isinstance(inner, NodeOp)]
    assert names == [("if/y",), ("if/a",), ("if/c",), ("if/e",)]
    assert label(copy) == "if/if"


def test_visits_that_are_expected_are_granted() -> None:
    """A graph of one node may have ten visits; what it turns into needs more."""
    chain = " ".join(f"t{i + 1} = Neg(t{i})" for i in range(50))
    text = f"""g (float[4] x, bool p) => (float[4] y) {{
        y = If(p) <then_branch = t () => (float[4] t50) {{ t0 = Neg(x) {chain} }},
            else_branch = e () => (float[4] e) {{ e = Abs(x) }}>
    }}"""

    class Visitor(NodeVisitor):
        seen = 0
        expects = True

        def visit(self, op: NodeOp) -> None:
            self.seen += 1
            if isinstance(op, IfOp):
                moved = move_body(self.rewriter, op.then_block, op)
                if self.expects:
                    self.requests.expect(op, moved.nodes)
                hand_over(self.rewriter, op, moved.values)

    for expects in (True, False):
        context = PassContext(from_onnx(text))
        visitor = Visitor("test", context)
        visitor.expects = expects
        Traversal(context, [visitor]).run()
        assert (visitor.seen == 52) is expects
        assert bool(context.bounds) is not expects
        assert op_types(context.module) == ["Neg"] * 51
