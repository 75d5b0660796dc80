"""The traversal, scenario by scenario. Numbers are rows of the conformance table of GE's traversal
(section 9.3): its Data and Const nodes are ordinary nodes here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation

from foldline.dialects.onnx.op import NodeOp, result_names
from foldline.dialects.onnx.types import UNKNOWN
from foldline.stages.context import PassContext
from foldline.stages.driver import traversal
from foldline.stages.driver.block_walk import BlockWalk
from foldline.stages.driver.traversal import Traversal
from foldline.stages.driver.visitor import NodeVisitor
from foldline.support.errors import InvalidModel, PassFailed, ResourceLimit
from tests.stages.check import from_onnx, nodes

G1 = """g (float[4] x) => (float[4] reshape1) {
    data1 = Relu(x) const1 = Neg(x) add1 = Add(data1, const1) reshape1 = Abs(add1)
}"""
G2 = """g (float[4] x) => (float[4] sum1) {
    data1 = Relu(x) const1 = Neg(x) const2 = Exp(x) add1 = Add(data1, const1) shape1 = Abs(const2)
    reshape1 = Abs(add1) addn1 = Sum(shape1) sum1 = Sum(reshape1, addn1)
}"""
G4 = """g (float[4] x) => (float[4] shape1, float[4] shape2) {
    data1 = Relu(x) cast1 = Abs(data1) transdata1 = Neg(data1) shape1 = Abs(cast1)
    shape2 = Abs(transdata1)
}"""
BODIES = """g (bool c, float[4] x) => (float[4] last) {
    first = Relu(x)
    branch = If(c) <
        then_branch = t () => (float[4] t2) { t1 = Abs(first) t2 = Neg(t1) },
        else_branch = e () => (float[4] e1) { e1 = Exp(first) }>
    last = Abs(branch)
}"""


def label(op: Operation) -> str:
    return result_names(op)[0]


class Recorder(NodeVisitor):
    """Writes visits down; `on` says what to do at the first visit of a node."""

    def __init__(self, context: PassContext, on: dict[str, Callable[[Recorder, Operation], None]]):
        super().__init__("recorder", context)
        self.on = dict(on)
        self.visits: list[str] = []
        self.entered: list[Block] = []
        self.leaks: list[Callable[[Recorder], None]] = []
        self.ends: list[Callable[[Recorder], None]] = []
        self.by_name = {label(op): op for op in context.module.walk() if isinstance(op, NodeOp)}

    def enter(self, block: Block) -> None:
        self.entered.append(block)

    def visit(self, op: NodeOp) -> None:
        self.visits.append(label(op))
        action = self.on.pop(label(op), None)
        if action is not None:
            action(self, op)

    def on_leak(self) -> None:
        if self.leaks:
            self.leaks.pop(0)(self)

    def finish(self) -> None:
        if self.ends:
            self.ends.pop(0)(self)


def traverse(
    text: str | ModuleOp,
    prepare: Callable[[Recorder], None] = lambda _: None,
    **on: Callable[[Recorder, Operation], None],
) -> tuple[list[str], PassContext]:
    context = PassContext(from_onnx(text) if isinstance(text, str) else text)
    recorder = Recorder(context, on)
    prepare(recorder)
    Traversal(context, [recorder]).run()
    return recorder.visits, context


def repass(*names: str) -> Callable[[Recorder, Operation], None]:
    return lambda r, _: [r.requests.repass(r.by_name[n]) for n in names] and None


def now(*names: str) -> Callable[[Recorder, Operation], None]:
    return lambda r, _: [r.requests.repass_now(r.by_name[n]) for n in names] and None


def bypass(*names: str) -> Callable[[Recorder, Operation], None]:
    """Remove nodes, each replaced by its first input."""

    def act(recorder: Recorder, _: Operation) -> None:
        for name in names:
            op = recorder.by_name[name]
            recorder.rewriter.replace_uses(op.results[0], op.operands[0])
            recorder.rewriter.erase(op)

    return act


def test_55_56_first_in_first_out_topological_order() -> None:
    assert traverse(G1)[0] == ["data1", "const1", "add1", "reshape1"]
    assert traverse(G2)[0] == [
        *("data1", "const1", "const2"),
        *("add1", "shape1"),
        *("reshape1", "addn1"),
        "sum1",
    ]


def test_57_repass_of_nodes_not_yet_seen_is_ignored() -> None:
    assert len(traverse(G2, data1=repass("sum1", "addn1"))[0]) == 8


def test_58_59_repass_comes_after_the_queue_and_once() -> None:
    assert traverse(G1, add1=repass("data1"))[0] == [
        *("data1", "const1", "add1", "reshape1"),
        "data1",
    ]
    visits = traverse(G1, add1=repass("data1", "const1"), reshape1=repass("data1"))[0]
    assert visits[4:] == ["data1", "const1"]


def test_60_62_deleted_nodes_are_not_visited() -> None:
    assert "addn1" not in traverse(G2, add1=bypass("addn1"))[0]
    visits, context = traverse(G2, reshape1=bypass("data1", "const1"))
    assert Counter(visits) == Counter([*nodes_of(G2), "add1"])  # add1 has other operands now
    assert context.rewriter.nodes == 6


def test_61_followers_of_a_deleted_node_are_visited_once() -> None:
    visits, _ = traverse(G2, shape1=bypass("addn1", "shape1"))
    assert visits == ["data1", "const1", "const2", "add1", "shape1", "reshape1", "sum1"]


def test_63_repass_then_delete() -> None:
    def act(recorder: Recorder, op: Operation) -> None:
        repass("data1")(recorder, op)
        bypass("data1")(recorder, op)

    visits, _ = traverse(G2, sum1=act)
    assert Counter(visits)["data1"] == 1


def test_64_immediate_repass() -> None:
    assert traverse(G2, add1=now("data1"))[0].index("shape1") == 5
    assert traverse(G2, add1=now("add1"))[0][3:5] == ["add1", "add1"]
    assert len(traverse(G2, add1=now("sum1"))[0]) == 8


def test_immediate_repasses_come_in_the_order_asked_for() -> None:
    assert traverse(G1, add1=now("const1", "data1"))[0][3:5] == ["const1", "data1"]


def suspend(name: str) -> Callable[[Recorder, Operation], None]:
    return lambda r, _: r.requests.suspend(r.by_name[name])


def resume(name: str) -> Callable[[Recorder, Operation], None]:
    return lambda r, _: r.requests.resume(r.by_name[name])


def test_65_suspend_and_resume() -> None:
    later = traverse(G2, add1=suspend("add1"), addn1=resume("add1"))[0]
    assert later == [
        *("data1", "const1", "const2", "add1", "shape1", "addn1", "add1"),
        *("reshape1", "sum1"),
    ]

    def both(recorder: Recorder, op: Operation) -> None:
        recorder.requests.resume(op)
        recorder.requests.suspend(op)

    assert Counter(traverse(G2, add1=both)[0])["add1"] == 2
    assert len(traverse(G2, add1=resume("data1"))[0]) == 8


def test_66_nobody_resumes() -> None:
    with pytest.raises(PassFailed, match=r"nobody resumes suspended nodes: onnx\.Abs"):
        traverse(G4, data1=suspend("cast1"))


def test_67_the_leak_callback_resumes() -> None:
    def prepare(recorder: Recorder) -> None:
        recorder.leaks = [lambda r: r.requests.resume(r.by_name["cast1"])]

    visits, _ = traverse(G4, prepare, data1=suspend("cast1"))
    assert visits == ["data1", "transdata1", "shape2", "cast1", "shape1"]


def test_68_a_body_asks_for_a_node_of_the_graph_around() -> None:
    visits, _ = traverse(BODIES, e1=now("first"))
    assert visits == ["first", "branch", "t1", "t2", "e1", "branch", "first", "last"]


def test_69_a_node_is_visited_before_and_after_its_bodies() -> None:
    visits, _ = traverse(BODIES)
    assert visits == ["first", "branch", "t1", "t2", "e1", "branch", "last"]


def test_a_node_waits_for_what_its_bodies_read() -> None:
    text = """g (bool c, float[4] x) => (float[4] y) {
        a = Relu(x) b = Abs(a) d = Neg(b)
        y = If(c) < then_branch = t () => (float[4] u) { u = Abs(d) },
                    else_branch = e () => (float[4] v) { v = Exp(x) }>
    }"""
    assert traverse(text)[0] == ["a", "b", "d", "y", "u", "v", "y"]


@pytest.mark.parametrize("ask", [repass, now])
def test_70_the_bound_is_exact_and_reported(
    ask: Callable[[str], Callable[[Recorder, Operation], None]],
) -> None:
    class Restless(Recorder):
        def visit(self, op: NodeOp) -> None:
            super().visit(op)
            ask(label(op))(self, op)

    context = PassContext(from_onnx(G1), stage="stage1")
    recorder = Restless(context, {})
    Traversal(context, [recorder]).run()
    assert len(recorder.visits) == 40
    (bound,) = context.bounds
    assert bound == (
        "stage1: a graph of 4 nodes was left after 40 visits with work still asked for"
    )
    assert [remark.message for remark in context.remarks] == [bound]


def test_71_72_callbacks_start_rounds() -> None:
    def again(recorder: Recorder) -> None:
        recorder.requests.repass(recorder.by_name["const1"])

    visits, context = traverse(G1, lambda r: setattr(r, "ends", [again]))
    assert visits[4:] == ["const1"]
    assert not context.bounds
    visits, context = traverse(G1, lambda r: setattr(r, "ends", [again] * 100))
    assert len(visits) == 40
    assert context.bounds


def test_71_a_callback_asks_for_a_node_of_a_body() -> None:
    def again(recorder: Recorder) -> None:
        recorder.requests.repass(recorder.by_name["t1"])

    visits, _ = traverse(BODIES, lambda r: setattr(r, "ends", [again]))
    assert visits[7:] == ["branch", "t1", "t2", "e1", "branch"]


def test_73_a_callback_deletes_what_it_asks_for() -> None:
    def again(recorder: Recorder) -> None:
        recorder.requests.repass(recorder.by_name["reshape1"])
        bypass("reshape1")(recorder, recorder.by_name["reshape1"])

    visits, _ = traverse(G2, lambda r: setattr(r, "ends", [again]))
    assert visits[8:] == ["sum1"]  # its operand changed


def test_passes_after_a_deletion_are_skipped() -> None:
    context = PassContext(from_onnx(G1))
    one, two = Recorder(context, {"add1": bypass("add1")}), Recorder(context, {})
    Traversal(context, [one, two]).run()
    assert one.visits == ["data1", "const1", "add1", "reshape1"]
    assert two.visits == ["data1", "const1", "reshape1"]


def test_costs_are_kept_by_pass() -> None:
    context = PassContext(from_onnx(G1))
    deleting, idle = Recorder(context, {"add1": bypass("add1")}), Recorder(context, {})
    walk = Traversal(context, [idle, deleting])
    walk.run()
    assert [(cost.nodes, cost.changes > 0) for cost in walk.costs] == [(0, False), (-1, True)]
    assert all(cost.seconds > 0 for cost in walk.costs)


def test_created_nodes_are_visited_next() -> None:
    def act(recorder: Recorder, op: Operation) -> None:
        new = op.clone()
        recorder.rewriter.insert_before(new, op)
        recorder.by_name["new"] = new
        recorder.rewriter.set_operands(op, new.results)

    visits, _ = traverse(G1, reshape1=act)
    assert visits[3:] == ["reshape1", "reshape1", "reshape1"]  # it, the new one, it re-operanded


def test_readers_of_retyped_values_are_visited_again_if_they_were() -> None:
    def act(recorder: Recorder, _: Operation) -> None:
        recorder.rewriter.set_type(recorder.by_name["data1"].results[0], UNKNOWN)

    assert traverse(G1, reshape1=act)[0][4:] == ["add1"]
    assert len(traverse(G1, const1=act)[0]) == 4


def test_functions_are_walked_after_the_graph_callers_first() -> None:
    text = """g (float[4] x) => (float[4] y) { y = local.outer(x) }
    <opset_import: ["" : 21, "local" : 1], domain: "local">
    inner (a) => (b) { b = Relu(a) }
    <opset_import: ["" : 21, "local" : 1], domain: "local">
    outer (c) => (e) { d = Neg(c) e = local.inner(d) }"""
    assert traverse(text)[0] == ["y", "d", "e", "b"]


def test_a_function_that_calls_itself_is_refused() -> None:
    module = from_onnx("""g (float[4] x) => (float[4] y) { y = local.f(x) }
    <opset_import: ["" : 21, "local" : 1], domain: "local"> f (a) => (b) { b = local.f(a) }""")
    with pytest.raises(InvalidModel, match="calls itself"):
        traverse(module)


def test_nesting_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traversal, "MAX_NESTING", 0)
    with pytest.raises(ResourceLimit, match="deeper than 0"):
        traverse(BODIES)
    assert traverse(G1)[0]


def test_a_wide_node_costs_no_more_than_its_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each input of a wide node is asked a bounded number of times whether it was seen."""
    width = 300
    chain = "".join(f"v{i + 1} = Neg(v{i})\n" for i in range(width))
    names = ", ".join(f"v{i + 1}" for i in range(width))
    original, asked = BlockWalk.is_awaited, Counter[str]()

    def counted(walk: BlockWalk, producer: Operation | Block) -> bool:
        asked["times"] += 1
        return original(walk, producer)

    monkeypatch.setattr(BlockWalk, "is_awaited", counted)
    visits, _ = traverse(f"g (float[4] v0) => (float[4] y) {{ {chain} y = Sum({names}) }}")
    assert visits[-1] == "y"
    assert asked["times"] < 10 * width


def nodes_of(text: str) -> list[str]:
    return [label(op) for op in nodes(from_onnx(text))]
