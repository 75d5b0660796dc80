"""The rewriter: names, provenance, facts, counts."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Operation, SSAValue

from foldline.dialects.onnx.attributes import TextsAttr
from foldline.dialects.onnx.constant import is_constant
from foldline.dialects.onnx.op import NodeOp, node_name, result_names
from foldline.stages.rewriting import (
    MAX_PROVENANCE,
    Rewriter,
    count_nodes,
    is_returned,
    names_graph_output,
)
from tests.stages.check import from_onnx, named, nodes, op_types

MODEL = """g (bool c, float[4] x) => (float[2] y, float[2] z) <float[4] w = {1, 2, 3, 4}> {
    [split] a, b = Split<num_outputs = 2>(w) [add] y = Add(a, b)
    [if] z = If(c) <then_branch = t () => (float[2] u) { [neg] u = Neg(a) },
               else_branch = e () => (float[2] v) { [abs] v = Abs(b) }>
}"""
HALVES = (np.float32([1, 2]), np.float32([3, 4]))


def node(module: ModuleOp, name: str) -> NodeOp:
    op = named(module, name)
    assert isinstance(op, NodeOp)
    return op


class Heard:
    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []

    def _hear(self, kind: str, op: Operation) -> None:
        self.events.append((kind, node_name(op) or op.name))

    def created(self, op: Operation) -> None:
        self._hear("created", op)

    def changed(self, op: Operation) -> None:
        self._hear("changed", op)

    def erasing(self, op: Operation) -> None:
        self._hear("erasing", op)

    def retyped(self, value: SSAValue) -> None:
        owner = value.owner
        assert isinstance(owner, Operation)
        self._hear("retyped", owner)


def test_nodes_are_counted_without_a_walk() -> None:
    module = from_onnx(MODEL)
    rewriter = Rewriter(module)
    assert rewriter.nodes == count_nodes(module) == 5
    rewriter.replace_by_constants(node(module, "split"), HALVES)
    assert rewriter.nodes == count_nodes(module) == 4
    branch = node(module, "if")
    rewriter.replace_uses(branch.results[0], node(module, "add").results[0])
    rewriter.erase(branch)
    assert rewriter.nodes == count_nodes(module) == 1


def test_constants_take_names_and_leave_no_orphan() -> None:
    module = from_onnx(MODEL)
    Rewriter(module).replace_by_constants(node(module, "split"), HALVES)
    first, second = nodes(module)[:2]
    assert (node_name(first), result_names(first)) == ("split", ("a",))
    assert (node_name(second), result_names(second)) == (None, ("b",))
    assert not [op for op in module.walk() if op.name == "onnx.initializer"]


def test_provenance_is_bounded() -> None:
    length = MAX_PROVENANCE + 5
    chain = "".join(f"[k{i}] v{i + 1} = Neg(v{i})\n" for i in range(length))
    module = from_onnx(f"g (float[2] v0) => (float[2] y) {{ {chain} y = Abs(v{length}) }}")
    rewriter = Rewriter(module)
    for index in range(length):
        rewriter.replace_by_constants(node(module, f"k{index}"), [np.float32([1, index])])
    (constant,) = (op for op in module.walk() if is_constant(op))
    given = constant.attributes["fold.from_folding"]
    assert isinstance(given, TextsAttr)
    assert given.data == tuple(f"k{length - 1 - i}" for i in range(MAX_PROVENANCE))


def test_facts_of_readers_are_dropped() -> None:
    module = from_onnx(MODEL)
    for name in ("add", "neg", "abs"):
        node(module, name).attributes["fold.known"] = UnitAttr()
    split = node(module, "split")
    Rewriter(module).replace_uses(split.results[0], split.results[1])
    assert "fold.known" not in node(module, "add").attributes
    assert "fold.known" not in node(module, "neg").attributes
    assert "fold.known" in node(module, "abs").attributes


def test_the_listener_hears_of_every_change() -> None:
    module = from_onnx(MODEL)
    rewriter, heard = Rewriter(module), Heard()
    rewriter.listener = heard
    add = node(module, "add")
    rewriter.set_type(add.results[0], add.results[0].type)
    rewriter.set_operands(add, [add.operands[0], add.operands[0]])
    rewriter.replace_by_constants(node(module, "split"), HALVES)
    assert [event for event in heard.events if event[1] != "onnx.initializer"] == [
        ("retyped", "add"),
        ("changed", "add"),
        ("created", "split"),
        *[("changed", name) for name in ("add", "neg")],
        ("created", "onnx.Constant"),
        ("changed", "abs"),
        ("erasing", "split"),
    ]
    assert rewriter.changes == len(heard.events)


def test_outputs_of_the_model_and_of_bodies() -> None:
    module = from_onnx(MODEL)
    assert names_graph_output(node(module, "add")) == "y"
    assert names_graph_output(node(module, "split")) is None
    assert names_graph_output(node(module, "neg")) is None
    assert is_returned(node(module, "neg").results[0])


def test_an_output_of_two_names_is_one_value() -> None:
    module = from_onnx(
        "g (float[2] x) => (float[2] y, float[2] y) { a = Neg(x) [i] y = Identity(a) }"
    )
    op = node(module, "i")
    assert Rewriter(module).replace_values(op, [op.operands[0]]) is None
    assert op_types(module) == ["Neg"]
    assert result_names(nodes(module)[0]) == ("y",)
