"""Count what is left to run after Foldline and after its peers, with their compile seconds.

    python -m benchmarks.bench_nodes [--only id,id]

Nodes of subgraphs count; `Constant`, and `ConstantOfShape` of a constant, count neither before nor
after, so that a tool that writes a splat out gains nothing by it. Seconds leave out the import of
the tool and reading the file.
"""

from __future__ import annotations

import argparse
import importlib
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import onnx

from benchmarks.common import (
    geometric_mean,
    in_child,
    installed,
    selected_models,
    table,
    versions,
    write_results,
)
from benchmarks.zoo import FOLDER, model_path

TIMEOUT = 300.0


def _foldline(level: str) -> Callable[[onnx.ModelProto], onnx.ModelProto]:
    def run(model: onnx.ModelProto) -> onnx.ModelProto:
        import foldline

        return foldline.compile(model, options={"oo.level": level}).to_proto()

    return run


def _onnxsim(model: onnx.ModelProto) -> onnx.ModelProto:
    import onnxsim

    simplified, _ = onnxsim.simplify(model)
    return simplified


def _onnxslim(model: onnx.ModelProto) -> onnx.ModelProto:
    import onnxslim

    return onnxslim.slim(model)


def _onnxscript(model: onnx.ModelProto) -> onnx.ModelProto:
    import onnxscript.optimizer

    return onnxscript.optimizer.optimize(model)


def _ort(level: str) -> Callable[[onnx.ModelProto], onnx.ModelProto]:
    def run(model: onnx.ModelProto) -> onnx.ModelProto:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
        options.log_severity_level = 3
        out = FOLDER / f".offline-{level}.onnx"
        options.optimized_model_filepath = str(out)
        onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        optimised = onnx.load(out)
        out.unlink()
        return optimised

    return run


TOOLS: dict[str, tuple[str, Callable[[onnx.ModelProto], onnx.ModelProto]]] = {
    "foldline O1": ("foldline", _foldline("O1")),
    "foldline O2": ("foldline", _foldline("O2")),
    "foldline O3": ("foldline", _foldline("O3")),
    "onnxsim": ("onnxsim", _onnxsim),
    "onnxslim": ("onnxslim", _onnxslim),
    "onnxscript": ("onnxscript", _onnxscript),
    "ORT basic": ("onnxruntime", _ort("ORT_ENABLE_BASIC")),
    "ORT extended": ("onnxruntime", _ort("ORT_ENABLE_EXTENDED")),
}
"""Column to the package that must be installed and what it does."""


def count_nodes(model: onnx.ModelProto) -> int:
    """The nodes that a runtime would run."""
    return _count(model.graph, frozenset())


def _count(graph: onnx.GraphProto, outer: frozenset[str]) -> int:
    constants = outer.union(_constants(graph))
    total = 0
    for node in graph.node:
        splat = node.op_type == "ConstantOfShape" and node.input[0] in constants
        total += node.op_type != "Constant" and not splat
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                total += _count(body, constants)
    return total


def _constants(graph: onnx.GraphProto) -> Iterator[str]:
    for tensor in graph.initializer:
        yield tensor.name
    for node in graph.node:
        if node.op_type == "Constant":
            yield node.output[0]


def main() -> None:
    """Count what was asked for; print tables and keep the numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="identifiers, with commas between")
    parser.add_argument("--run", nargs=2, metavar=("TOOL", "ID"), help="what a child does")
    arguments = parser.parse_args()
    if arguments.run:
        print(json.dumps(run_tool(*arguments.run)))
    else:
        _run_all(arguments.only)


def run_tool(tool: str, model_id: str) -> dict[str, Any]:
    """Nodes before and after one tool, and its seconds."""
    package, optimise = TOOLS[tool]
    importlib.import_module(package)
    model = onnx.load(model_path(model_id))
    before = count_nodes(model)
    start = time.perf_counter()
    optimised = optimise(model)
    seconds = time.perf_counter() - start
    return {"before": before, "after": count_nodes(optimised), "seconds": seconds}


def _run_all(only: str) -> None:
    packages = installed(*sorted({package for package, _ in TOOLS.values()}))
    tools = [tool for tool, (package, _) in TOOLS.items() if package in packages]
    results: dict[str, Any] = {}
    for model_id in selected_models(only):
        results[model_id] = {
            tool: in_child("benchmarks.bench_nodes", "--run", tool, model_id, seconds=TIMEOUT)
            for tool in tools
        }
        failed = [f"{t}: {row['failure']}" for t, row in results[model_id].items() if len(row) < 3]
        print(f"{model_id}: {'; '.join(failed) or 'counted'}", flush=True)
    means = {tool: list(_ratios(results, tool)) for tool in tools}
    rows = [[name, _before(row), *_cells(row, tools, "after")] for name, row in results.items()]
    rows.append(["geometric mean", "", *(f"{geometric_mean(means[tool]):.3f}" for tool in tools)])
    rows.append(["models", str(len(results)), *(str(len(means[tool])) for tool in tools)])
    print(f"\nrun-time nodes\n{table(['model', 'original', *tools], rows)}")
    rows = [[name, *_cells(row, tools, "seconds")] for name, row in results.items()]
    print(f"\ncompile seconds\n{table(['model', *tools], rows)}")
    write_results("bench_nodes", {"versions": versions(*packages), "models": results})


def _ratios(results: dict[str, Any], tool: str) -> Iterator[float]:
    for row in results.values():
        if "failure" not in row[tool]:
            yield max(row[tool]["after"], 1) / max(row[tool]["before"], 1)


def _before(row: dict[str, Any]) -> str:
    return next((str(cell["before"]) for cell in row.values() if "before" in cell), "-")


def _cells(row: dict[str, Any], tools: list[str], key: str) -> list[str]:
    values = [row[tool].get(key) for tool in tools]
    return [f"{value:.3g}" if isinstance(value, float) else str(value or "-") for value in values]


if __name__ == "__main__":
    main()
