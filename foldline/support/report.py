"""The report of a compile: what each pass did to the model, in how long, and why."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from foldline.support.remarks import Remark
from foldline.support.rewrite_report import OptimizeReport

NO_PASSES = "(no passes)"
"""Stands in the table for a stage that ran no pass."""


@dataclass(frozen=True)
class PassRow:
    """One line of the table. Passes of one traversal share its walk, but not its time."""

    stage: str
    name: str
    """The pass, or `NO_PASSES`."""
    nodes_before: int
    """Nodes of the model, bodies and functions included, constants not."""
    nodes_after: int
    seconds: float
    changes: int = 0
    """How often it changed something; of a transform, the turns in which it did."""


@dataclass
class EngineRow:
    """What a folding engine did for one operator."""

    engine: str
    op_type: str
    computed: int = 0
    declined: dict[str, int] = field(default_factory=dict[str, int])
    """How often, by reason."""
    failed: int = 0
    seconds: float = 0.0


@dataclass
class MarkRow:
    """What became of the potential constants that one pass found: made = taken + dropped + left."""

    source: str
    """The pass."""
    made: int = 0
    """Operations that were marked."""
    taken: dict[str, int] = field(default_factory=dict[str, int])
    """How many became constants, by stage."""
    dropped: int = 0
    """How many went for another reason: what they were concluded from changed, or the node went."""


@dataclass
class Report:
    """What a compile did."""

    rows: list[PassRow] = field(default_factory=list[PassRow])
    remarks: list[Remark] = field(default_factory=list[Remark])
    engines: list[EngineRow] = field(default_factory=list[EngineRow])
    marks: list[MarkRow] = field(default_factory=list[MarkRow])
    """Potential constants, by the pass that found them."""
    bounds: list[str] = field(default_factory=list[str])
    """Limits that were reached: the optimisation is correct but may be incomplete."""
    rewrites: list[OptimizeReport] = field(default_factory=list[OptimizeReport])
    """What each transform of the fusion stage matched, replaced and refused."""
    seconds: float = 0.0
    """Of all stages together."""

    def to_json(self) -> dict[str, Any]:
        """The report as plain dictionaries, lists, strings and numbers."""
        return {
            "passes": [asdict(row) for row in self.rows],
            "remarks": [remark._asdict() for remark in self.remarks],
            "engines": [asdict(row) for row in self.engines],
            "marks": [asdict(row) for row in self.marks],
            "bounds": list(self.bounds),
            "rewrites": [rewrite.to_json() for rewrite in self.rewrites],
            "seconds": self.seconds,
        }
