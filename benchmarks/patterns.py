"""Patterns that are there before fusion, those that fusion has taken, and why others are left.

    python -m benchmarks.patterns [--only id,id] [--models DIR]

Patterns are counted by their shape, by other code than the rules of fusion, in the model as it is
after clean-up. Each one that is left has a remark. Models that `derive_zoo.py` converts to float16
have a table of their own, as they hold the patterns of their sources again. Ends with 1 if less
than 95 % of a pattern are fused in the others, or one that is left has no remark.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.common import in_child, table, write_results
from benchmarks.model_sets import model_set
from benchmarks.pattern_counts import Instance, explained, instances, left_of
from benchmarks.pattern_kinds import KINDS
from benchmarks.zoo import derived
from foldline.stages.context import PassContext
from foldline.stages.observers import Observer
from foldline.stages.stage import Stage

TIMEOUT = 600.0
WANTED = 0.95
BEFORE = "before_fusion"
HEADERS = ("models", "there", "fused", "share", "left with a remark", "without")


def main() -> int:
    """Print the table; returns 1 if too few are fused, or one is left without a word."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="identifiers, with commas between")
    parser.add_argument("--models", help="a folder of models instead of the zoo")
    parser.add_argument("--count", metavar="FILE", help="what a child does")
    arguments = parser.parse_args()
    if arguments.count:
        print(json.dumps(count(Path(arguments.count))))
        return 0
    models = model_set(arguments.models, arguments.only)
    results: dict[str, Any] = {}
    for model_id in models.ids:
        path = str(models.path(model_id).resolve())
        results[model_id] = in_child("benchmarks.patterns", "--count", path, seconds=TIMEOUT)
        _print_left(model_id, results[model_id])
    converted = {model.id for model in derived() if model.by == "float16"}
    parts = {
        "patterns": {name: found for name, found in results.items() if name not in converted},
        "converted": {name: found for name, found in results.items() if name in converted},
    }
    rows = {name: [_row(kind.name, part) for kind in KINDS] for name, part in parts.items()}
    for name, part in parts.items():
        if part:
            print(f"\n{table((name, *HEADERS), map(_cells, rows[name]))}")
    write_results("patterns", {**rows, "models": results})
    is_failed = any("failure" in found for found in results.values())
    is_silent = any(row["silent"] for row in rows["converted"])
    return int(is_failed or is_silent or any(map(_is_short, rows["patterns"])))


def count(path: Path) -> dict[str, Any]:
    """How many instances of each pattern there are and were fused, and why others were not."""
    import foldline

    seen = _Before()
    compiled = foldline.compile(path, options={"oo.level": "O3"}, observers=[seen])
    left = left_of(seen.found, compiled.module)
    remarks = [
        (remark.pass_name, remark.node, remark.message)
        for remark in compiled.report.remarks
        if remark.kind == "declined"
    ]
    there = Counter(each.kind.name for each in seen.found)
    return {
        "there": there,
        "fused": there - Counter(each.kind.name for each in left),
        "left": [
            {"pattern": each.kind.name, "node": min(each.names), "why": explained(each, remarks)}
            for each in left
        ],
    }


class _Before(Observer):
    """Looks for patterns when fusion is about to begin."""

    def __init__(self) -> None:
        self.found: list[Instance] = []

    def after_stage(self, stage: Stage, number: int, context: PassContext) -> None:
        """Look, after the stage before fusion."""
        del number
        if stage.name == BEFORE:
            self.found = instances(context.module)


def _row(name: str, results: dict[str, Any]) -> dict[str, Any]:
    found = [row for row in results.values() if row.get("there", {}).get(name)]
    left = [each for row in found for each in row["left"] if each["pattern"] == name]
    silent = sum(not each["why"] for each in left)
    return {
        "pattern": name,
        "models": len(found),
        "there": sum(row["there"][name] for row in found),
        "fused": sum(row["fused"].get(name, 0) for row in found),
        "explained": len(left) - silent,
        "silent": silent,
    }


def _is_short(row: dict[str, Any]) -> bool:
    return row["fused"] < WANTED * row["there"] or row["silent"] > 0


def _cells(row: dict[str, Any]) -> list[str]:
    share = f"{row['fused'] / row['there']:.1%}" if row["there"] else "-"
    return [row["pattern"], *(str(row[k]) for k in ("models", "there", "fused")), share] + [
        str(row[key]) for key in ("explained", "silent")
    ]


def _print_left(model_id: str, found: dict[str, Any]) -> None:
    if "failure" in found:
        print(f"{model_id}: {found['failure']}", flush=True)
        return
    total, fused = (sum(found[key].values()) for key in ("there", "fused"))
    print(f"{model_id}: {fused} of {total} fused", flush=True)
    whys = Counter((each["pattern"], each["why"]) for each in found["left"])
    for (pattern, why), times in whys.items():
        print(f"  {times} x {pattern}: {why or 'NO REMARK'}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
