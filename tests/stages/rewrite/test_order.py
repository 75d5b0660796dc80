"""Positions and the index, and that work grows with the graph only (group 24 of the rule API)."""

from __future__ import annotations

import random
from typing import Any

import pytest

from foldline.graph import ModelGraph
from foldline.stages.context import PassContext
from foldline.stages.rewrite.optimize import run_transforms
from foldline.stages.rewrite.order import SPACING, Index, Order
from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.search import Search
from foldline.stages.rewrite.transform import rewrite
from tests.stages.check import onnx_model
from tests.stages.rewrite.rules import chain, graph, one_relu, traced

BODY = """
    c = Constant<value = bool {1}>() a = Neg(x)
    b = If (c) <then_branch = t () => (float[2,3] u) { v = Neg(x) u = Neg(v) },
                else_branch = e () => (float[2,3] w) { w = Abs(x) }>
    y = Neg(b)
"""


def test_the_index_holds_operators_in_program_order() -> None:
    index = Index(graph(BODY).module)
    assert [op.op_type for op in index.every] == [
        "Constant",
        "Neg",
        "If",
        "Neg",
        "Neg",
        "Abs",
        "Neg",
    ]
    places = [index.place(op) for op in index.every]
    assert places == sorted(places)
    assert index.count(frozenset({("", "Neg"), ("", "Abs")})) == 5
    assert index.count(None) == 7
    assert index.candidates(frozenset({("", "Tanh")})) == []


def test_the_index_follows_changes() -> None:
    on = graph(BODY)
    index, context = Index(on.module), PassContext(on.module)
    context.rewriter.listener = index
    last = index.every[-1]
    copy = last.clone()
    context.rewriter.insert_before(copy, last)
    neg = frozenset({("", "Neg")})
    assert index.candidates(neg)[-2:] == [copy, last]
    context.rewriter.replace_uses(copy.results[0], copy.operands[0])
    context.rewriter.erase(copy)
    assert index.candidates(neg)[-1] is last
    holder = next(op for op in index.every if op.op_type == "If")
    context.rewriter.replace_uses(holder.results[0], index.every[1].results[0])
    context.rewriter.erase(holder)
    assert [op.op_type for op in index.every] == ["Constant", "Neg", "Neg"]


def test_insertions_are_numbered_between_their_neighbours() -> None:
    on = graph(" ".join(f"a{i} = Neg(x)" for i in range(20)) + " y = Neg(a1)")
    block = on.nodes[0].parent
    assert block is not None
    order = Order()
    order.number(block)
    drawn = random.Random(1)
    for _ in range(300):
        anchor = drawn.choice(list(block.ops)[1:])
        for copy in [on.nodes[0].clone() for _ in range(drawn.randint(1, 3))]:
            block.insert_op_before(copy, anchor)
        order.position(copy)
    positions = [order.position(op) for op in block.ops]
    assert positions == sorted(set(positions))
    assert order.renumberings == 0


def test_a_block_without_room_is_numbered_again() -> None:
    on = graph("a = Neg(x) y = Neg(a)")
    block, (first, last) = on.nodes[0].parent, on.nodes
    assert block is not None
    order = Order()
    order.number(block)
    for _ in range(SPACING.bit_length() + 2):
        copy = first.clone()
        block.insert_op_before(copy, last)
        order.position(copy)
    assert order.renumberings == 1
    positions = [order.position(op) for op in block.ops]
    assert positions == sorted(set(positions))


def test_what_is_put_first_or_last_has_room() -> None:
    on = graph("a = Neg(x) y = Neg(a)")
    block = on.nodes[0].parent
    assert block is not None
    order = Order()
    order.number(block)
    for _ in range(100):
        copy = on.nodes[0].clone()
        assert block.first_op is not None
        block.insert_op_before(copy, block.first_op)
        assert order.position(copy) < 0
    assert order.renumberings == 0


def long_chain(nodes: int, every: int = 10) -> ModelGraph:
    """Sigmoids in a row; in place of each tenth two Relus, read elsewhere by none."""
    body: list[str] = []
    value = "x"
    for i in range(nodes):
        op_type = "Relu" if i % every < 2 else "Sigmoid"
        body.append(f"v{i} = {op_type}({value})")
        value = f"v{i}"
    return ModelGraph(
        onnx_model(f"g (float[2,3] x) => (float[2,3] y) {{ {' '.join(body)} y = Neg({value}) }}")
    )


def work(nodes: int) -> dict[str, int]:
    """What a run over a chain takes, counted."""
    counts = {"predicates": 0, "conditions": 0}

    def counted(op: Any) -> bool:
        counts["predicates"] += 1
        return True

    def condition(match: Any) -> bool:
        counts["conditions"] += 1
        return True

    pattern = traced(lambda op, x: op.Relu(op.Relu(x, where=counted), where=counted))
    on = long_chain(nodes)
    context = PassContext(on.module)
    indices: list[Index] = []
    original = Search.find

    def find(self: Search, index: Index, *args: Any, **options: Any) -> Any:
        indices.append(index)
        return original(self, index, *args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Search, "find", find)
        report = run_transforms(context, [rewrite("rule", pattern, one_relu, condition)])
    assert report.row("rule").replacements == nodes // 10
    assert report.converged
    counts["indices"] = len({id(index) for index in indices})
    counts["renumberings"] = sum(index.order.renumberings for index in set(indices))
    return counts


def test_24_work_grows_with_the_graph_only() -> None:
    small, large = work(1_000), work(10_000)
    assert large["conditions"] == 10 * small["conditions"] == 1_000
    assert large["predicates"] <= 10 * small["predicates"] + 10
    assert large["predicates"] <= 10_000
    assert small["renumberings"] == large["renumberings"] == 0
    assert large["indices"] == 1, "an index follows what rules change"


def test_24_a_pattern_is_made_ready_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = rewrite("rule", chain("Relu", "Relu"), lambda b, m: b.Relu(m.inputs[0]))

    def variants(self: Pattern) -> Any:
        raise AssertionError("made ready again")

    monkeypatch.setattr(Pattern, "variants", variants)
    on = long_chain(100)
    assert run_transforms(PassContext(on.module), [rule]).row("rule").replacements == 10


def test_24_many_readers_cost_no_more_than_their_number() -> None:
    """Each replacement bypasses a node: what reads the value behind it is not looked at again."""
    readers = 2_000
    body = " ".join(f"n{i} = Neg(x) r{i} = Identity(n{i})" for i in range(readers))
    names = ", ".join(f"r{i}" for i in range(readers))
    on = ModelGraph(
        onnx_model(f"g (float[2,3] x) => (float y) {{ {body} s = Sum({names}) y = ReduceSum(s) }}")
    )
    rule = rewrite("rule", chain("Neg", "Identity"), lambda b, m: m.inputs[0])
    report = run_transforms(PassContext(on.module), [rule])
    assert report.row("rule").replacements == readers
