"""Where a stepper stops by itself: before a change that is of a rule, or about a node or value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from foldline.stages.gate import Application
from foldline.support.errors import InvalidArgumentError
from foldline.support.suggest import did_you_mean

Holds = Callable[[Application, str], bool]


def _by_rule(application: Application, glob: str) -> bool:
    return fnmatchcase(application.pass_name, glob)


def _by_name(application: Application, glob: str) -> bool:
    return any(fnmatchcase(name, glob) for name in (application.node, *application.touched))


def _by_type(application: Application, glob: str) -> bool:
    names = (application.op_type, *application.op_types)
    return any(fnmatchcase(n, glob) or fnmatchcase(n.rpartition(".")[2], glob) for n in names)


KINDS: dict[str, Holds] = {
    "rule": _by_rule,
    "node": _by_name,
    "value": _by_name,
    "type": _by_type,
}
"""`rule`: a pass or rule; `node`, `value`: a name; `type`: an operator, such as `Conv`."""


@dataclass(frozen=True)
class Breakpoint:
    """Stop before a change that `glob` fits."""

    kind: str
    glob: str

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidArgumentError(
                f"{self.kind!r} is nothing to stop at{did_you_mean(self.kind, KINDS)}; "
                f"there are {', '.join(KINDS)}"
            )

    def hits(self, application: Application) -> bool:
        """Whether the change is one to stop before."""
        return KINDS[self.kind](application, self.glob)

    def __str__(self) -> str:
        return f"{self.kind} {self.glob}"


def first_hit(
    breakpoints: Sequence[Breakpoint], applications: Sequence[Application], start: int
) -> tuple[int, Breakpoint] | None:
    """The position of the first change, from `start` on, that one of them stops before."""
    for index in range(start, len(applications)):
        for point in breakpoints:
            if point.hits(applications[index]):
                return index, point
    return None
