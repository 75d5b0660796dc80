"""What the benchmarks share: interleaved timing, peers, child processes, tables, results."""

from __future__ import annotations

import importlib.util
import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.zoo import ROOT, kinds, model_path

if TYPE_CHECKING:
    import onnxruntime

RESULTS = ROOT / "build" / "benchmarks"
BLOCK_SECONDS = 0.005
"""A run shorter than this is repeated within a block, since clocks are coarse."""
REST_SECONDS = 0.1
"""Between turns: ONNX Runtime's threads go on spinning for some 50 ms after a run."""
ORT_LEVELS = {
    "off": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}


def interleaved_medians(
    contenders: Mapping[str, Callable[[], Any]],
    clock: Callable[[], float],
    *,
    seconds: float = 4.0,
    rounds: int = 5,
) -> dict[str, float]:
    """Median seconds of a run of each contender.

    They take turns, so that what disturbs the machine disturbs all; at least `rounds` turns each,
    and more until `seconds` are over. A turn is a run that is not timed, timed ones, and a rest.
    """
    repeats = {name: _repeats(run) for name, run in contenders.items()}
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    end = time.perf_counter() + seconds
    while len(next(iter(samples.values()))) < rounds or time.perf_counter() < end:
        for name, run in contenders.items():
            run()
            start = clock()
            for _ in range(repeats[name]):
                run()
            samples[name].append((clock() - start) / repeats[name])
            time.sleep(REST_SECONDS)
    return {name: statistics.median(taken) for name, taken in samples.items()}


def _repeats(run: Callable[[], Any]) -> int:
    run()
    start = time.perf_counter()
    run()
    return max(1, math.ceil(BLOCK_SECONDS / max(time.perf_counter() - start, 1e-6)))


def ort_session(
    model: Path | bytes,
    level: str,
    threads: int = 1,
    prepacking: bool = True,
    written: Path | None = None,
) -> onnxruntime.InferenceSession:
    """A CPU session of ONNX Runtime at one of `ORT_LEVELS`.

    Prepacked weights are multiplied in another way, so a folded weight may move last bits. The
    optimised model goes to the file `written`.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(
        onnxruntime.GraphOptimizationLevel, ORT_LEVELS[level]
    )
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.disable_prepacking", "0" if prepacking else "1")
    if written is not None:
        options.optimized_model_filepath = str(written)
    source = model if isinstance(model, bytes) else str(model)
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def run_or_none(session: Any, feed: dict[str, Any]) -> list[Any] | None:
    """The outputs, or None where the model does not take these sizes."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    try:
        return session.run(None, feed)
    except (state.InvalidArgument, state.Fail, state.RuntimeException):
        return None


def installed(*peers: str) -> list[str]:
    """The peers that are installed; each of the others is named in a line."""
    found = [peer for peer in peers if importlib.util.find_spec(peer)]
    for peer in sorted(set(peers).difference(found)):
        print(f"{peer} is not installed: left out (pip install '.[bench]')", flush=True)
    return found


def versions(*packages: str) -> dict[str, str]:
    """Package to version, for the results; Foldline need not be installed."""
    import foldline

    peers = {package: version(package) for package in packages if package != "foldline"}
    return {"foldline": foldline.__version__, **peers}


def selected_models(only: str) -> list[str]:
    """The models of the zoo that were fetched, or those named with commas between."""
    wanted = [name for name in only.split(",") if name] or list(kinds())
    missing = [name for name in wanted if not model_path(name).exists()]
    if missing:
        print(f"not fetched, left out (make zoo): {', '.join(missing)}", flush=True)
    return [name for name in wanted if name not in missing]


def in_child(module: str, *arguments: str, seconds: float) -> dict[str, Any]:
    """What a benchmark's child process prints as JSON, or `{"failure": …}`.

    A process of its own gives its memory back and may crash or be stopped without harm.
    """
    command = [sys.executable, "-W", "ignore", "-m", module, *arguments]
    try:
        child = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return {"failure": f"stopped after {seconds:.0f} s"}
    if child.returncode == 0:
        return json.loads(child.stdout.splitlines()[-1])
    lines = child.stderr.strip().splitlines()
    return {"failure": lines[-1][:200] if lines else f"ended with code {child.returncode}"}


def geometric_mean(values: Iterable[float]) -> float:
    """The geometric mean, NaN of nothing."""
    logarithms = [math.log(value) for value in values]
    return math.exp(statistics.fmean(logarithms)) if logarithms else math.nan


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Text columns: the first to the left, the others to the right."""
    lines = [list(headers), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headers))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def write_results(name: str, results: Any) -> None:
    """Keep results as JSON under build/benchmarks."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(results, indent=1) + "\n")
    print(f"\n{path.relative_to(ROOT)} written")
