"""The report as one HTML file that needs nothing else: data, pictures, tables, explanations.

    recorder = StageRecorder()
    compiled = foldline.compile(model, observers=[recorder])
    write_page(path, document(name, recorder, compiled.report))

The document is JSON. All texts stand once, in `strings`; everything else refers to them by number.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

import foldline
from foldline.exporter.files import replace_file
from foldline.support.report import PassRow, Report
from foldline.workbench.nodes import Node
from foldline.workbench.recorder import Change, StageRecorder, change, history
from foldline.workbench.regions import NO_REGION, regions_of

SCRIPTS = (
    "cytoscape.min.js",
    "dagre.min.js",
    "model.js",
    "layers.js",
    "picture_style.js",
    "picture.js",
    "tables.js",
    "memory.js",
    "report.js",
)
"""In the order in which they run; the first two are other people's (LICENSES.txt)."""


@dataclass
class Strings:
    """Texts by number."""

    held: dict[str, int] = field(default_factory=dict[str, int])

    def __getitem__(self, text: str) -> int:
        return self.held.setdefault(text, len(self.held))

    def each(self, texts: Iterable[str]) -> list[int]:
        """The numbers of several."""
        return [self[text] for text in texts]


class Nodes:
    """Rows of nodes; what a stage leaves as it is has the row it had."""

    def __init__(self, strings: Strings):
        self._strings = strings
        self._rows: dict[tuple[int, Node, int], int] = {}

    def row(self, entity: int, node: Node, stored: int) -> int:
        """The number of a node's row."""
        return self._rows.setdefault((entity, node, stored), len(self._rows))

    def to_json(self) -> list[list[Any]]:
        """Entity, graph, operator, name, inputs, outputs, types, attributes, value, origins, bytes.

        Attributes are names and values in turn; origins are what a constant was folded from.
        """
        text, each = self._strings.__getitem__, self._strings.each
        return [
            [
                entity,
                *map(text, (node.graph, node.op_type, node.name)),
                *map(each, (node.inputs, node.outputs, node.types)),
                each(part for pair in node.attributes for part in pair),
                text(node.value),
                each(node.folded),
                stored,
            ]
            for entity, node, stored in self._rows
        ]


def document(
    title: str, recorder: StageRecorder, report: Report, run: dict[str, Any] | None = None
) -> dict[str, Any]:
    """All that the page shows. `run`: what `foldline.workbench.measured` found, if it was asked."""
    strings, moments = Strings(), recorder.moments
    nodes = Nodes(strings)
    changes = [change(before, after) for before, after in pairwise(moments)]
    past = history(moments, changes)
    regions = regions_of(past, moments)
    rows = [
        [nodes.row(*row) for row in zip(entities, moment.nodes, moment.stored, strict=True)]
        for entities, moment in zip(past.entities, moments, strict=True)
    ]
    stages = [{"name": moments[0].stage, "rows": rows[0], "before": [], "after": [], "passes": []}]
    for index, (moment, changed) in enumerate(zip(moments[1:], changes, strict=True)):
        passes = [row for row in report.rows if row.stage == moment.stage]
        stages.append(_stage(moment.stage, passes, changed, rows[index : index + 2], strings))
    return {
        "title": title,
        "version": foldline.__version__,
        "seconds": report.seconds,
        "stages": stages,
        "nodes": nodes.to_json(),
        "regions": [[p, strings[t]] for p, t in zip(regions.parents, regions.labels, strict=True)],
        "region_of": [regions.of.get(e, NO_REGION) for e in range(len(past.first))],
        "order": past.order,
        "inputs": [strings.each(pair) for pair in moments[-1].inputs],
        "outputs": [strings.each(pair) for pair in moments[-1].outputs],
        "remarks": [strings.each(remark) for remark in report.remarks],
        "bounds": list(report.bounds),
        "run": run,
        "strings": list(strings.held),
    }


def _stage(
    name: str,
    passes: Sequence[PassRow],
    changed: Change,
    rows: Sequence[Sequence[int]],
    strings: Strings,
) -> dict[str, Any]:
    """One stage: its nodes, and by row what happened to those before and after it."""
    before, after = (
        [
            [sides[position], strings[judged.status], strings[judged.text]]
            for position, judged in sorted(side.items())
        ]
        for sides, side in zip(rows, (changed.before, changed.after), strict=True)
    )
    return {
        "name": name,
        "rows": rows[1],
        "before": before,
        "after": after,
        "passes": [
            [row.name, row.nodes_before, row.nodes_after, row.changes, row.seconds]
            for row in passes
        ],
    }


def page(data: dict[str, Any]) -> str:
    """The HTML of a document."""
    assets = files("foldline.workbench") / "assets"
    environment = Environment(
        loader=PackageLoader("foldline.workbench"), autoescape=True, undefined=StrictUndefined
    )
    return environment.get_template("report.html.j2").render(
        title=data["title"],
        style=(assets / "report.css").read_text("utf-8"),
        scripts=[(assets / name).read_text("utf-8") for name in SCRIPTS],
        data=_script_json(data),
    )


def _script_json(data: dict[str, Any]) -> str:
    """JSON that cannot end the script it stands in, whatever names a model has."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def write_page(path: Path, data: dict[str, Any]) -> None:
    """Write the page of a document; the file appears complete or not at all."""
    replace_file(path, page(data).encode("utf-8", "replace"))
