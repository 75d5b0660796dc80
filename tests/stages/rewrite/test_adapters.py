"""Rules of xDSL as transforms."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from foldline.dialects.onnx import OPERATORS
from foldline.graph import ModelGraph
from foldline.stages.rewrite.adapters import from_pdl, from_xdsl
from foldline.stages.rewrite.options import OptimizeOptions
from foldline.support.errors import InvalidArgumentError, RuleFailed
from tests.stages.check import onnx_model
from tests.stages.rewrite.rules import graph, merge_relus, ops, outputs_of, run, text

RELU, ABS = OPERATORS["", "Relu"], OPERATORS["", "Abs"]


class DropSecondRelu(RewritePattern):
    """Relu(Relu(x)) -> Relu(x)."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if isinstance(op, RELU) and isinstance(op.operands[0].owner, RELU):
            rewriter.replace_op(op, [], [op.operands[0]])


class AbsOfRelu(RewritePattern):
    """Abs -> Relu(Abs), of a type that is not said."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if isinstance(op, RELU):
            new = ABS.create(operands=[op.operands[0]], result_types=[op.results[0].type])
            rewriter.replace_op(op, new)


PDL = """
pdl.pattern @"relu-relu" : benefit(1) {
  %t = pdl.type
  %x = pdl.operand : %t
  %a = pdl.operation "onnx.Relu" (%x : !pdl.value) -> (%t : !pdl.type)
  %r = pdl.result 0 of %a
  %b = pdl.operation "onnx.Relu" (%r : !pdl.value) -> (%t : !pdl.type)
  pdl.rewrite %b {
    pdl.replace %b with (%r : !pdl.value)
  }
}
"""


@pytest.mark.parametrize("make", [lambda: from_xdsl(DropSecondRelu()), lambda: from_pdl(PDL)])
def test_a_turn_rewrites_until_nothing_matches(make) -> None:
    on = graph("a = Relu(x) b = Relu(a) c = Relu(b) y = Neg(c)")
    before = outputs_of(on)
    rule = make()
    report = run(on, rule)
    assert ops(on) == ["Relu", "Neg"]
    np.testing.assert_array_equal(outputs_of(on), before)
    row = report.row(rule.name)
    assert (row.applications, row.replacements, row.matches, row.nodes_removed) == (1, 2, 2, 2)
    assert report.converged


def test_names() -> None:
    assert from_xdsl(DropSecondRelu()).name == "DropSecondRelu"
    assert from_xdsl([DropSecondRelu()], "mine").name == "mine"
    assert from_pdl(PDL).name == "relu-relu"
    after = from_pdl(PDL, "other", runs_after=[merge_relus()])
    assert (after.name, after.runs_after) == ("other", ("merge-relus",))


def test_outputs_keep_their_names_and_values_get_types() -> None:
    on = graph("a = Relu(x) y = Relu(a)", "float[2,3] y, float[2,3] a")
    run(on, from_xdsl(DropSecondRelu()))
    model = on.to_proto()
    assert [o.name for o in model.graph.output] == ["y", "a"]
    assert sorted(ops(on)) == ["Identity", "Relu"]
    renamed = graph("y = Relu(x)")
    run(renamed, from_xdsl(AbsOfRelu()))
    assert [n.output[0] for n in renamed.to_proto().graph.node] == ["y"]


def test_it_runs_beside_rules_of_our_own() -> None:
    on = graph("a = Relu(x) b = Relu(a) y = Abs(b)")
    report = run(on, merge_relus(), from_xdsl(DropSecondRelu()))
    assert [row.replacements for row in report.rows] == [1, 0]


@pytest.mark.parametrize("bad", [[], None, "Relu", [merge_relus()]])
def test_what_is_no_pattern_is_refused(bad) -> None:
    with pytest.raises(InvalidArgumentError):
        from_xdsl(bad)


def test_a_module_without_pattern_and_a_built_in_name_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"no pdl\.pattern"):
        from_pdl("builtin.module {}")
    with pytest.raises(InvalidArgumentError, match="built-in"):
        from_xdsl(DropSecondRelu(), "prune")


def test_an_error_names_the_node_and_changes_nothing() -> None:
    class Raises(RewritePattern):
        def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
            if isinstance(op, ABS):
                raise LookupError("no")

    on = graph("a = Relu(x) b = Relu(a) [here] y = Abs(b)")
    before = text(on)
    with pytest.raises(RuleFailed) as caught:
        on.optimize(OptimizeOptions([from_xdsl([DropSecondRelu(), Raises()])]))
    assert (caught.value.node, caught.value.transform) == ("here", "DropSecondRelu")
    assert text(on) == before


def test_a_node_that_holds_a_cache_may_not_go() -> None:
    class DropAttention(RewritePattern):
        def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
            if op.name == "onnx.Attention":
                rewriter.replace_op(op, [], [op.operands[0], *op.operands[4:6]])

    model = onnx_model(
        """g (float[1,2,4,8] q, float[1,2,4,8] k, float[1,2,4,8] v,
              float[1,2,3,8] past_k, float[1,2,3,8] past_v)
            => (float[1,2,4,8] y, float[1,2,7,8] pk, float[1,2,7,8] pv) {
            a, pk, pv = Attention(q, k, v, , past_k, past_v) y = Relu(a)
        }""",
        ir_version=11,
        opset=23,
    )
    with pytest.raises(RuleFailed, match="holds a cache"):
        ModelGraph(model).optimize(OptimizeOptions([from_xdsl(DropAttention())]))


def test_rules_that_undo_each_other_end() -> None:
    class Back(RewritePattern):
        def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
            if isinstance(op, ABS):
                new = RELU.create(operands=[op.operands[0]], result_types=[op.results[0].type])
                rewriter.replace_op(op, new)

    report = run(graph("y = Relu(x)"), from_xdsl([AbsOfRelu(), Back()]), max_iterations=2)
    assert not report.converged
