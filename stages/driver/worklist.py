"""The rule driver: rewrite patterns on a worklist, linear in the module and what is rewritten.

Rules are found by the class of the operation, the list is seeded once in program order, and later
only what a rewrite touched is looked at: new operations, users of replaced ones, modified ones, and
producers that may have lost their last use. Ordinary xDSL `RewritePattern`s run unchanged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, OpResult, Region, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, PatternRewriterListener, RewritePattern
from xdsl.rewriter import InsertPoint
from xdsl.transforms.dead_code_elimination import is_trivially_dead

REWRITES_PER_OPERATION = 10
"""The budget, unless one is given: rules that undo each other must end."""


@dataclass(frozen=True)
class Rule:
    """A pattern with the classes of operations it can match at; none means any."""

    pattern: RewritePattern
    roots: tuple[type[Operation], ...] = ()

    @property
    def name(self) -> str:
        """The pattern's class, for counters."""
        return type(self.pattern).__name__


@dataclass
class Outcome:
    """What a run of the driver did."""

    rewrites: Counter[str] = field(default_factory=Counter[str])
    """How often each rule changed something."""
    erased: int = 0
    """Operations that were dead."""
    is_complete: bool = True
    """False: the budget was spent while rules still matched."""


class RuleDriver:
    """Applies rules, earlier ones first, until none matches."""

    def __init__(self, rules: Iterable[Rule], budget: int | None = None):
        self.rules = tuple(rules)
        self.budget = budget
        self._by_class: dict[type[Operation], tuple[Rule, ...]] = {}

    def run(self, region: Region) -> Outcome:
        """Rewrite a region, bodies included."""
        return _Run(self, region).run()

    def rules_for(self, op: Operation) -> tuple[Rule, ...]:
        """The rules that can match at an operation, in order."""
        cls = type(op)
        found = self._by_class.get(cls)
        if found is None:
            found = tuple(r for r in self.rules if not r.roots or issubclass(cls, r.roots))
            self._by_class[cls] = found
        return found


class _Run:
    def __init__(self, driver: RuleDriver, region: Region):
        self._driver = driver
        self._outcome = Outcome()
        self._gone: set[Operation] = set()
        self._stack: list[Operation] = []
        self._stacked: set[Operation] = set()
        self._rewriter: PatternRewriter | None = None
        operations = 0
        for op in region.walk(reverse=True):  # the stack gives them back in program order
            operations += 1
            if driver.rules_for(op):
                self._push(op)
        self._budget = (
            operations * REWRITES_PER_OPERATION if driver.budget is None else driver.budget
        )
        self._listener = PatternRewriterListener(
            operation_insertion_handler=[self._push],
            operation_removal_handler=[self._removed],
            operation_modification_handler=[self._push],
            operation_replacement_handler=[self._replaced],
        )

    def run(self) -> Outcome:
        outcome = self._outcome
        while self._stack:
            op = self._stack.pop()
            self._stacked.discard(op)
            if op in self._gone or op.parent is None:
                continue
            if op.results and not any(r.first_use for r in op.results) and is_trivially_dead(op):
                self._removed(op)
                op.parent.erase_op(op)
                outcome.erased += 1
            elif outcome.rewrites.total() >= self._budget:
                outcome.is_complete = not self._driver.rules_for(op) and outcome.is_complete
            else:
                self._rewrite(op)
        return outcome

    def _rewrite(self, op: Operation) -> None:
        """Try the rules at `op` until one of them changes something."""
        rules = self._driver.rules_for(op)
        if not rules or op.parent is None:
            return
        rewriter = self._rewriter_at(op, op.parent)
        for rule in rules:
            rule.pattern.match_and_rewrite(op, rewriter)
            if rewriter.has_done_action:
                self._outcome.rewrites[rule.name] += 1
                return

    def _rewriter_at(self, op: Operation, block: Block) -> PatternRewriter:
        """The one rewriter of the run, moved to `op`: to make one costs as much as a rule."""
        if self._rewriter is None:
            self._rewriter = PatternRewriter(op)
            self._rewriter.extend_from_listener(self._listener)
        self._rewriter.current_operation = op
        self._rewriter.insertion_point = InsertPoint(block, op)
        self._rewriter.has_done_action = False
        return self._rewriter

    def _push(self, op: Operation) -> None:
        if op not in self._stacked and op not in self._gone:
            self._stacked.add(op)
            self._stack.append(op)

    def _removed(self, op: Operation) -> None:
        self._gone.add(op)
        for value in op.operands:
            if isinstance(value, OpResult) and not value.has_more_than_one_use():
                self._push(value.op)

    def _replaced(self, op: Operation, new: Sequence[SSAValue | None]) -> None:
        for result in op.results:
            for use in result.uses:
                self._push(use.operation)
