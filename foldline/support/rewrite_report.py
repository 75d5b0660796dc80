"""The report of one optimisation: what each transform did."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


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


@dataclass
class OptimizeReport:
    """What an optimisation did, one row a transform, in the order in which they ran."""

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

    def to_json(self) -> dict[str, Any]:
        """The report as plain dictionaries, lists, strings and numbers."""
        return asdict(self)
