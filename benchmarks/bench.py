"""Time Foldline beside ONNX Runtime and the reference evaluator on the zoo and a chain.

    python -m benchmarks.bench [--only id,id] [--dims S=128] [--seconds 4] [--cap 60] [--no-exact]

Per model one process times Foldline (O3) and ONNX Runtime (all optimisations) in turns: with one
thread by the CPU time of the calling thread, with two by the wall clock. The reference evaluator
runs once, with one thread, in a process of its own that is stopped after `--cap` seconds. A ratio
above 1 says that Foldline takes so many times as long.

So does exact mode, in a process of its own too: one thread, CPU time, the best of three runs, over
the same of fast mode. Where it has no kernel for an operator, the table says `refused`.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from benchmarks.common import (
    geometric_mean,
    in_child,
    installed,
    interleaved_medians,
    ort_session,
    table,
    versions,
    write_results,
)
from benchmarks.exact import best_seconds, exact_session, refused_operators
from benchmarks.synthetic import bench_inputs, bench_models, bench_path
from foldline.cli.output import tracked
from foldline.kernels.blas import one_blas_thread
from foldline.support.errors import UnsupportedOperator
from tests.zoo.limits import worst_error

CLOCKS = {1: time.thread_time, 2: time.perf_counter}
TIMEOUT = 600.0


def main() -> None:
    """Time what was asked for; print a table and keep the numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="identifiers, with commas between")
    parser.add_argument("--dims", default="", help="sizes of inputs, as S=128,N=2")
    parser.add_argument("--seconds", type=float, default=4.0, help="per model and thread count")
    parser.add_argument("--cap", type=float, default=60.0, help="for the reference evaluator")
    parser.add_argument("--no-exact", action="store_true", help="leave exact mode out: it is slow")
    parser.add_argument("--exact", metavar="ID", help="what a child does: exact mode beside fast")
    parser.add_argument("--time", metavar="ID", help="what a child does: one model, as JSON")
    parser.add_argument("--reference", metavar="ID", help="what a child does: the evaluator")
    arguments = parser.parse_args()
    dims = _dims(arguments.dims)
    if arguments.time:
        print(json.dumps(time_model(arguments.time, arguments.seconds, dims)))
    elif arguments.exact:
        print(json.dumps(time_exact(arguments.exact, dims)))
    elif arguments.reference:
        print(json.dumps(time_reference(arguments.reference, dims)))
    else:
        _time_all(arguments)


def _dims(said: str) -> dict[str, int]:
    pairs = (each.split("=") for each in said.split(",") if each)
    return {name: int(size) for name, size in pairs}


def time_model(model_id: str, seconds: float, dims: dict[str, int]) -> dict[str, Any]:
    """Seconds a run by contender and thread count, and how far the outputs are apart."""
    import foldline

    feed = bench_inputs(model_id, **dims)
    start = time.perf_counter()
    compiled = foldline.compile(bench_path(model_id), options={"oo.level": "O3"})
    result: dict[str, Any] = {"compile_seconds": time.perf_counter() - start, "threads": {}}
    peers = installed("onnxruntime")
    for threads, clock in CLOCKS.items():
        session = compiled.session(threads=threads)
        contenders = {"foldline": lambda session=session: session.run(None, feed)}
        if peers:
            peer = ort_session(bench_path(model_id), "all", threads)
            contenders["onnxruntime"] = lambda peer=peer: peer.run(None, feed)
            result["error"] = worst_error(session.run(None, feed), peer.run(None, feed))
        result["threads"][threads] = interleaved_medians(contenders, clock, seconds=seconds)
    return result


def time_exact(model_id: str, dims: dict[str, int]) -> dict[str, Any]:
    """Seconds of a run in exact and in fast mode by one thread, or the operators refused."""
    import foldline

    feed, path = bench_inputs(model_id, **dims), bench_path(model_id)
    try:
        exact = exact_session(path, 1)
    except UnsupportedOperator as error:
        return {"refused": refused_operators(error)}
    fast = foldline.compile(path).session(threads=1)
    sessions = {"fast": fast, "exact": exact}
    return {name: best_seconds(each, feed, CLOCKS[1]) for name, each in sessions.items()}


def time_reference(model_id: str, dims: dict[str, int]) -> dict[str, Any]:
    """Seconds of one run of the ONNX reference evaluator, on one thread too."""
    from onnx.reference import ReferenceEvaluator

    evaluator, feed = ReferenceEvaluator(str(bench_path(model_id))), bench_inputs(model_id, **dims)
    with one_blas_thread():
        start = CLOCKS[1]()
        evaluator.run(None, feed)
        return {"seconds": CLOCKS[1]() - start}


def _time_all(arguments: argparse.Namespace) -> None:
    installed("onnxruntime")
    results: dict[str, Any] = {}
    for model_id in tracked(bench_models(arguments.only), "timing"):
        row = _child(arguments, "--time", model_id, TIMEOUT)
        row["reference"] = _child(arguments, "--reference", model_id, arguments.cap)
        if not arguments.no_exact:
            row["exact"] = _child(arguments, "--exact", model_id, TIMEOUT)
        results[model_id] = row
        print(f"{model_id}: {row.get('failure', 'timed')}", flush=True)
    headers = ["model", "1 thread ms", "ORT ms", "ratio", "2 threads ms", "ORT ms", "ratio"]
    print()
    headers += ["exact / fast", "reference ms"]
    print(table(headers, [_cells(*item) for item in results.items()]))
    for threads in CLOCKS:
        ratios = [ratio for row in results.values() if (ratio := _ratio(row, threads))]
        print(
            f"{threads} thread(s), Foldline / ONNX Runtime: geometric mean "
            f"{geometric_mean(ratios):.2f} over {len(ratios)} models"
        )
    gains = [gain for row in results.values() if (gain := _reference_ratio(row))]
    if gains:
        print(
            f"1 thread, reference evaluator / Foldline: geometric mean "
            f"{geometric_mean(gains):.1f} over {len(gains)} models"
        )
    costs = [cost for row in results.values() if (cost := _exact_cost(row))]
    if costs:
        print(f"exact / fast, 1 thread: {geometric_mean(costs):.2f} over {len(costs)} models")
    write_results("bench", {"versions": versions("onnx", "numpy"), "models": results})


def _child(arguments: argparse.Namespace, task: str, model_id: str, cap: float) -> dict[str, Any]:
    said = ("--dims", arguments.dims, "--seconds", str(arguments.seconds))
    return in_child("benchmarks.bench", task, model_id, *said, seconds=cap)


def _ratio(row: dict[str, Any], threads: int) -> float | None:
    medians = row.get("threads", {}).get(str(threads), {})
    return medians["foldline"] / medians["onnxruntime"] if len(medians) == 2 else None


def _reference_ratio(row: dict[str, Any]) -> float | None:
    seconds, ours = row["reference"].get("seconds"), row.get("threads", {}).get("1", {})
    return seconds / ours["foldline"] if seconds and ours else None


def _cells(model_id: str, row: dict[str, Any]) -> list[str]:
    cells = [model_id]
    for threads in CLOCKS:
        medians = row.get("threads", {}).get(str(threads), {})
        cells += [_milliseconds(medians.get(name)) for name in ("foldline", "onnxruntime")]
        ratio = _ratio(row, threads)
        cells.append("-" if ratio is None else f"{ratio:.2f}")
    cost = _exact_cost(row)
    unknown = "refused" if "refused" in row.get("exact", {}) else "-"
    cells.append(unknown if cost is None else f"{cost:.2f}")
    return [*cells, _milliseconds(row["reference"].get("seconds"))]


def _exact_cost(row: dict[str, Any]) -> float | None:
    """How many times as long exact mode takes."""
    seconds = row.get("exact", {})
    return seconds["exact"] / seconds["fast"] if "exact" in seconds else None


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e3:.3g}"


if __name__ == "__main__":
    main()
