"""Runs transforms over a module until an iteration changes nothing.

One iteration is every transform once, in order. A rule's turn is one search and then its
occurrences, in order: what a replacement creates waits for the next iteration. A pass that takes
the rest, and all that comes after it, waits for an iteration in which the others find nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation

from foldline.dialects.onnx.op import NodeOp, opset_versions
from foldline.dialects.onnx.verifier import verify_model
from foldline.stages.context import PassContext
from foldline.stages.inference.calls import Calls
from foldline.stages.inference.inference import Inference
from foldline.stages.inference.scope import IrScope
from foldline.stages.pass_base import NodePass, Pass
from foldline.stages.passes.shapes.infer_shapes import sharpened
from foldline.stages.rewrite.convexity import is_convex
from foldline.stages.rewrite.match import Lease, Match
from foldline.stages.rewrite.near_miss import NearMiss, nearest
from foldline.stages.rewrite.order import Index
from foldline.stages.rewrite.replacement import Replacer
from foldline.stages.rewrite.search import Search
from foldline.stages.rewrite.transform import Action, Rule, Transform, in_order
from foldline.stages.rewrite.watching import unchanged
from foldline.support.errors import FoldlineError, InvalidArgumentError, RewriteError, RuleFailed
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

    With `verify` the module is verified after each transform, and functions of rules are watched
    over all of it. Raises InvalidArgumentError for transforms that cannot be ordered or a bound
    below 1; RuleFailed for whatever a function of a rule raised, and for replacements that are
    refused. The module is left half-rewritten then: those who need it as it was run on a copy.
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
        report.nodes_before = report.nodes_after = rewriter.nodes
        for iteration in range(1, max_iterations + 1):
            before = rewriter.changes
            report.iterations = iteration
            for transform in self.transforms:
                is_early = rewriter.changes > before and iteration < max_iterations
                if is_early and _takes_the_rest(transform):
                    break
                self._turn(transform)
            if rewriter.changes == before:
                report.converged = True
                break
        report.status = "done"
        return report

    def _turn(self, transform: Transform) -> None:
        rewriter, row = self.context.rewriter, self._rows[transform.name]
        changes, start = rewriter.changes, perf_counter()
        before = row.replacements
        try:
            if isinstance(transform.action, Rule):
                _Turn(self, transform, transform.action, row).run()
            else:
                self._act(transform, transform.action, row)
            if self.verify and rewriter.changes > changes:
                self._verify(transform)
        finally:
            row.applications += int(row.replacements > before)
            row.seconds += perf_counter() - start
            self.report.nodes_after = rewriter.nodes

    def _act(self, transform: Transform, action: Pass | Action, row: RewriteRow) -> None:
        """A turn of what is no rule: one replacement, whatever it did, unless it counts them."""
        rewriter, counted = self.context.rewriter, row.replacements
        nodes, changes = rewriter.nodes, rewriter.changes
        with self.blame(transform, ""):
            if isinstance(action, NodePass):
                action.run(self.context)
            elif isinstance(action, Pass):
                self.context.act(transform.name, None, partial(action.run, self.context))
            else:
                turn = partial(action.turn, self.context, row, partial(self.blame, transform))
                self.context.act(transform.name, None, turn)
        if rewriter.changes > changes and row.replacements == counted:
            row.count("replacements")
        row.nodes_removed += max(nodes - rewriter.nodes, 0)
        row.nodes_added += max(rewriter.nodes - nodes, 0)

    def _verify(self, transform: Transform) -> None:
        with self.blame(transform, ""):
            verify_model(self.context.module, names=False)

    def blame(self, transform: Transform, where: str) -> _Blame:
        """Name a transform, and where it was, if something goes wrong."""
        return _Blame(transform, where, self.report)

    def index(self) -> Index:
        """The operators of the module as it stands; it follows what rules change."""
        changes = self.context.rewriter.changes
        if self._index is None or self._index[0] != changes:
            self._index = changes, Index(self.context.module)
        return self._index[1]

    def keep_index(self, index: Index) -> None:
        """The index has heard of every change until now."""
        self._index = self.context.rewriter.changes, index


def _takes_the_rest(transform: Transform) -> bool:
    """Whether a transform wants what others leave, which is not known while they find more."""
    return isinstance(transform.action, Pass) and transform.action.TAKES_THE_REST


@dataclass
class _Turn:
    """One search of one rule, and its occurrences."""

    of: _Run
    transform: Transform
    rule: Rule
    row: RewriteRow
    touched: set[Operation] = field(default_factory=set[Operation])
    """Operations around which an earlier replacement of this turn changed something."""

    def run(self) -> None:
        index, lease = self.of.index(), Lease()
        is_first = self.of.report.iterations == 1
        self._replacer = Replacer(self.of.context.rewriter, index, self.of.inference)
        try:
            found: list[tuple[Search, Match]] = []
            misses: list[NearMiss] = []
            for search in self.rule.searches:
                with self.of.blame(self.transform, "the search"):
                    result = search.find(index, lease, looks_around=is_first)
                found += [(search, match) for match in result.matches]
                misses += result.misses
            self._tell(misses, [match for _, match in found])
            for search, match in found:
                self._occurrence(search, match, index)
        finally:
            lease.is_over = True
        self.of.keep_index(index)

    def _occurrence(self, search: Search, match: Match, index: Index) -> None:
        is_gone = any(op.parent is None for op in match.ordered)
        if is_gone or (
            not self.touched.isdisjoint(match.ordered) and not search.renewed(match, index)
        ):
            self.row.count("skipped_removed")
        elif not is_convex(match.ordered, index.order):
            self.row.count("skipped_nonconvex")
            self._decline(match.ordered[0], "what stands between its nodes reads and feeds them")
        elif not match.outputs:
            self.row.count("skipped_dead")
        elif not self._is_accepted(match):
            self.row.count("rejected_by_condition")
            if match.reason:
                self._decline(match.ordered[0], match.reason)
        elif self.of.context.act(
            self.transform.name, match.ordered[0], partial(self._replace, match)
        ):
            self.row.count("replacements")

    def _is_accepted(self, match: Match) -> bool:
        condition = self.rule.condition
        first = match.ordered[0]
        if (why := self.rule.opsets.refusal(opset_versions(first).get(""))) is not None:
            self._decline(first, why)
            return False
        if condition is None:
            return True
        with self.of.blame(self.transform, match.describe()):
            return unchanged(
                lambda: bool(condition(match)), match, "its condition", self._all_watched
            )

    def _replace(self, match: Match) -> None:
        rewriter, first = self.of.context.rewriter, match.ordered[0]
        operators = ", ".join(op.op_type for op in match.ordered)
        self.of.context.remark("applied", self.transform.name, first, f"{operators} replaced")
        for reason in match.left:
            self._decline(first, reason)
        nodes = rewriter.nodes
        with self.of.blame(self.transform, match.describe()):
            done = self._replacer.replace(
                match.ordered,
                match.outputs,
                lambda build: unchanged(
                    lambda: self.rule.replace(build, match),
                    match,
                    "its function",
                    self._all_watched,
                ),
            )
        self.row.nodes_added += done.added
        self.row.nodes_removed += nodes + done.added - rewriter.nodes
        self.touched.update(done.touched)

    @property
    def _all_watched(self) -> ModuleOp | None:
        return self.of.context.module if self.of.verify else None

    def _tell(self, misses: Sequence[NearMiss], matches: Sequence[Match]) -> None:
        """Remark on what nearly matched, and was part of no match."""
        if misses:
            matched = {op for match in matches for op in match.ordered}
            for miss in nearest(misses, matched):
                self._decline(miss.op, miss.message)

    def _decline(self, op: Operation, message: str) -> None:
        self.of.context.remark("declined", self.transform.name, op, message)


@dataclass(frozen=True)
class _Blame:
    """Names the transform and the place where something went wrong."""

    transform: Transform
    where: str
    report: OptimizeReport

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, Exception):
            return
        if isinstance(error, RuleFailed) and error.report is self.report:
            return
        if isinstance(self.transform.action, Pass) and isinstance(error, FoldlineError):
            self.report.status = error.status
            error.add_note(f"in transform '{self.transform.name}'")
            return
        failure = RuleFailed(self.transform.name, self.where, self.report.iterations, error)
        failure.report = self.report
        self.report.status = failure.status
        raise failure from error


def inference_of(context: PassContext) -> Inference:
    """Inference for operations that a rule has just inserted."""

    def ill_typed(op: Operation, why: str) -> None:
        raise RewriteError(f"the new {op.name} is ill-typed: {why}")

    def sharpen(op: NodeOp, types: Sequence[Attribute]) -> list[Attribute]:
        knowledge = context.knowledge
        sizes = knowledge.infer(op, types)
        return [sharpened(t, dims, knowledge.name_of) for t, dims in zip(types, sizes, strict=True)]

    scope = IrScope(context.rewriter)
    calls = Calls(
        context.module,
        lambda inner, on_ill_typed: Inference(
            context.library, inner, calls, on_ill_typed, _ignore, trusted=False
        ),
    )
    return Inference(context.library, scope, calls, ill_typed, _ignore, True, sharpen)


def _ignore(op: Operation, what: str) -> None:
    """New operations were declared by nobody, so there is nothing to contradict."""
