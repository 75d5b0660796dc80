"""Marks made in Prepare and what became of them, per model and by the pass that made them.

    python -m benchmarks.marks [--only id,id] [--models DIR]

A mark is a potential constant: a value known in full on an operation that is not a constant yet.
What is left are nodes that are kept: they name an output of the model, or the user keeps them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import foldline
from benchmarks.common import selected_models, table, write_results
from benchmarks.zoo import model_path
from foldline.support.debug_options import DebugOptions
from foldline.support.report import MarkRow

HEADERS = ("model", "source", "made", "stage1", "stage2", "later", "dropped", "left")


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--models", type=Path, help="a folder of models instead of the zoo")
    arguments = parser.parse_args()
    paths = (
        sorted(arguments.models.glob("*.onnx"))
        if arguments.models
        else [model_path(model) for model in selected_models(arguments.only)]
    )
    rows: list[tuple[str, ...]] = []
    totals: dict[str, list[int]] = {}
    for path in paths:
        options = {"oo.level": "O2"}
        report = foldline.compile(path, options=options, debug=DebugOptions()).report
        for mark in report.marks:
            numbers = _numbers(mark)
            rows.append((path.stem, mark.source, *map(str, numbers)))
            total = totals.setdefault(mark.source, [0] * len(numbers))
            totals[mark.source] = [a + b for a, b in zip(total, numbers, strict=True)]
    rows += [("all", source, *map(str, total)) for source, total in sorted(totals.items())]
    print(table(HEADERS, rows))
    write_results("marks", [dict(zip(HEADERS, row, strict=True)) for row in rows])
    return 0


def _numbers(mark: MarkRow) -> list[int]:
    early = [mark.taken.get(stage, 0) for stage in ("stage1", "stage2")]
    later = sum(mark.taken.values()) - sum(early)
    left = mark.made - sum(mark.taken.values()) - mark.dropped
    return [mark.made, *early, later, mark.dropped, left]


if __name__ == "__main__":
    raise SystemExit(main())
