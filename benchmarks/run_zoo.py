"""Check every model of the zoo against ONNX Runtime with optimisation off, at O0 and at O3.

    python -m benchmarks.run_zoo [--only id,id] [--models DIR] [--levels O0,O3]

Two errors per model and level, held against the limits of tests/zoo/limits.py: of one session over
all settings of the dynamic dims that ONNX Runtime takes, and of the exported file, which must pass
the checker with full inference. Ends with 1 if any is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.common import (
    in_child,
    ort_session,
    run_or_none,
    table,
    write_results,
)
from benchmarks.error_limits import limit_of
from benchmarks.model_sets import ModelSet, model_set
from tests.zoo.limits import worst_error

TIMEOUT = 600.0


def main() -> int:
    """Check what was asked for; returns 1 if a model is beyond its limit or fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="identifiers, with commas between")
    parser.add_argument("--models", help="a folder of models instead of the zoo")
    parser.add_argument("--levels", default="O0,O3")
    parser.add_argument("--check", nargs=2, metavar=("ID", "LEVEL"), help="what a child does")
    arguments = parser.parse_args()
    if arguments.check:
        model_id, level = arguments.check
        print(json.dumps(check_model(model_set(arguments.models, model_id), model_id, level)))
        return 0
    folder = ("--models", arguments.models) if arguments.models else ()
    models = model_set(arguments.models, arguments.only)
    return _check_all(models.ids, arguments.levels.split(","), folder)


def check_model(models: ModelSet, model_id: str, level: str) -> dict[str, Any]:
    """The errors of one model at one level, its limit, and its seconds."""
    import onnx

    import foldline

    path = models.path(model_id)
    oracle = ort_session(path, "off")
    runs = [(feed, run_or_none(oracle, feed)) for feed in models.feeds(model_id)]
    wanted = [(feed, expected) for feed, expected in runs if expected is not None]
    start = time.perf_counter()
    compiled = foldline.compile(path, options={"oo.level": level})
    compiled_at = time.perf_counter()
    session = compiled.session(threads=1)
    session.run(None, wanted[0][0])
    ran_at = time.perf_counter()
    exported = compiled.to_proto()
    onnx.checker.check_model(exported, full_check=True)
    rerun = ort_session(exported.SerializeToString(), "off")
    return {
        "session": [worst_error(session.run(None, feed), expected) for feed, expected in wanted],
        "export": [worst_error(rerun.run(None, feed), expected) for feed, expected in wanted],
        "limit": limit_of(path, models.kind(model_id), wanted),
        "compile_seconds": compiled_at - start,
        "first_run_seconds": ran_at - compiled_at,
    }


def _check_all(models: Sequence[str], levels: Sequence[str], folder: Sequence[str]) -> int:
    results: dict[str, Any] = {}
    for model_id in models:
        for level in levels:
            arguments = ("--check", model_id, level, *folder)
            row = in_child("benchmarks.run_zoo", *arguments, seconds=TIMEOUT)
            row["ok"] = "failure" not in row and _worst(row) <= row["limit"]
            results[f"{model_id} {level}"] = row
            verdict = "ok" if row["ok"] else row.get("failure", "beyond the limit")
            print(f"{model_id} at {level}: {verdict}", flush=True)
    headers = ["model", "session", "export", "limit", "compile s", "first run s", "ok"]
    print()
    print(table(headers, [_cells(*item) for item in results.items()]))
    good = sum(row["ok"] for row in results.values())
    print(f"{good} of {len(results)} within their limits")
    write_results("run_zoo", results)
    return int(good < len(results))


def _worst(row: dict[str, Any]) -> float:
    return max(*row["session"], *row["export"])


def _cells(name: str, row: dict[str, Any]) -> list[str]:
    if "failure" in row:
        return [name, *"-" * 5, row["failure"]]
    errors = [" ".join(f"{e:.0e}" if e else "0" for e in row[of]) for of in ("session", "export")]
    seconds = [f"{row[key]:.2f}" for key in ("compile_seconds", "first_run_seconds")]
    return [name, *errors, f"{row['limit']:.1e}", *seconds, "yes" if row["ok"] else "NO"]


if __name__ == "__main__":
    sys.exit(main())
