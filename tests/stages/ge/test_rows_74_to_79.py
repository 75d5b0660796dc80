"""Passes in a traversal and what they replace, as GE's own tests describe it, rows 74 to 79.

Rows 55 to 73 stand in `tests/stages/driver/test_traversal.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest
from xdsl.ir import Operation

from foldline.dialects.onnx.op import NodeOp, result_names
from foldline.stages.context import PassContext
from foldline.stages.driver.traversal import Traversal
from foldline.stages.driver.visitor import NodeVisitor
from foldline.stages.observers import Observer, StepRun
from foldline.stages.pass_base import NodePass
from foldline.stages.rewriting import Rewriter, count_nodes
from foldline.stages.run import run_pipeline
from foldline.stages.stage import Stage, traversal
from foldline.support.errors import InvalidOption
from foldline.support.options import resolve
from foldline.support.passes import PASSES
from foldline.support.report import NO_PASSES
from tests.stages.check import from_onnx, named
from tests.stages.driver.recording import Recorder, label, traverse

CHAIN = "g (float[4] x) => (float[4] c) { a = Relu(x) b = Neg(a) c = Abs(b) }"


@dataclass(frozen=True)
class Counting(NodePass):
    """Writes down what it is shown, and fails at one node."""

    name = "eliminate-identity"
    INFO: ClassVar = PASSES["eliminate-identity"]
    shown: list[str] = field(default_factory=list[str])
    fails_at: str = ""

    def visitor(self, context: PassContext) -> NodeVisitor:
        return _Counter(self, context)


@dataclass(frozen=True)
class CountingToo(Counting):
    """Another one."""

    name = "constant-folding"
    INFO: ClassVar = PASSES["constant-folding"]


class _Counter(NodeVisitor):
    def __init__(self, given: Counting, context: PassContext):
        super().__init__(given.name, context)
        self.given = given

    def visit(self, op: NodeOp) -> None:
        self.given.shown.append(label(op))
        if label(op) == self.given.fails_at:
            raise ZeroDivisionError("not even wrong")


class Steps(Observer):
    """Writes down which steps ran and which failed."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def before_pass(self, step: StepRun, context: PassContext) -> None:
        self.heard.append(step.name)

    def after_failure(self, where: str, context: PassContext) -> None:
        self.heard.append(f"failed {where}")


def run(*passes: Counting, **options: Any) -> tuple[list[str], list[tuple[str, str]]]:
    """One stage of one traversal: the steps that ran, and the rows of the report."""
    steps, module = Steps(), from_onnx(CHAIN)
    before = str(module)
    stages = [Stage("one", "nothing", (traversal(*((p, "to test") for p in passes)),))]
    given = resolve({key.replace("__", "."): value for key, value in options.items()})
    report = run_pipeline(module, given, observers=[steps], stages=stages)
    assert str(module) == before
    return steps.heard, [(row.stage, row.name) for row in report.rows]


def test_row_74_a_disabled_pass_is_never_called() -> None:
    off, on = Counting(), CountingToo()
    steps, rows = run(off, on, passes__disable=["eliminate-identity"])
    assert off.shown == []
    assert on.shown == ["a", "b", "c"]
    assert steps == ["one/constant-folding"]
    assert rows == [("one", "constant-folding")]
    run(off)
    assert off.shown == ["a", "b", "c"]


def test_row_74_a_pass_is_disabled_in_all_stages_or_none() -> None:
    """GE strips what stands before a colon; here a pass has one name, and another is refused."""
    for disabled in ([], ["constant-folding"]):
        report = run_pipeline(from_onnx(CHAIN), resolve({"passes.disable": disabled}))
        stages = {row.stage for row in report.rows if row.name == "constant-folding"}
        assert (len(stages) > 1) is not bool(disabled)
        assert bool(stages) is not bool(disabled)
    for prefixed in ("stage1/constant-folding", "stage1:constant-folding"):
        with pytest.raises(InvalidOption, match=f"'{prefixed}' is not a pass"):
            resolve({"passes.disable": prefixed})


def test_row_75_without_passes_nothing_is_done() -> None:
    """All filtered is success, as in GE; an empty list is the same, and no pass cannot be null."""
    off = Counting()
    for passes in ((off,), ()):
        steps, rows = run(*passes, passes__disable=["eliminate-identity"])
        assert steps == []
        assert rows == [("one", NO_PASSES)]
    assert off.shown == []
    context = PassContext(from_onnx(CHAIN))
    walk = Traversal(context, [])
    walk.run()
    assert walk.costs == []
    assert context.rewriter.changes == 0
    assert not context.bounds


@pytest.mark.parametrize("name", ["repass", "repass_now", "suspend", "resume"])
def test_row_76_requests_on_nodes_that_are_not_there_are_ignored(name: str) -> None:
    """A request takes an operation, so none is null: it may be erased, or of no graph walked."""
    elsewhere = named(from_onnx("g (float[4] x) => (float[4] y) { [other] y = Neg(x) }"), "other")

    def act(recorder: Recorder, op: Operation) -> None:
        erased = op.clone()
        recorder.rewriter.insert_before(erased, op)
        recorder.rewriter.erase(erased)
        for absent in (erased, op.clone(), elsewhere):
            getattr(recorder.requests, name)(absent)
            recorder.requests.expect(absent, 100)

    visits, context = traverse(CHAIN, b=act)
    assert visits == ["a", "b", "c"]
    assert not context.bounds


def test_row_77_a_pass_that_fails_stops_the_run_and_is_named() -> None:
    failing, next_one = Counting(fails_at="b"), CountingToo()
    with pytest.raises(ZeroDivisionError, match="not even wrong") as caught:
        run(failing, next_one)
    assert failing.shown == ["a", "b"]
    assert next_one.shown == ["a"]
    assert caught.value.__notes__ == [
        "in eliminate-identity at onnx.Neg (output 'b')",
        "while one/eliminate-identity+constant-folding ran; before it: nothing",
    ]


def test_row_77_no_later_stage_runs() -> None:
    steps, later = Steps(), CountingToo()
    passes = (Counting(), CountingToo(fails_at="a"), later)
    stages = [
        Stage(name, "nothing", (traversal((given, "to test")),))
        for name, given in zip(("one", "two", "three"), passes, strict=True)
    ]
    with pytest.raises(ZeroDivisionError) as caught:
        run_pipeline(from_onnx(CHAIN), resolve(), observers=[steps], stages=stages)
    failed = "two/constant-folding"
    assert steps.heard == ["one/eliminate-identity", failed, f"failed {failed}"]
    assert later.shown == []
    assert caught.value.__notes__[-1] == f"while {failed} ran; before it: one/eliminate-identity"


SPLIT = """g (float[4] x) => (float[2] y) <float[4] w = {1, 2, 3, 4}> {
    [other] p, q = Split<num_outputs = 2>(x) [split] a, b = Split<num_outputs = 2>(w)
    c = Add(p, q) d = Add(a, b) y = Add(c, d)
}"""
ONES = np.asarray([1, 1], np.float32)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_row_78_a_node_is_not_replaced_by_another_number_of_values(count: int) -> None:
    """Unlike GE's IsolateAndDelete, which ignores outputs that are not mapped."""
    module = from_onnx(SPLIT)
    before, rewriter = str(module), Rewriter(module)
    p, q = named(module, "other").results
    op = named(module, "split")
    assert isinstance(op, NodeOp)
    with pytest.raises(ValueError, match=r"zip\(\) argument 2 is (shorter|longer)"):
        rewriter.replace_values(op, (p, q, p)[:count])
    with pytest.raises(ValueError, match=r"zip\(\) argument 2 is (shorter|longer)"):
        rewriter.replace_by_constants(op, [ONES] * count)
    assert str(module) == before
    assert rewriter.changes == 0
    assert rewriter.nodes == count_nodes(module)


def test_row_78_a_node_that_is_read_or_in_no_graph_is_not_erased() -> None:
    op = named(from_onnx(SPLIT), "split")
    rewriter = Rewriter(from_onnx(SPLIT))
    with pytest.raises(ValueError, match="Cannot detach a toplevel operation"):
        rewriter.erase(op.clone())
    with pytest.raises(ValueError, match="still has uses"):
        rewriter.erase(op)


ORPHANS = """g (float[2] x) => (float[2] y, float[2] OUTPUT)
<float[2] w = {1, 2}, float[2] v = {3, 4}> {
    DEFINITION [fold] a = Sum(w, INPUT, INPUT) y = Add(a, x) z = Add(OTHER, x)
}"""


@pytest.mark.parametrize(
    ("definition", "read", "other", "output", "stays"),
    [
        ("", "v", "x", "z", False),
        ("k = Constant<value_floats = [3.0, 4.0]>()", "k", "x", "z", False),
        ("", "v", "v", "z", True),
        ("", "v", "x", "v", True),
        ("k = Neg(v)", "k", "x", "z", True),
        ("k = RandomNormalLike(x)", "k", "x", "z", True),
    ],
    ids=["initializer", "constant", "read_by_another_node", "an_output", "a_node", "random"],
)
def test_row_79_an_input_that_nothing_reads_any_more_goes_if_it_is_a_constant(
    definition: str, read: str, other: str, output: str, stays: bool
) -> None:
    """Nodes that nothing reads any more are left to prune."""
    parts = {"DEFINITION": definition, "INPUT": read, "OTHER": other, "OUTPUT": output}
    text = ORPHANS
    for name, part in parts.items():
        text = text.replace(name, part)
    module = from_onnx(text)
    rewriter, op = Rewriter(module), named(module, "fold")
    assert isinstance(op, NodeOp)
    rewriter.replace_by_constants(op, [np.asarray([7, 10], np.float32)])
    left = {name for op in module.walk() for name in result_names(op)}
    assert "w" not in left
    assert (read in left) is stays
    assert rewriter.nodes == count_nodes(module)


def test_row_79_a_constant_outside_goes_with_its_only_reader_in_a_body() -> None:
    module = from_onnx("""g (bool c, float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
        y = If(c) <then_branch = t () => (float[2] u) { [fold] a = Neg(w) u = Add(a, x) },
                   else_branch = e () => (float[2] v) { [abs] b = Abs(w) v = Add(b, x) }>
    }""")
    rewriter = Rewriter(module)
    for name, stays in (("fold", True), ("abs", False)):
        op = named(module, name)
        assert isinstance(op, NodeOp)
        rewriter.replace_by_constants(op, [ONES])
        assert any("w" in result_names(op) for op in module.walk()) is stays
