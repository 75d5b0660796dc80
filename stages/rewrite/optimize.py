"""Runs transforms over a module until an iteration changes nothing.

One iteration is every transform once, in order. A rule's turn is one search and then its
occurrences, in order: what a replacement creates waits for the next iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from xdsl.ir import Operation, SSAValue

from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.verifier import verify_model
from foldline.stages.context import PassContext
from foldline.stages.inference.calls import Calls
from foldline.stages.inference.inference import Inference
from foldline.stages.inference.scope import IrScope
from foldline.stages.rewrite.convexity import is_convex
from foldline.stages.rewrite.match import Lease, Match
from foldline.stages.rewrite.order import Index
from foldline.stages.rewrite.replacement import Replacer
from foldline.stages.rewrite.search import find, still_matches
from foldline.stages.rewrite.transform import Rule, Transform, in_order
from foldline.support.errors import InvalidArgumentError, RewriteError, RuleFailed
from foldline.support.rewrite_report import OptimizeReport, RewriteRow

MAX_ITERATIONS = 10
"""Unless another number is given: rules that undo each other must end."""


def run_transforms(
    context: PassContext,
    transforms: Sequence[Transform],
    *,
    max_iterations: int = MAX_ITERATIONS,
    verify: bool = False,
) -> OptimizeReport:
    """Run transforms on the module of a context, in place.

    With `verify` the module is verified after each transform. Raises InvalidArgumentError for
    transforms that cannot be ordered or a bound below 1; RewriteError from whatever a function of a
    rule raised, and for replacements that are refused. The module is left half-rewritten then:
    those who need it as it was run on a copy.
    """
    if max_iterations < 1:
        raise InvalidArgumentError(f"max_iterations is {max_iterations}; at least 1 is needed")
    return _Run(context, in_order(transforms), verify).run(max_iterations)


@dataclass
class _Run:
    context: PassContext
    transforms: Sequence[Transform]
    verify: bool
    report: OptimizeReport = field(default_factory=OptimizeReport)

    def __post_init__(self) -> None:
        self._rows = {t.name: RewriteRow(t.name) for t in self.transforms}
        self.report.rows = list(self._rows.values())
        self._index: tuple[int, Index] | None = None
        self.inference = inference_of(self.context)

    def run(self, max_iterations: int) -> OptimizeReport:
        rewriter, report = self.context.rewriter, self.report
        report.nodes_before = rewriter.nodes
        for _ in range(max_iterations):
            before = rewriter.changes
            report.iterations += 1
            for transform in self.transforms:
                self._turn(transform)
            if rewriter.changes == before:
                report.converged = True
                break
        report.nodes_after = rewriter.nodes
        return report

    def _turn(self, transform: Transform) -> None:
        rewriter, row = self.context.rewriter, self._rows[transform.name]
        nodes, changes, start = rewriter.nodes, rewriter.changes, perf_counter()
        try:
            if isinstance(transform.action, Rule):
                _Turn(self, transform, transform.action, row).run()
            else:
                transform.action.run(self.context)
                row.replacements += int(rewriter.changes > changes)
            if self.verify and rewriter.changes > changes:
                verify_model(self.context.module)
        except RuleFailed as failure:
            failure.report = self.report
            raise
        row.applications += int(rewriter.changes > changes)
        row.nodes_removed += max(nodes - rewriter.nodes, 0)
        row.nodes_added += max(rewriter.nodes - nodes, 0)
        row.seconds += perf_counter() - start

    @property
    def index(self) -> Index:
        """The operators of the module as it stands."""
        changes = self.context.rewriter.changes
        if self._index is None or self._index[0] != changes:
            self._index = changes, Index.of(self.context.module)
        return self._index[1]


@dataclass
class _Turn:
    """One search of one rule, and its occurrences."""

    of: _Run
    transform: Transform
    rule: Rule
    row: RewriteRow
    rewired: set[Operation] = field(default_factory=set[Operation])
    """Operations whose operands an earlier replacement of this turn changed."""

    def run(self) -> None:
        index, lease = self.of.index, Lease()
        self._replacer = Replacer(self.of.context.rewriter, index.order, self.of.inference)
        try:
            for pattern in self.rule.patterns:
                found = find(pattern, index, lease)
                for miss in found.misses:
                    self._remark(miss.op, miss.message)
                for match in found.matches:
                    self.row.matches += 1
                    self._occurrence(match, index)
        finally:
            lease.is_over = True

    def _occurrence(self, match: Match, index: Index) -> None:
        row = self.row
        if any(op.parent is None for op in match.ordered):
            row.skipped_removed += 1
        elif not self.rewired.isdisjoint(match.ordered) and not still_matches(match, index):
            row.skipped_removed += 1
        elif not is_convex(match.ordered, index.order):
            row.skipped_nonconvex += 1
            self._remark(match.ordered[0], "what stands between its nodes reads and feeds them")
        elif not match.outputs:
            row.skipped_dead += 1
        elif not self._is_accepted(match):
            row.rejected_by_condition += 1
            if match.reason:
                self._remark(match.ordered[0], match.reason)
        else:
            self._replace(match)
            row.replacements += 1

    def _is_accepted(self, match: Match) -> bool:
        condition = self.rule.condition
        if condition is None:
            return True
        with self._blame(match.describe()):
            before = _fingerprint(match)
            is_accepted = bool(condition(match))
            _check_unchanged(match, before, "its condition")
        return is_accepted

    def _replace(self, match: Match) -> None:
        outputs, first = match.outputs, match.ordered[0]
        self.of.context.remark("applied", self.transform.name, first, _summary(match))
        with self._blame(match.describe()):
            new = self._replacer.replace(
                match.ordered, outputs, lambda build: self._built(match, build)
            )
        for value in new:
            self.rewired.update(use.operation for use in value.uses)

    def _built(self, match: Match, build: Any) -> Any:
        before = _fingerprint(match)
        new = self.rule.replace(build, match)
        _check_unchanged(match, before, "its function")
        return new

    def _blame(self, where: str) -> _Blame:
        return _Blame(self.transform.name, where, self.of.report)

    def _remark(self, op: NodeOp, message: str) -> None:
        self.of.context.remark("declined", self.transform.name, op, message)


@dataclass(frozen=True)
class _Blame:
    """Names the transform and the place where something went wrong."""

    transform: str
    where: str
    report: OptimizeReport

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception):
            raise RuleFailed(self.transform, self.where, self.report.iterations, error) from error


def inference_of(context: PassContext) -> Inference:
    """Inference for operations that a rule has just inserted."""

    def ill_typed(op: Operation, why: str) -> None:
        raise RewriteError(f"the new {op.name} is ill-typed: {why}")

    scope = IrScope(context.rewriter)
    calls = Calls(
        context.module,
        lambda inner, on_ill_typed: Inference(
            context.library, inner, calls, on_ill_typed, _ignore, trusted=False
        ),
    )
    return Inference(context.library, scope, calls, ill_typed, _ignore, trusted=True)


def _ignore(op: Operation, what: str) -> None:
    """New operations were declared by nobody, so there is nothing to contradict."""


def _fingerprint(match: Match) -> list[tuple[object, ...]]:
    """What would be different if somebody had changed the operations of a match."""

    def users(values: Sequence[SSAValue]) -> int:
        return sum(1 for value in values for _ in value.uses)

    return [
        (op.parent, tuple(op.operands), tuple(op.properties.items()), users(op.results))
        for op in match.ordered
    ]


def _check_unchanged(match: Match, before: list[tuple[object, ...]], culprit: str) -> None:
    if _fingerprint(match) != before:
        raise RewriteError(f"{culprit} changed the graph other than through the builder")


def _summary(match: Match) -> str:
    operators = ", ".join(op.op_type for op in match.ordered)
    return f"{operators} replaced"
