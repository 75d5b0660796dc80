"""Exact mode on every model of the zoo: the same bits at O0 and O3, and what it costs.

    python -m benchmarks.exact [--only id,id] [--models DIR]

Per model: whether all outputs at O0 and O3 are the same bytes, for one thread and for two, or the
operators that have no exact kernel; the greatest difference from fast mode, relative to the
greatest output; the seconds of a run in both modes at O3, the best of three, and their ratio. Ends
with 1 if bits differ.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.common import geometric_mean, in_child, table, write_results
from benchmarks.model_sets import Feed, ModelSet, model_set
from foldline.support.errors import UnsupportedOperator

if TYPE_CHECKING:
    from foldline.session import Session

TIMEOUT = 900.0
HEADERS = ("model", "O0 = O3", "difference", "fast", "exact", "exact/fast", "note")
RUNS = 3


def main() -> int:
    """Print the table; returns 1 if bits differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="identifiers, with commas between")
    parser.add_argument("--models", help="a folder of models instead of the zoo")
    parser.add_argument("--measure", metavar="ID", help="what a child does")
    arguments = parser.parse_args()
    if arguments.measure:
        models = model_set(arguments.models, arguments.measure)
        print(json.dumps(measure(models, arguments.measure)))
        return 0
    folder = ("--models", arguments.models) if arguments.models else ()
    results: list[dict[str, Any]] = []
    for model in model_set(arguments.models, arguments.only).ids:
        found = in_child("benchmarks.exact", "--measure", model, *folder, seconds=TIMEOUT)
        results.append({"model": model, **found})
        print(" ".join(cell for cell in _cells(results[-1]) if cell), flush=True)
    print(table(HEADERS, map(_cells, results)))
    ratios = [row["exact"] / row["fast"] for row in results if row.get("fast")]
    same = sum(row.get("same", False) for row in results)
    print(f"{same} of {len(results)} models have the same bits", end="")
    print(f"; exact/fast {geometric_mean(ratios):.2f} (geometric mean)" if ratios else "")
    write_results("exact", results)
    return int(any(row.get("same") is False for row in results))


def measure(models: ModelSet, model_id: str) -> dict[str, Any]:
    """What is said of one model."""
    import foldline

    path, feed = models.path(model_id), models.feeds(model_id)[0]
    try:
        plain = exact_session(path, 1, level="O0")
        exact = exact_session(path, 2)
    except UnsupportedOperator as error:
        return {"refused": refused_operators(error)}
    expected = plain.run(None, feed)
    runs = [exact.run(None, feed) for _ in range(2)]
    fast = foldline.compile(path).session(threads=2)
    return {
        "same": all(_bits(run) == _bits(expected) for run in runs),
        "difference": _difference(expected, fast.run(None, feed)),
        "fast": best_seconds(fast, feed),
        "exact": best_seconds(exact, feed),
    }


def exact_session(path: Path, threads: int, level: str = "O3") -> Session:
    """A session of exact mode. Raises UnsupportedOperator where it has no kernel."""
    import foldline

    options = {"mode": "exact", "oo.level": level}
    return foldline.compile(path, options=options).session(threads=threads)


def refused_operators(error: UnsupportedOperator) -> list[str]:
    """The operators that exact mode has no kernel for."""
    return [line.split(",")[0].strip() for line in str(error).splitlines()[1:-1]]


def best_seconds(
    session: Session, feed: Feed, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Seconds of the fastest of some runs, when the session has its plan."""
    times: list[float] = []
    for _ in range(RUNS + 2):  # the first two make a plan
        start = clock()
        session.run(None, feed)
        times.append(clock() - start)
    return min(times[2:])


def _bits(values: list[Any]) -> list[Any]:
    return [
        (v.dtype.name, v.shape, v.tobytes()) if isinstance(v, np.ndarray) else repr(v)
        for v in values
    ]


def _difference(expected: list[Any], actual: list[Any]) -> float:
    found = [0.0]
    for a, b in zip(expected, actual, strict=True):
        if isinstance(a, np.ndarray) and a.shape == b.shape and a.dtype.kind in "fV" and a.size:
            wide = a.astype(np.float64)
            with np.errstate(all="ignore"):
                apart = np.abs(wide - b.astype(np.float64))
            scale = max(float(np.nanmax(np.abs(wide))), 1e-3)
            found.append(float(np.nanmax(apart)) / scale)
    return max(found)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    if "same" not in row:
        note = f"refused: {', '.join(row['refused'])}" if "refused" in row else str(row)
        return (row["model"], "", "", "", "", "", note)
    return (
        row["model"],
        "yes" if row["same"] else "NO",
        f"{row['difference']:.1e}",
        f"{row['fast'] * 1e3:.1f} ms",
        f"{row['exact'] * 1e3:.1f} ms",
        f"{row['exact'] / row['fast']:.2f}",
        "",
    )


if __name__ == "__main__":
    raise SystemExit(main())
