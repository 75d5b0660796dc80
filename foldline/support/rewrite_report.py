"""The report of one optimisation: what each transform did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

Disposition: TypeAlias = Literal[
    "replacements",
    "skipped_removed",
    "skipped_nonconvex",
    "skipped_dead",
    "rejected_by_condition",
]
"""What can become of a match."""


@dataclass
class RewriteRow:
    """What one transform did. `matches` is the sum of what became of them."""

    name: str
    applications: int = 0
    """Iterations in which it changed something."""
    replacements: int = 0
    matches: int = 0
    skipped_removed: int = 0
    """An earlier replacement of the turn removed or rewired one of its nodes."""
    skipped_nonconvex: int = 0
    skipped_dead: int = 0
    """Nothing outside reads what it makes."""
    rejected_by_condition: int = 0
    nodes_removed: int = 0
    nodes_added: int = 0
    seconds: float = 0.0

    def count(self, disposition: Disposition) -> None:
        """Count a match, and what became of it."""
        setattr(self, disposition, getattr(self, disposition) + 1)
        self.matches += 1


@dataclass
class OptimizeReport:
    """What an optimisation did, one row a transform, in the order in which they ran."""

    status: str = "running"
    """`done`, or the status of the error that ended it."""

    iterations: int = 0
    converged: bool = False
    """Whether the last iteration changed nothing; False where the bound was reached."""
    nodes_before: int = 0
    nodes_after: int = 0
    rows: list[RewriteRow] = field(default_factory=list[RewriteRow])

    def row(self, name: str) -> RewriteRow:
        """The row of a transform; raises KeyError for one that did not run."""
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(name)

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> OptimizeReport:
        """The report that `to_json` gave."""
        rows: Any = [RewriteRow(**row) for row in given["rows"]]
        return cls(**{**given, "rows": rows})

    def to_json(self) -> dict[str, Any]:
        """The report as plain dictionaries, lists, strings and numbers."""
        return asdict(self)
