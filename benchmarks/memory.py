"""How much memory a model takes beyond the imports, against ONNX Runtime.

python -m benchmarks.memory [--only ID,ID] [--least-bytes N]

Each model and runtime has a process of its own: it imports, notes its peak, loads the model, runs
it three times, and notes the peak again. What counts is how much the peak grew.
"""

from __future__ import annotations

import argparse
import json
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.common import (
    geometric_mean,
    in_child,
    ort_session,
    selected_models,
    table,
    versions,
    write_results,
)
from benchmarks.zoo import model_path

LEAST_BYTES = 5_000_000
"""The files of smaller models say little: allocators round up."""
MOST_RATIO = 1.3
RUNS = 3
TIMEOUT = 600.0


def main() -> None:
    """Measure what was asked for; print a table and keep the numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="identifiers, with commas between")
    parser.add_argument("--least-bytes", type=int, default=LEAST_BYTES, help="of a model's file")
    parser.add_argument("--measure", nargs=2, metavar=("RUNTIME", "ID"), help="what a child does")
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(*arguments.measure)))
    else:
        _measure_all(arguments.only, arguments.least_bytes)


def measure(runtime: str, model_id: str) -> dict[str, int]:
    """Bytes: the peak after the imports, and what loading and running added to it."""
    from benchmarks.synthetic import bench_inputs, bench_path

    feed, path = bench_inputs(model_id), bench_path(model_id)
    if runtime == "foldline":
        from foldline import compile

        start = resident()
        session: Any = compile(path).session(threads=1)
    else:
        # What it takes by itself is no part of a model.
        import_module("onnxruntime")
        start = resident()
        session = ort_session(path, "all", 1)
    loaded = peak()
    for _ in range(RUNS):
        session.run(None, feed)
    end = peak()
    return {
        "imports": start,
        "load": loaded - start,
        "peak": end - start,
        "held": resident() - start,
    }


def resident() -> int:
    """Bytes of this process in memory now."""
    return _status("VmRSS")


def peak() -> int:
    """The most bytes this process ever had in memory."""
    return _status("VmHWM")


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) << 10
    raise LookupError(name)


def _measure_all(only: str, least_bytes: int) -> None:
    results: dict[str, Any] = {}
    for model_id in selected_models(only):
        if model_path(model_id).stat().st_size < least_bytes:
            continue
        results[model_id] = {
            runtime: in_child("benchmarks.memory", "--measure", runtime, model_id, seconds=TIMEOUT)
            for runtime in ("foldline", "onnxruntime")
        }
        print(f"{model_id}: measured", flush=True)
    print()
    print(table(HEADERS, [_cells(*item) for item in results.items()]))
    ratios = {model_id: ratio for model_id, row in results.items() if (ratio := _ratio(row))}
    above = [model_id for model_id, ratio in ratios.items() if ratio > MOST_RATIO]
    print(
        f"geometric mean {geometric_mean(ratios.values()):.2f} over {len(ratios)} models; ", end=""
    )
    print(f"above {MOST_RATIO}: {', '.join(above) or 'none'}")
    write_results("memory", {"versions": versions("onnx", "numpy"), "models": results})


HEADERS = ["model", "file MB", "Foldline load", "peak", "held", "ORT load", "peak", "held", "ratio"]


def _ratio(row: dict[str, Any]) -> float | None:
    ours, theirs = row["foldline"], row["onnxruntime"]
    return ours["peak"] / theirs["peak"] if "peak" in ours and theirs.get("peak") else None


def _cells(model_id: str, row: dict[str, Any]) -> list[str]:
    cells = [model_id, _megabytes(model_path(model_id).stat().st_size)]
    for runtime in ("foldline", "onnxruntime"):
        cells += [_megabytes(row[runtime].get(name)) for name in ("load", "peak", "held")]
    ratio = _ratio(row)
    return [*cells, "-" if ratio is None else f"{ratio:.2f}"]


def _megabytes(size: int | None) -> str:
    return "-" if size is None else f"{size / 1e6:.1f}"


if __name__ == "__main__":
    main()
