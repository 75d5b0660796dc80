"""Passes that are transforms of patterns, so that they run in stages, in tools and beside rules."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from foldline.stages.context import PassContext
from foldline.stages.pass_base import GraphPass, Pass
from foldline.stages.rewrite.optimize import run_transforms
from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.transform import Condition, Replacement, Transform, made_rule
from foldline.support.passes import PASSES


@dataclass(frozen=True)
class RulePass(GraphPass):
    """A pass that is one transform."""

    @property
    @abstractmethod
    def transform(self) -> Transform:
        """The transform, with what the pass's fields say."""

    def run(self, context: PassContext) -> None:
        """Run the transform alone, until it finds nothing more."""
        run_transforms(context, [self.transform])


def built_in(
    name: str,
    pattern: Pattern | Sequence[Pattern],
    replace_fn: Replacement,
    condition_fn: Condition | None = None,
    runs_after: Iterable[Transform | str] | None = None,
) -> Transform:
    """The transform of a built-in pass, as its row in the table of passes has it."""
    info = PASSES[name]
    before = info.runs_after if runs_after is None else runs_after
    return made_rule(name, pattern, replace_fn, condition_fn, before, info.preserves_bits)


def as_transform(a_pass: Pass, name: str = "") -> Transform:
    """Any pass as a transform that can stand among rules."""
    if isinstance(a_pass, RulePass):
        return a_pass.transform
    info = a_pass.INFO
    return Transform(name or a_pass.name, a_pass, (), info.preserves_bits)
