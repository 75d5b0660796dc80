"""Check every model of the zoo against ONNX Runtime with optimisation off, at O0 and at O3.

    python -m benchmarks.run_zoo [--only id,id] [--levels O0,O3]

Three errors per model and level, held against the limits of tests/zoo/limits.py: of a session,
of the same session with other sizes of the dynamic dims (where ONNX Runtime takes them), and of
the exported file, which must pass the checker with full inference. Ends with 1 if any is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

from benchmarks.common import (
    in_child,
    ort_session,
    run_or_none,
    selected_models,
    table,
    write_results,
)
from benchmarks.zoo import kinds, model_path
from benchmarks.zoo_inputs import make_inputs
from tests.zoo.limits import limit, worst_error

OTHER_DIMS = {"N": 2, "H": 256, "W": 192, "S": 17, "T": 9}
TIMEOUT = 600.0
ERRORS = ("session", "other dims", "export")


def main() -> int:
    """Check what was asked for; returns 1 if a model is beyond its limit or fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="identifiers, with commas between")
    parser.add_argument("--levels", default="O0,O3")
    parser.add_argument("--check", nargs=2, metavar=("ID", "LEVEL"), help="what a child does")
    arguments = parser.parse_args()
    if arguments.check:
        print(json.dumps(check_model(*arguments.check)))
        return 0
    return _check_all(selected_models(arguments.only), arguments.levels.split(","))


def check_model(model_id: str, level: str) -> dict[str, Any]:
    """The errors of one model at one level, its limit, and its seconds."""
    import onnx

    import foldline

    oracle = ort_session(model_path(model_id), "off")
    feed, other_feed = make_inputs(model_id), make_inputs(model_id, seed=1, **OTHER_DIMS)
    expected, other_expected = oracle.run(None, feed), run_or_none(oracle, other_feed)
    start = time.perf_counter()
    compiled = foldline.compile(model_path(model_id), options={"oo.level": level})
    compiled_at = time.perf_counter()
    session = compiled.session(threads=1)
    errors = {"session": worst_error(session.run(None, feed), expected)}
    ran_at = time.perf_counter()
    if other_expected is not None:
        errors["other dims"] = worst_error(session.run(None, other_feed), other_expected)
    exported = compiled.to_proto()
    onnx.checker.check_model(exported, full_check=True)
    rerun = ort_session(exported.SerializeToString(), "off").run(None, feed)
    errors["export"] = worst_error(rerun, expected)
    return {
        "errors": errors,
        "limit": limit(kinds()[model_id], _spread(model_id, feed, expected)),
        "compile_seconds": compiled_at - start,
        "first_run_seconds": ran_at - compiled_at,
    }


def _spread(model_id: str, feed: dict[str, Any], expected: list[Any]) -> float:
    if kinds()[model_id] != "quantised":
        return 0.0
    levels = ("basic", "extended", "all")
    sessions = (ort_session(model_path(model_id), level) for level in levels)
    return max(worst_error(session.run(None, feed), expected) for session in sessions)


def _check_all(models: list[str], levels: list[str]) -> int:
    results: dict[str, Any] = {}
    for model_id in models:
        for level in levels:
            row = in_child("benchmarks.run_zoo", "--check", model_id, level, seconds=TIMEOUT)
            row["ok"] = "failure" not in row and max(row["errors"].values()) <= row["limit"]
            results[f"{model_id} {level}"] = row
            verdict = "ok" if row["ok"] else row.get("failure", "beyond the limit")
            print(f"{model_id} at {level}: {verdict}", flush=True)
    headers = ["model", *ERRORS, "limit", "compile s", "first run s", "ok"]
    print()
    print(table(headers, [_cells(*item) for item in results.items()]))
    good = sum(row["ok"] for row in results.values())
    print(f"{good} of {len(results)} within their limits")
    write_results("run_zoo", results)
    return int(good < len(results))


def _cells(name: str, row: dict[str, Any]) -> list[str]:
    if "failure" in row:
        return [name, *"-" * (len(ERRORS) + 3), "failed"]
    errors = [f"{row['errors'][e]:.1e}" if e in row["errors"] else "-" for e in ERRORS]
    seconds = [f"{row[key]:.2f}" for key in ("compile_seconds", "first_run_seconds")]
    return [name, *errors, f"{row['limit']:.1e}", *seconds, "yes" if row["ok"] else "NO"]


if __name__ == "__main__":
    sys.exit(main())
