"""Run the files that ONNX Runtime's offline optimiser writes, beside ONNX Runtime itself.

    python -m benchmarks.run_optimised [--only id,id] [--models DIR] [--levels basic,extended]

Per model and level ONNX Runtime writes its optimised form, which Foldline and ONNX Runtime with
optimisation off then run at each setting of the dims that the latter takes. The table has the
largest error, held against the limits of tests/zoo/limits.py, and the operators of ONNX Runtime's
own that the file holds; where a model does not run, what Foldline said is below. Ends with 1 if any
is not run within its limit.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.common import in_child, ort_session, run_or_none, table, write_results
from benchmarks.error_limits import limit_of
from benchmarks.model_sets import Feed, ModelSet, model_set
from tests.zoo.limits import worst_error

TIMEOUT = 600.0


def main() -> int:
    """Check what was asked for; returns 1 if a model fails or is beyond its limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="identifiers, with commas between")
    parser.add_argument("--models", help="a folder of models instead of the zoo")
    parser.add_argument("--levels", default="basic,extended")
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
    """The error of the optimised form of one model at each setting, its limit, its operators."""
    import onnx

    import foldline
    from foldline.support.errors import FoldlineError

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{model_id}.onnx"
        ort_session(models.path(model_id), level, written=path)
        oracle = ort_session(path, "off")
        left = left_inputs(onnx.load(models.path(model_id)).graph, oracle)
        feeds = [left | feed for feed in models.feeds(model_id)]
        wanted = [(feed, run_or_none(oracle, feed)) for feed in feeds]
        row: dict[str, Any] = {"operators": contrib_operators(onnx.load(path).graph)}
        try:
            session = foldline.compile(path).session(threads=1)
            row["errors"] = [
                None if expected is None else worst_error(session.run(None, feed), expected)
                for feed, expected in wanted
            ]
        except FoldlineError as failure:
            return row | {"failure": str(failure)}
    return row | {"limit": limit_of(models.path(model_id), models.kind(model_id), wanted)}


def left_inputs(graph: Any, session: Any) -> Feed:
    """Values of the inputs that ONNX Runtime left in a file when it dropped their initializers.

    In files before IR version 4 an initializer is an input too, and of equal ones it keeps one.
    """
    from onnx.numpy_helper import to_array

    needed = {formal.name for formal in session.get_inputs()}
    return {kept.name: to_array(kept) for kept in graph.initializer if kept.name in needed}


def contrib_operators(graph: Any) -> dict[str, int]:
    """How often each operator that is not of ONNX is in a graph and the graphs inside."""
    found: Counter[str] = Counter()
    for node in graph.node:
        if not node.domain.startswith("ai.onnx") and node.domain:
            found[node.op_type] += 1
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                found.update(contrib_operators(inner))
    return dict(sorted(found.items()))


def _check_all(ids: tuple[str, ...], levels: list[str], folder: tuple[str, ...]) -> int:
    results: dict[str, Any] = {}
    for model_id in ids:
        for level in levels:
            arguments = ("--check", model_id, level, *folder)
            row = in_child("benchmarks.run_optimised", *arguments, seconds=TIMEOUT)
            row["ok"] = "failure" not in row and worst(row) <= row["limit"]
            results[f"{model_id} {level}"] = row
            print(f"{model_id} at {level}: {_verdict(row)}", flush=True)
    headers = ["model", "runs", "settings", "error", "limit", "agrees", "operators of its own"]
    print()
    print(table(headers, [_cells(*item) for item in results.items()]))
    for name, row in results.items():
        if "failure" in row:
            print(f"\n{name}: {row['failure']}")
    for level in levels:
        rows = [row for name, row in results.items() if name.endswith(f" {level}")]
        ran = sum("failure" not in row for row in rows)
        good = sum(row["ok"] for row in rows)
        print(f"{level}: {ran} of {len(rows)} run, {good} within their limits")
    write_results("run_optimised", results)
    return int(not all(row["ok"] for row in results.values()))


def worst(row: dict[str, Any]) -> float:
    """The largest error over the settings that ONNX Runtime takes."""
    return max((error for error in row["errors"] if error is not None), default=0.0)


def _verdict(row: dict[str, Any]) -> str:
    return "ok" if row["ok"] else row.get("failure", "beyond the limit").splitlines()[0]


def _cells(name: str, row: dict[str, Any]) -> list[str]:
    operators = ", ".join(row.get("operators", ())) or "-"
    if "failure" in row:
        return [name, "NO", "-", "-", "-", "NO", operators]
    settings = sum(error is not None for error in row["errors"])
    numbers = [str(settings), f"{worst(row):.1e}", f"{row['limit']:.1e}"]
    return [name, "yes", *numbers, "yes" if row["ok"] else "NO", operators]


if __name__ == "__main__":
    sys.exit(main())
