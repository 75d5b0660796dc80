"""The rule driver with ordinary xDSL patterns."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.pattern_rewriter import (
    PatternRewriter,
    RewritePattern,
    op_type_rewrite_pattern,
)

from foldline.dialects.onnx import OPERATORS
from foldline.dialects.onnx.math import AddOp, MulOp, ReluOp
from foldline.dialects.onnx.shape import IdentityOp
from foldline.stages.driver.worklist import Outcome, Rule, RuleDriver
from tests.stages.check import from_onnx, op_types, parse

NegOp = OPERATORS["", "Neg"]


class ReluOfRelu(RewritePattern):
    """Relu(Relu(x)) -> Relu(x)."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReluOp, rewriter: PatternRewriter, /) -> None:
        if isinstance(op.X.owner, ReluOp):
            rewriter.replace(op, [], [op.X])


class MulBySelf(RewritePattern):
    """x + x -> x * x, whatever that is good for."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AddOp, rewriter: PatternRewriter, /) -> None:
        if op.A is op.B:
            new = MulOp.create(operands=[op.A, op.A], result_types=op.result_types)
            rewriter.replace(op, new)


class AddBySelf(RewritePattern):
    """x * x -> x + x: undoes the rule before."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: MulOp, rewriter: PatternRewriter, /) -> None:
        if op.A is op.B:
            new = AddOp.create(operands=[op.A, op.A], result_types=op.result_types)
            rewriter.replace(op, new)


class Watch(RewritePattern):
    """Writes down what it is shown."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        self.seen.append(op.name)


def drive(module: ModuleOp, *rules: Rule, budget: int | None = None) -> Outcome:
    outcome = RuleDriver(rules, budget).run(module.body)
    module.verify()
    return outcome


def chain(op_type: str, length: int) -> ModuleOp:
    steps = "".join(f"v{i + 1} = {op_type}(v{i})\n" for i in range(length))
    return from_onnx(f"g (float[4] v0) => (float[4] v{length}) {{ {steps} }}")


def test_a_rule_applies_until_it_does_not_match() -> None:
    module = chain("Relu", 50)
    outcome = drive(module, Rule(ReluOfRelu(), (ReluOp,)))
    assert op_types(module) == ["Relu"]
    assert outcome.rewrites == {"ReluOfRelu": 49}
    assert outcome.is_complete


def test_rules_see_only_their_roots_and_in_program_order() -> None:
    module = from_onnx("g (float[4] x) => (float[4] y) { a = Neg(x) b = Relu(a) y = Neg(b) }")
    every, relu = Watch(), Watch()
    outcome = drive(module, Rule(relu, (ReluOp,)), Rule(every, (ReluOp, NegOp)))
    assert relu.seen == ["onnx.Relu"]
    assert every.seen == ["onnx.Neg", "onnx.Relu", "onnx.Neg"]
    assert not outcome.rewrites


def test_the_first_rule_that_changes_something_wins() -> None:
    module = from_onnx("g (float[4] x) => (float[4] y) { y = Add(x, x) }")
    late = Watch()
    drive(module, Rule(MulBySelf(), (AddOp,)), Rule(late, (AddOp,)))
    assert op_types(module) == ["Mul"]
    assert not late.seen


def test_rules_that_undo_each_other_end_at_the_budget() -> None:
    module = from_onnx("g (float[4] x) => (float[4] y) { y = Add(x, x) }")
    rules = (Rule(MulBySelf(), (AddOp,)), Rule(AddBySelf(), (MulOp,)))
    outcome = drive(module, *rules, budget=7)
    assert outcome.rewrites.total() == 7
    assert not outcome.is_complete
    outcome = drive(module, *rules)
    assert 10 <= outcome.rewrites.total() <= 100


def test_what_a_rewrite_leaves_without_readers_goes() -> None:
    module = parse(
        """%a = onnx.Neg(%x) : tensor<2x3xf32>
        %b = onnx.Relu(%a) : tensor<2x3xf32>
        %c = onnx.Identity(%b) : tensor<2x3xf32>
        return(%x)"""
    )
    outcome = drive(module, Rule(Watch(), (IdentityOp,)))
    assert op_types(module) == []
    assert outcome.erased == 3


def test_bodies_are_rewritten() -> None:
    module = from_onnx("""g (bool c, float[4] x) => (float[4] y) {
        y = If(c) <then_branch = t () => (float[4] u) { s = Relu(x) u = Relu(s) },
                   else_branch = e () => (float[4] v) { v = Relu(x) }>
    }""")
    assert drive(module, Rule(ReluOfRelu(), (ReluOp,))).rewrites == {"ReluOfRelu": 1}
