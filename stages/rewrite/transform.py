"""Transforms: what an optimisation runs, built in or made by users with `rewrite`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from foldline.stages.pass_base import Pass
from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.pattern import Pattern
from foldline.support.errors import InvalidArgumentError
from foldline.support.passes import PASSES

Condition: TypeAlias = Callable[[Match], bool]
Replacement: TypeAlias = Callable[[RuleBuilder, Match], Any]
"""Gives the new values, one for each output of the match."""


@dataclass(frozen=True, eq=False)
class Rule:
    """What a transform of patterns does."""

    patterns: tuple[Pattern, ...]
    """Spellings of one thing, tried in order."""
    replace: Replacement
    condition: Condition | None


@dataclass(frozen=True, eq=False)
class Transform:
    """A handle on one transform. Copies are equal and share what it does."""

    name: str
    action: Rule | Pass
    runs_after: tuple[str, ...] = ()
    """Names of transforms that come earlier where they run as well."""
    preserves_bits: bool = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Transform) and self.action is other.action

    def __hash__(self) -> int:
        return hash(id(self.action))


def rewrite(
    name: str,
    pattern: Pattern | Sequence[Pattern],
    replace_fn: Replacement,
    condition_fn: Condition | None = None,
    runs_after: Iterable[Transform] = (),
    *,
    preserves_bits: bool = False,
) -> Transform:
    """A transform that replaces each occurrence of a pattern.

    `replace_fn(build, match)` gives the new values, one for each of `match.outputs`, and
    `condition_fn(match)` says whether an occurrence is replaced; None takes all. Where several
    patterns are given they are spellings of the same, tried in order. The transform comes after
    those of `runs_after` that run with it. Both functions run on the thread that optimises.

    Raises InvalidArgumentError for a name that is empty or of a built-in transform, for functions
    that are none, and for patterns that cannot be searched for.
    """
    if name in PASSES:
        raise InvalidArgumentError(f"'{name}' is the name of a built-in transform")
    return made_rule(name, pattern, replace_fn, condition_fn, runs_after, preserves_bits)


def made_rule(
    name: str,
    pattern: Pattern | Sequence[Pattern],
    replace_fn: Replacement,
    condition_fn: Condition | None,
    runs_after: Iterable[Transform | str],
    preserves_bits: bool,
) -> Transform:
    """`rewrite` for built-in rules too, which name what they run after."""
    if not name:
        raise InvalidArgumentError("a transform needs a name")
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
        one.check()
    before = tuple(_name(name, entry) for entry in runs_after)
    rule = Rule(tuple(one.snapshot() for one in patterns), replace_fn, condition_fn)
    return Transform(name, rule, before, preserves_bits)


def _name(name: str, entry: Transform | str) -> str:
    found = entry.name if isinstance(entry, Transform) else entry
    if not isinstance(found, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidArgumentError(f"'{name}': runs_after holds {entry!r}, which is no transform")
    if found == name:
        raise InvalidArgumentError(f"'{name}' cannot run after itself")
    return found


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
