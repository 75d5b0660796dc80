"""Do two models compute the same? Run both on random, edge and given inputs, and compare outputs.

(a, b) -> sessions at O0 -> feeds -> outputs side by side -> the first output that differs
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from foldline.compiler import CompiledModel, compile
from foldline.sample_inputs import (
    EDGES,
    SIZES,
    fitting_size,
    has_unknown_dimensions,
    sample_feed,
)
from foldline.session import NodeArg, Session
from foldline.support.errors import FoldlineError, InvalidArgumentError
from foldline.support.progress import tell
from foldline.value_difference import Allowed, difference

Feed = Mapping[str, Any]

_Outcome: TypeAlias = Sequence[Any] | FoldlineError
"""Outputs, or why there are none."""


@dataclass(frozen=True)
class Case:
    """One set of inputs, and how the outputs compare."""

    name: str
    equal: bool
    output: str | None
    """The first output that differs."""
    max_error: float
    """max|Δ| / max(max|a|, 1e-3) over all outputs; inf where they cannot be compared."""
    message: str
    """What differs, or why both models refuse the inputs."""


@dataclass(frozen=True)
class CheckResult:
    """How two models compare."""

    cases: list[Case]

    @property
    def equal(self) -> bool:
        """Whether no case tells the two apart."""
        return all(case.equal for case in self.cases)


def check(
    a: Any, b: Any, *, inputs: Feed | None = None, rtol: float | None = None, seed: int = 0
) -> CheckResult:
    """Compare two models on random, edge (NaN, inf, -0, zero-size, other dims) and given inputs.

    `a` and `b` are paths, bytes, file objects or ModelProtos, which run as they are (at O0), or
    compiled models or sessions. Without `rtol` outputs must agree bit for bit, any NaN being equal
    to any other; with it, `max_error` must not exceed it. Inputs that both models refuse say
    nothing; `InvalidArgumentError` if there are no others.
    """
    first, second = _session(a), _session(b)
    return Baseline(first, inputs=inputs, seed=seed).compare(second, rtol)


class Baseline:
    """A model that others are compared with; it is run once on each set of inputs."""

    def __init__(
        self, model: Session, *, inputs: Feed | None = None, seed: int = 0, made_up: bool = True
    ):
        """`made_up`: whether to compare on random and edge inputs, beside those given."""
        self._session = model
        self._inputs = inputs
        self._made_up = made_up
        self._seed = seed
        self._outcomes: dict[str, _Outcome] = {}
        self.feeds: dict[str, Feed] = {}
        """The inputs of the last comparison, by the names of its cases."""

    def compare(self, other: Session, rtol: float | None = None, steps: int = 0) -> CheckResult:
        """How a model compares; integers may differ by `steps`, whatever `rtol` is.

        Raises InvalidArgumentError where no inputs suit both.
        """
        allowed = Allowed(rtol, steps)
        cases = [_interface(self._session, other)]
        if not cases[0].equal:
            return CheckResult(cases)
        arguments = _common_arguments(self._session, other)
        refusals: list[Case] = []
        for name, feed in self._feeds(arguments):
            self.feeds[name] = feed
            tell(f"comparing on inputs {name!r}")
            case, refused = self._case(name, feed, other, allowed)
            cases.append(case)
            refusals += [case] if refused else []
        if len(refusals) == len(cases) - 1:
            why = f"; {refusals[0].name}: {refusals[0].message}" if refusals else ""
            raise InvalidArgumentError(f"no made-up input suits the models, give inputs{why}")
        return CheckResult(cases)

    def _feeds(self, arguments: list[_Argument]) -> Iterator[tuple[str, Feed]]:
        if self._made_up or self._inputs is None:
            return _feeds(arguments, self._inputs, self._seed, self._size(arguments))
        return iter([("given", self._inputs)])

    def sample(self) -> Feed:
        """Random inputs that this model takes; InvalidArgumentError where none can be made."""
        arguments = _common_arguments(self._session, self._session)
        return sample_feed(arguments, unknown=self._size(arguments), seed=self._seed)

    def _size(self, arguments: list[_Argument]) -> int:
        """The first size of unknown dimensions that this model takes."""
        return fitting_size(
            arguments,
            lambda feed: not isinstance(self._outcome("random", feed), FoldlineError),
            self._seed,
        )

    def _outcome(self, name: str, feed: Feed) -> _Outcome:
        key = f"{name} {[(name, np.shape(value)) for name, value in feed.items()]}"
        if key not in self._outcomes:
            self._outcomes[key] = _run(self._session, feed)
        return self._outcomes[key]

    def _case(self, name: str, feed: Feed, other: Session, allowed: Allowed) -> tuple[Case, bool]:
        """The comparison on one feed, and whether both refused it."""
        mine = self._outcome(name, feed)
        return _case(name, other.get_outputs(), mine, _run(other, feed), allowed)


def _session(model: Any) -> Session:
    if isinstance(model, Session):
        return model
    if isinstance(model, CompiledModel):
        return model.session()
    return compile(model, options={"oo.level": "O0"}).session()


def _interface(first: Session, second: Session) -> Case:
    """Names, order and types of inputs and outputs."""
    sides = [
        [[(arg.name, arg.type) for arg in args] for args in (s.get_inputs(), s.get_outputs())]
        for s in (first, second)
    ]
    for what, mine, other in zip(("inputs", "outputs"), *sides, strict=True):
        if mine != other:
            return Case("interface", False, None, np.inf, f"{what} are {mine} against {other}")
    return Case("interface", True, None, 0.0, "")


@dataclass(frozen=True)
class _Argument:
    name: str
    type: str
    shape: tuple[int | str | None, ...]


def _common_arguments(first: Session, second: Session) -> list[_Argument]:
    """Inputs with each dimension that either model fixes."""
    return [
        _Argument(a.name, a.type, _fixed(tuple(a.shape or ()), tuple(b.shape or ())))
        for a, b in zip(first.get_inputs(), second.get_inputs(), strict=True)
    ]


def _fixed(
    a: tuple[int | str | None, ...], b: tuple[int | str | None, ...]
) -> tuple[int | str | None, ...]:
    if len(a) != len(b):
        return a or b
    return tuple(x if isinstance(x, int) else y for x, y in zip(a, b, strict=True))


def _feeds(
    arguments: list[_Argument], given: Feed | None, seed: int, unknown: int
) -> Iterator[tuple[str, Feed]]:
    """Inputs to compare on. Other sizes than `unknown` only where a dimension is unknown."""
    if given is not None:
        yield "given", given
    try:
        for kind in EDGES:
            yield kind, sample_feed(arguments, kind, unknown, seed)
    except InvalidArgumentError:
        if given is None:
            raise
        return
    if has_unknown_dimensions(arguments):
        for name, size in (("zero-size", 0), ("other dims", _other(unknown)), ("dims of one", 1)):
            yield name, sample_feed(arguments, unknown=size, seed=seed)


def _other(size: int) -> int:
    """Another size: an odd one where small ones do, else one that is as round."""
    return size + 1 if size == SIZES[0] else 2 * size


def _case(
    name: str, outputs: Sequence[NodeArg], mine: _Outcome, other: _Outcome, allowed: Allowed
) -> tuple[Case, bool]:
    """The comparison of two outcomes, and whether both are refusals."""
    if isinstance(mine, FoldlineError) and isinstance(other, FoldlineError):
        return Case(name, True, None, 0.0, f"both refuse: {mine}"), True
    if isinstance(mine, FoldlineError) or isinstance(other, FoldlineError):
        side, error = ("first", mine) if isinstance(mine, FoldlineError) else ("second", other)
        return Case(name, False, None, np.inf, f"only the {side} model refuses: {error}"), False
    worst, output, message = 0.0, None, ""
    for argument, x, y in zip(outputs, mine, other, strict=True):
        error, what = difference(x, y, allowed)
        worst = max(worst, error)
        if what and output is None:
            output, message = argument.name, what
    return Case(name, output is None, output, worst, message), False


def _run(session: Session, feed: Feed) -> _Outcome:
    try:
        return session.run(None, feed)
    except FoldlineError as error:
        return error
