"""Compile generated models of 10,000 and of 100,000 nodes: how long, and does it grow linearly?

    python -m benchmarks.scale [--only chain,wide] [--sizes 10000,100000] [--runs 3]

CPU seconds, each run in a process of its own; medians. Import and verification are timed alone;
the total is a whole compile at O1 (import, verification, folding) and the export. Ends with 1 if
the larger size takes 60 s or more in all, or more than 1.3 times as long per node as the smaller.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.common import in_child, table, versions, write_results
from benchmarks.scale_models import BUILDERS

STEPS = ("import", "verify", "compile", "export")
TOTAL = ("compile", "export")
MAX_SECONDS = 60.0
MAX_GROWTH = 1.3
TIMEOUT = 900.0


def main() -> int:
    """Measure what was asked for; returns 1 if a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(BUILDERS))
    parser.add_argument("--sizes", default="10000,100000", help="a smaller and a larger")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--measure", nargs=2, metavar=("SHAPE", "NODES"), help="what a child does")
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure[0], int(arguments.measure[1]))))
        return 0
    sizes = [int(size) for size in arguments.sizes.split(",")]
    return _measure_all(arguments.only.split(","), sizes, arguments.runs)


def measure(shape: str, nodes: int) -> dict[str, float]:
    """CPU seconds by step."""
    import foldline
    from foldline.dialects.onnx.verifier import verify_model
    from foldline.importer import import_model

    model = BUILDERS[shape](nodes)
    seconds: dict[str, float] = {}

    def timed(step: str, run: Callable[[], Any]) -> Any:
        start = time.process_time()
        result = run()
        seconds[step] = time.process_time() - start
        return result

    module = timed("import", lambda: import_model(model))
    timed("verify", lambda: verify_model(module))
    compiled = timed("compile", lambda: foldline.compile(model, options={"oo.level": "O1"}))
    timed("export", compiled.to_proto)
    return seconds


def _measure_all(shapes: list[str], sizes: list[int], runs: int) -> int:
    results = {shape: _measure_shape(shape, sizes, runs) for shape in shapes}
    rows = [
        [f"{shape} {size:,}", *_cells(medians), growth]
        for shape, result in results.items()
        for size, medians, growth in zip(
            sizes, result["medians"], ["", _growth_text(result)], strict=True
        )
    ]
    print()
    print(table(["CPU seconds", *STEPS, "total", "growth"], rows))
    missed = [shape for shape, result in results.items() if not _is_within(result)]
    print(
        f"limits: {MAX_SECONDS:.0f} s in all, {MAX_GROWTH} times the seconds per node; missed by: "
        f"{', '.join(missed) or 'none'}"
    )
    write_results("scale", {"versions": versions("onnx", "xdsl"), "models": results})
    return int(bool(missed))


def _measure_shape(shape: str, sizes: list[int], runs: int) -> dict[str, Any]:
    """Medians by size, sizes taking turns; and growth of the seconds per node."""
    taken: dict[int, list[dict[str, Any]]] = {size: [] for size in sizes}
    for run in range(runs):
        for size in sizes:
            row = in_child("benchmarks.scale", "--measure", shape, str(size), seconds=TIMEOUT)
            outcome = row.get("failure") or f"{_total(row):.1f} s"
            print(f"{shape} {size:,} run {run + 1}: {outcome}", flush=True)
            taken[size].append(row)
    medians = [_medians(taken[size]) for size in sizes]
    small, large = (row.get("total", 0.0) for row in medians)
    growth = large / small / (sizes[1] / sizes[0]) if small and large else None
    return {"medians": medians, "growth": growth}


def _medians(rows: list[dict[str, Any]]) -> dict[str, Any]:
    failures = [row["failure"] for row in rows if "failure" in row]
    if failures:
        return {"failure": failures[0]}
    medians = {step: statistics.median(row[step] for row in rows) for step in STEPS}
    return {**medians, "total": statistics.median(map(_total, rows))}


def _total(row: dict[str, Any]) -> float:
    return sum(row[step] for step in TOTAL)


def _is_within(result: dict[str, Any]) -> bool:
    total = result["medians"][1].get("total", MAX_SECONDS)
    return total < MAX_SECONDS and result["growth"] is not None and result["growth"] <= MAX_GROWTH


def _cells(medians: dict[str, Any]) -> list[str]:
    return [f"{medians[step]:.2f}" if step in medians else "-" for step in (*STEPS, "total")]


def _growth_text(result: dict[str, Any]) -> str:
    return "-" if result["growth"] is None else f"{result['growth']:.2f}"


if __name__ == "__main__":
    sys.exit(main())
