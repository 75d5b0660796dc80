"""The traversal as GE's own tests describe it, rows 55 to 73, and what is ours.

GE's Data and Const nodes are ordinary nodes here. Rows 74 to 79 stand in
`tests/stages/ge/test_rows_74_to_79.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from xdsl.ir import Operation

from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.types import UNKNOWN
from foldline.stages.context import PassContext
from foldline.stages.driver import traversal
from foldline.stages.driver.traversal import Traversal
from foldline.support.errors import InvalidModel, PassFailed, ResourceLimit
from tests.stages.check import from_onnx, nodes
from tests.stages.driver.recording import (
    Action,
    Recorder,
    both,
    bypass,
    label,
    now,
    repass,
    resume,
    suspend,
    traverse,
)

G1 = """g (float[4] x) => (float[4] reshape1) {
    data1 = Relu(x) const1 = Neg(x) add1 = Add(data1, const1) reshape1 = Abs(add1)
}"""
G2 = """g (float[4] x) => (float[4] sum1) {
    data1 = Relu(x) const1 = Neg(x) const2 = Exp(x) add1 = Add(data1, const1) shape1 = Abs(const2)
    reshape1 = Abs(add1) addn1 = Sum(shape1) sum1 = Sum(reshape1, addn1)
}"""
G2_DEPENDENT = G2.replace("add1 = Add(data1, const1)", "").replace(
    "reshape1 =", "add1 = Sum(data1, const1, shape1) reshape1 ="
)
"""G2 with its control edge, from shape1 to add1, as an input."""
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


def test_rows_55_and_56_first_in_first_out_topological_order() -> None:
    assert traverse(G1)[0] == ["data1", "const1", "add1", "reshape1"]
    assert traverse(G2)[0] == [
        *("data1", "const1", "const2"),
        *("add1", "shape1"),
        *("reshape1", "addn1"),
        "sum1",
    ]
    assert traverse(G2_DEPENDENT)[0] == [
        *("data1", "const1", "const2", "shape1"),
        *("add1", "addn1", "reshape1", "sum1"),
    ]


def test_row_57_repass_of_nodes_not_yet_seen_is_ignored() -> None:
    assert len(traverse(G2, data1=repass("sum1", "addn1"))[0]) == 8


def test_rows_58_and_59_repass_comes_after_the_queue_and_once() -> None:
    assert traverse(G1, add1=repass("data1"))[0] == [
        *("data1", "const1", "add1", "reshape1"),
        "data1",
    ]
    visits = traverse(G1, add1=repass("data1", "const1"), reshape1=repass("data1"))[0]
    assert visits[4:] == ["data1", "const1"]


def test_rows_60_and_62_deleted_nodes_are_not_visited() -> None:
    for gone in (["shape1"], ["addn1"], ["sum1"], ["sum1", "reshape1"]):
        visits, _ = traverse(G2, add1=bypass(*gone))
        assert Counter(visits) == Counter(set(labels(G2)) - set(gone))
    visits, context = traverse(G2, reshape1=bypass("data1", "const1"))
    assert Counter(visits) == Counter([*labels(G2), "add1"])  # add1 has other operands now
    assert context.rewriter.nodes == 6


def test_row_61_followers_of_a_deleted_node_are_visited_once() -> None:
    visits, _ = traverse(G2, shape1=bypass("addn1", "shape1"))
    assert visits == ["data1", "const1", "const2", "add1", "shape1", "reshape1", "sum1"]
    act = both(bypass("add1", "addn1"), repass("shape1", "reshape1", "sum1"))
    visits, _ = traverse(G2_DEPENDENT, shape1=act)
    assert visits == ["data1", "const1", "const2", "shape1", "reshape1", "sum1", "shape1"]


def test_row_63_repass_then_delete() -> None:
    visits, _ = traverse(G2, sum1=both(repass("data1"), bypass("data1")))
    assert Counter(visits)["data1"] == 1
    visits, _ = traverse(G2, add1=both(repass("sum1"), bypass("sum1")))
    assert Counter(visits) == Counter(set(labels(G2)) - {"sum1"})


def test_row_64_immediate_repass() -> None:
    assert traverse(G2, add1=now("data1"))[0].index("shape1") == 5
    assert traverse(G2, add1=now("add1"))[0][3:5] == ["add1", "add1"]
    assert len(traverse(G2, add1=now("sum1"))[0]) == 8


def test_immediate_repasses_come_in_the_order_asked_for() -> None:
    assert traverse(G1, add1=now("const1", "data1"))[0][3:5] == ["const1", "data1"]


def test_row_65_suspend_and_resume() -> None:
    later = traverse(G2, add1=suspend("add1"), addn1=resume("add1"))[0]
    assert later == [
        *("data1", "const1", "const2", "add1", "shape1", "addn1", "add1"),
        *("reshape1", "sum1"),
    ]

    at_once = both(resume("add1"), suspend("add1"))
    assert Counter(traverse(G2, add1=at_once)[0])["add1"] == 2
    assert len(traverse(G2, add1=resume("data1"))[0]) == 8


def test_row_66_nobody_resumes() -> None:
    recorders: list[Recorder] = []
    with pytest.raises(PassFailed, match=r"nobody resumes suspended nodes: onnx\.Abs"):
        traverse(G4, recorders.append, data1=suspend("cast1"))
    assert recorders[0].visits == ["data1", "transdata1", "shape2"]


def test_row_67_the_leak_callback_resumes() -> None:
    def prepare(recorder: Recorder) -> None:
        recorder.leaks = [lambda r: r.requests.resume(r.by_name["cast1"])]

    visits, _ = traverse(G4, prepare, data1=suspend("cast1"))
    assert visits == ["data1", "transdata1", "shape2", "cast1", "shape1"]


def test_row_68_a_body_asks_for_a_node_of_the_graph_around() -> None:
    visits, _ = traverse(BODIES, e1=now("first"))
    assert visits == ["first", "branch", "t1", "t2", "e1", "branch", "first", "last"]


def test_row_69_a_node_is_visited_before_and_after_its_bodies() -> None:
    visits, _ = traverse(BODIES)
    assert visits == ["first", "branch", "t1", "t2", "e1", "branch", "last"]


@pytest.mark.parametrize("ask", [repass, now])
def test_row_70_the_bound_is_exact_and_reported(ask: Callable[[str], Action]) -> None:
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


def test_rows_71_and_72_callbacks_start_rounds() -> None:
    def again(recorder: Recorder) -> None:
        recorder.requests.repass(recorder.by_name["const1"])

    visits, context = traverse(G1, lambda r: setattr(r, "ends", [again]))
    assert visits[4:] == ["const1"]
    assert not context.bounds
    visits, context = traverse(G1, lambda r: setattr(r, "ends", [again] * 100))
    assert len(visits) == 40
    assert context.bounds


def test_row_71_a_callback_asks_for_a_node_of_a_body() -> None:
    def again(recorder: Recorder) -> None:
        recorder.requests.repass(recorder.by_name["t1"])

    visits, _ = traverse(BODIES, lambda r: setattr(r, "ends", [again]))
    assert visits[7:] == ["branch", "t1", "t2", "e1", "branch"]


def test_row_73_a_callback_deletes_what_it_asks_for() -> None:
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


def labels(text: str) -> list[str]:
    return [label(op) for op in nodes(from_onnx(text))]
