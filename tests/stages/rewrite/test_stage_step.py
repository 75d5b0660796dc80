"""User rules among the transforms of the fusion stage."""

from __future__ import annotations

from typing import Any

import foldline
from foldline.stages.passes.folding.constant_folding import ConstantFolding
from foldline.stages.passes.fusion.conv_batchnorm_fold import ConvBatchnormFold
from foldline.stages.rewrite.stage_step import placed, transforms_of
from foldline.stages.rewrite.transform import Transform, rewrite
from foldline.transforms import element_wise_fusion
from tests.stages.check import onnx_model
from tests.stages.rewrite.rules import chain, merge_relus, swap, to

MODEL = onnx_model("g (float[2,3] x) => (float[2,3] y) { a = Relu(x) b = Neg(a) y = Abs(b) }")


def names(transforms: list[Transform]) -> list[str]:
    return [transform.name for transform in transforms]


def after(name: str, *before: Transform) -> Transform:
    return rewrite(name, chain("Neg"), to("Abs"), runs_after=before)


def test_a_rule_comes_right_after_the_last_that_it_runs_after() -> None:
    a, b, c = swap("a", "Neg", "Abs"), swap("b", "Neg", "Abs"), swap("c", "Neg", "Abs")
    assert names(placed([a, b, c], [after("x", a), after("y", b, a)])) == ["a", "x", "b", "y", "c"]
    x = after("x", a)
    assert names(placed([a, b], [x, after("z", x)])) == ["a", "x", "z", "b"]


def test_a_rule_without_place_comes_last() -> None:
    a, absent = swap("a", "Neg", "Abs"), swap("absent", "Neg", "Abs")
    assert names(placed([a], [merge_relus(), after("x", absent)])) == ["a", "merge-relus", "x"]
    assert names(placed([], [merge_relus()])) == ["merge-relus"]
    assert placed([], []) == []
    x = after("x", a)
    assert names(placed([a, swap("rest", "Neg", "Abs")], [merge_relus(), x], 1)) == [
        *("a", "merge-relus", "x", "rest")
    ]


def test_a_rule_comes_before_what_takes_the_rest() -> None:
    done = compiled(swap("mine", "Neg", "Sigmoid"), **{"oo.level": "O3"})
    ran = [row.name for row in done.report.rewrites[-1].rows]
    assert ran.index("mine") + 1 == ran.index("element-wise-fusion")
    late = rewrite("late", chain("Neg"), to("Sigmoid"), runs_after=[element_wise_fusion()])
    row = compiled(late).report.rewrites[-1].row("late")
    assert row.matches == 0, "what it looks for is in a fused operator by then"


def test_what_takes_the_rest_waits_for_those_that_find_more() -> None:
    rules = [swap("second", "Sin", "Cos"), swap("first", "Neg", "Sin")]
    report = compiled(*rules).report.rewrites[-1]
    assert report.row("second").replacements == 1, "what it finds there is made by the other"
    assert report.row("element-wise-fusion").replacements > 0
    assert report.converged


def test_rules_that_never_end_do_not_hold_up_what_takes_the_rest() -> None:
    report = compiled(swap("there", "Neg", "Sin"), swap("back", "Sin", "Neg")).report.rewrites[-1]
    assert report.row("there").replacements > 1
    assert report.row("element-wise-fusion").replacements > 0
    assert not report.converged


def test_a_pass_that_stands_twice_is_numbered() -> None:
    passes = [ConstantFolding(), ConvBatchnormFold(), ConstantFolding()]
    assert names(transforms_of(passes)) == [
        *("constant-folding", "conv-batchnorm-fold", "constant-folding (2)")
    ]


def compiled(*rules: Transform, **options: Any) -> foldline.CompiledModel:
    return foldline.compile(MODEL, options=options, rules=rules)


def test_a_compile_runs_rules_and_reports_them() -> None:
    done = compiled(swap("mine", "Neg", "Sigmoid"))
    assert [n.op_type for n in done.to_proto().graph.node] == ["Relu", "Sigmoid", "Abs"]
    (row,) = [row for row in done.report.rows if row.name == "mine"]
    assert (row.stage, row.changes) == ("fusion", 1)
    assert done.report.rewrites[-1].row("mine").replacements == 1
    assert any(r.pass_name == "mine" and r.kind == "applied" for r in done.report.remarks)
    assert "mine" in [row.name for row in done.session().applied_passes]


def test_rules_of_a_compiler_come_before_those_of_a_compile() -> None:
    compiler = foldline.Compiler(rules=[swap("session", "Neg", "Sigmoid")])
    done = compiler.compile(MODEL, rules=[swap("graph", "Sigmoid", "Tanh")])
    assert [n.op_type for n in done.to_proto().graph.node] == ["Relu", "Tanh", "Abs"]
    assert len(compiler.compile(MODEL).report.rewrites[-1].rows) + 1 == len(
        done.report.rewrites[-1].rows
    )


def test_a_rule_runs_at_every_level() -> None:
    for level in ("O0", "O1", "O2", "O3"):
        done = compiled(swap("mine", "Neg", "Sigmoid"), **{"oo.level": level})
        assert [n.op_type for n in done.to_proto().graph.node] == ["Relu", "Sigmoid", "Abs"]


def test_exact_mode_drops_rules_that_may_move_bits_and_says_so() -> None:
    done = compiled(swap("mine", "Neg", "Sigmoid"), mode="exact")
    assert [n.op_type for n in done.to_proto().graph.node] == ["Relu", "Neg", "Abs"]
    assert any("exact mode" in r.message for r in done.report.remarks if r.pass_name == "mine")
    kept = rewrite("kept", chain("Neg", "Abs"), to("Abs"), preserves_bits=True)
    done = compiled(kept, mode="exact")
    assert [n.op_type for n in done.to_proto().graph.node] == ["Relu", "Abs"]


def test_rules_that_undo_each_other_are_reported_as_a_bound() -> None:
    rules = swap("there", "Neg", "Sigmoid"), swap("back", "Sigmoid", "Neg")
    done = compiled(*rules, **{"oo.level": "O1"})
    assert any("there, back" in bound for bound in done.report.bounds)
