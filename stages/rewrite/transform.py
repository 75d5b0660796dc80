"""Transforms: what an optimisation runs, built in or made by users with `rewrite`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from foldline.stages.context import PassContext
from foldline.stages.pass_base import Pass
from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.search import Search
from foldline.support.errors import InvalidArgumentError
from foldline.support.passes import PASSES
from foldline.support.rewrite_report import RewriteRow

Condition: TypeAlias = Callable[[Match], bool]
Replacement: TypeAlias = Callable[[RuleBuilder, Match], Any]
"""Gives the new values, one for each output of the match."""


Blame: TypeAlias = Callable[[str], AbstractContextManager[None]]
"""Blames what is raised in a block on a node by its name."""


@dataclass(frozen=True)
class OpsetBounds:
    """The operator sets of ONNX in which a rule is at home."""

    minimum: int | None = None
    maximum: int | None = None

    def refusal(self, version: int | None) -> str | None:
        """Why a rule is not for a place that imports `version`; None if it is."""
        if self.minimum is None and self.maximum is None:
            return None
        if version is None:
            return "the operator set of ONNX is not imported here"
        low, high = self.minimum or version, self.maximum or version
        if low <= version <= high:
            return None
        wanted = f"{self.minimum} or later" if version < low else f"{self.maximum} or earlier"
        return f"operator set {version} is imported here, and the rule is for {wanted}"


@dataclass(frozen=True, eq=False)
class Rule:
    """What a transform of patterns does. It holds nothing of a run: many threads may share it."""

    searches: tuple[Search, ...]
    """Spellings of one thing, tried in order, each made ready once."""
    replace: Replacement
    condition: Condition | None
    opsets: OpsetBounds = OpsetBounds()


class Action(Protocol):
    """What a transform does that is made of neither patterns nor a pass."""

    def turn(self, context: PassContext, row: RewriteRow, blame: Blame) -> None:
        """Change the module of a context, and count in the row what its rewriter does not see.

        `with blame(name)` around what is foreign names the node in errors.
        """
        ...


@dataclass(frozen=True, eq=False)
class Transform:
    """A handle on one transform. Copies are equal and share what it does."""

    name: str
    action: Rule | Pass | Action
    runs_after: tuple[str, ...] = ()
    """Names of transforms that come earlier where they run as well."""
    preserves_bits: bool = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Transform) and self.action is other.action

    def __hash__(self) -> int:
        return hash(id(self.action))

    def __deepcopy__(self, memo: object) -> Transform:
        return self


def rewrite(
    name: str,
    pattern: Pattern | Sequence[Pattern],
    replace_fn: Replacement,
    condition_fn: Condition | None = None,
    runs_after: Sequence[Transform] = (),
    *,
    preserves_bits: bool = False,
    min_opset: int | None = None,
    max_opset: int | None = None,
) -> Transform:
    """A transform that replaces each occurrence of a pattern.

    `replace_fn(build, match)` gives the new values, one for each of `match.outputs`, and
    `condition_fn(match)` says whether an occurrence is replaced; None takes all. Where several
    patterns are given they are spellings of the same, tried in order. The transform comes after
    those of `runs_after` that run with it. Both functions run on the thread that optimises.
    Occurrences where an operator set of ONNX below `min_opset` or above `max_opset` is imported are
    left alone, with a remark; `condition_fn` never sees them.

    Raises InvalidArgumentError for a name that is empty or of a built-in transform, for functions
    that are none, for patterns that cannot be searched for, and for bounds that nothing is within.
    """
    check_name(name)
    before = names_before(name, runs_after)
    bounds = opset_bounds(name, min_opset, max_opset)
    return made_rule(name, pattern, replace_fn, condition_fn, before, preserves_bits, bounds)


def opset_bounds(name: str, minimum: int | None, maximum: int | None) -> OpsetBounds:
    """Bounds, checked. Raises InvalidArgumentError for what is none, or has nothing within."""
    for bound in (minimum, maximum):
        if bound is not None and (type(bound) is not int or bound < 1):
            raise InvalidArgumentError(f"'{name}': {bound!r} is not a version of an operator set")
    if minimum is not None and maximum is not None and minimum > maximum:
        raise InvalidArgumentError(f"'{name}': min_opset is {minimum}, max_opset {maximum}")
    return OpsetBounds(minimum, maximum)


def check_name(name: str) -> None:
    """Raise InvalidArgumentError for what cannot be the name of a user's transform."""
    if not isinstance(name, str) or not name.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidArgumentError(f"a transform needs a name, got {name!r}")
    if name in PASSES:
        raise InvalidArgumentError(f"'{name}' is the name of a built-in transform")


def made_rule(
    name: str,
    pattern: Pattern | Sequence[Pattern],
    replace_fn: Replacement,
    condition_fn: Condition | None,
    runs_after: Iterable[Transform | str],
    preserves_bits: bool,
    opsets: OpsetBounds = OpsetBounds(),
) -> Transform:
    """`rewrite` for built-in rules too, which name what they run after."""
    if not callable(replace_fn):
        raise InvalidArgumentError(f"'{name}': replace_fn is {replace_fn!r}, not a function")
    if condition_fn is not None and not callable(condition_fn):
        raise InvalidArgumentError(f"'{name}': condition_fn is {condition_fn!r}, not a function")
    patterns = (pattern,) if isinstance(pattern, Pattern) else tuple(pattern)
    if not patterns:
        raise InvalidArgumentError(f"'{name}': no pattern is given")
    for one in patterns:
        if not isinstance(one, Pattern):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidArgumentError(f"'{name}': {one!r} is not a pattern")
    before = tuple(e.name if isinstance(e, Transform) else e for e in runs_after)
    if name in before:
        raise InvalidArgumentError(f"'{name}' cannot run after itself")
    rule = Rule(tuple(map(Search, patterns)), replace_fn, condition_fn, opsets)
    return Transform(name, rule, before, preserves_bits)


def names_before(name: str, runs_after: Sequence[Transform]) -> tuple[str, ...]:
    """The names of what a user's transform runs after; raises InvalidArgumentError."""
    for entry in runs_after:
        if not isinstance(entry, Transform):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidArgumentError(f"'{name}': runs_after holds {entry!r}, no transform")
        if entry.name == name:
            raise InvalidArgumentError(f"'{name}' cannot run after itself")
    return tuple(entry.name for entry in runs_after)


def in_order(transforms: Sequence[Transform]) -> list[Transform]:
    """The transforms as given, but each after those that it runs after.

    Raises InvalidArgumentError for two of one name, and for a circle.
    """
    by_name = {transform.name: transform for transform in transforms}
    if len(by_name) < len(transforms):
        names = [transform.name for transform in transforms]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidArgumentError(f"two transforms are called '{twice}'")
    ordered: dict[str, Transform] = {}
    state: dict[str, Literal["open", "done"]] = {}

    def visit(transform: Transform) -> None:
        if state.get(transform.name) == "open":
            raise InvalidArgumentError(f"'{transform.name}' runs after itself, through others")
        if transform.name in state:
            return
        state[transform.name] = "open"
        for name in transform.runs_after:
            if name in by_name:
                visit(by_name[name])
        state[transform.name] = "done"
        ordered[transform.name] = transform

    for transform in transforms:
        visit(transform)
    return list(ordered.values())
