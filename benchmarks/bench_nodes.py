"""Count what is left to run after Foldline and after its peers, with their compile seconds.

    python -m benchmarks.bench_nodes [--only id,id] [--level O2] [--tools foldline,onnxsim]
        [--disable element-wise-fusion]
                                     [--models DIR] [--verify]

Nodes of subgraphs count, and a function call counts as its body; `Constant`, and `ConstantOfShape`
of a constant, count neither before nor after, so that a tool that writes a splat out gains nothing
by it. The mean is that of (after + 1/2) / (before + 1/2); a second one counts each fused operator
as one, though the file has the standard operators it stands for. Seconds leave out the import of
the tool and reading the file.

What Foldline exports must pass the checker with full inference and be at most 2 % larger than the
original, declared types of inner values left out of both. With `--verify`, ONNX Runtime with
optimisation and prepacking off must compute the same of both, at each setting of the dims. No
model may have more nodes than the better of the peers that keep the bits and the size leaves it,
but for the exceptions named here. Ends with 1 if any is missed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import onnx
from xdsl.ir import Operation

from benchmarks.common import (
    geometric_mean,
    in_child,
    installed,
    ort_session,
    run_or_none,
    table,
    versions,
    write_results,
)
from benchmarks.error_limits import limit_of
from benchmarks.model_sets import ModelSet, model_set
from benchmarks.peers import EQUAL_BITS, PEERS
from tests.zoo.limits import worst_error

TIMEOUT = 600.0
FOLDLINE = "foldline"
LARGEST = 1.02
"""The exported file beside the original."""

LARGER = {"onnxscript_fn": "a file of 32 kB, most of it names; its functions are called twice"}
"""Models whose file grows by more, and why."""

MORE_NODES: dict[str, str] = {}
"""Models that a peer held to the bits leaves with fewer nodes, and why Foldline does not."""


def _foldline(model: onnx.ModelProto, options: Mapping[str, Any]) -> onnx.ModelProto:
    import foldline

    return foldline.compile(model, options=options).to_proto()


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    disabled = [name for name in arguments.disable.split(",") if name]
    return {"oo.level": arguments.level, "passes.disable": disabled}


def count_nodes(model: onnx.ModelProto) -> int:
    """The nodes that a runtime would run."""
    functions = {(f.domain, f.name, f.overload): f for f in model.functions}
    known: dict[tuple[str, str, str], int] = {}

    def count(nodes: Iterable[onnx.NodeProto], constants: frozenset[str]) -> int:
        nodes = list(nodes)
        constants |= {node.output[0] for node in nodes if node.op_type == "Constant"}
        return sum(count_node(node, constants) for node in nodes)

    def count_node(node: onnx.NodeProto, constants: frozenset[str]) -> int:
        key = (node.domain, node.op_type, node.overload)
        if key in functions:
            if key not in known:
                known[key] = count(functions[key].node, frozenset())
            return known[key]
        splat = node.op_type == "ConstantOfShape" and node.input[0] in constants
        bodies = (body for a in node.attribute for body in (a.g, *a.graphs))
        inside = sum(count(body.node, constants.union(_named(body))) for body in bodies)
        return inside + (node.op_type != "Constant" and not splat)

    return count(model.graph.node, frozenset(_named(model.graph)))


def data_size(model: onnx.ModelProto) -> int:
    """Bytes of a model without the declared types of inner values, which say nothing new."""
    graphs = (model.graph, *model.functions)
    return model.ByteSize() - sum(info.ByteSize() for g in graphs for info in g.value_info)


def _named(graph: onnx.GraphProto) -> Iterator[str]:
    return (tensor.name for tensor in graph.initializer)


def main() -> int:
    """Count what was asked for; print tables and keep the numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="identifiers, with commas between")
    parser.add_argument("--level", default="O2", help="oo.level of Foldline")
    parser.add_argument("--disable", default="", help="passes of Foldline, with commas between")
    parser.add_argument("--tools", default=",".join([FOLDLINE, *PEERS]))
    parser.add_argument("--models", help="a folder with models and inputs.py; else the zoo")
    parser.add_argument("--verify", action="store_true", help="run what Foldline exports")
    parser.add_argument("--run", nargs=2, metavar=("TOOL", "ID"), help="what a child does")
    arguments = parser.parse_args()
    if arguments.run:
        tool, model_id = arguments.run
        print(json.dumps(run_tool(tool, model_set(arguments.models, model_id), arguments)))
        return 0
    return _run_all(arguments)


def run_tool(tool: str, models: ModelSet, arguments: argparse.Namespace) -> dict[str, Any]:
    """Nodes before and after one tool on one model, its seconds, and checks of Foldline's file."""
    (model_id,) = models.ids
    is_ours = tool == FOLDLINE
    # `import foldline` loads nothing by itself: its compiler is what a peer's import brings.
    ours = ("foldline.compiler", partial(_foldline, options=_options(arguments)))
    package, optimise = PEERS.get(tool, ours)
    importlib.import_module(package)
    model = onnx.load(models.path(model_id))
    row: dict[str, Any] = {"before": count_nodes(model)}
    start = time.perf_counter()
    optimised = optimise(model)
    row["seconds"] = time.perf_counter() - start
    row["after"] = count_nodes(optimised)
    row["size"] = data_size(optimised) / data_size(model)
    if is_ours:
        row["fused"] = row["after"] + _saved_by_fusion(model, _options(arguments))
        data = optimised.SerializeToString()
        onnx.checker.check_model(optimised, full_check=True)
        if arguments.verify:
            row.update(_verify(models, model_id, data))
    return row


def _saved_by_fusion(model: onnx.ModelProto, options: Mapping[str, Any]) -> int:
    """Fused operators minus the standard ones that the file has in their place: at most zero."""
    import foldline
    from foldline.dialects.fused.element_wise import ElementWiseOp
    from foldline.dialects.fused.expansions import is_fused, parts_of
    from foldline.stages.rewriting import count_nodes as count_operations

    def standing_for(op: Operation) -> int:
        if isinstance(op, ElementWiseOp):
            return sum(map(standing_for, op.regions[0].block.ops))
        return sum(map(count_operations, parts_of(op)[0] if is_fused(op) else [op]))

    module = foldline.compile(model, options=options).module
    inside = (op for op in module.walk() if isinstance(op.parent_op(), ElementWiseOp))
    return sum(1 - standing_for(op) for op in set(module.walk()).difference(inside) if is_fused(op))


def _verify(models: ModelSet, model_id: str, data: bytes) -> dict[str, Any]:
    """The error at each setting that the original takes, and whether all bits are the same."""
    original = ort_session(models.path(model_id), "off", prepacking=False)
    optimised = ort_session(data, "off", prepacking=False)
    runs = [(feed, run_or_none(original, feed)) for feed in models.feeds(model_id)]
    errors: list[float] = []
    same = True
    for feed, expected in runs:
        if expected is None:
            continue
        actual = optimised.run(None, feed)
        errors.append(worst_error(actual, expected))
        same = same and all(map(_same_bits, actual, expected))
    allowed = limit_of(models.path(model_id), models.kind(model_id), runs)
    return {"errors": errors, "same_bits": same, "limit": allowed}


def _same_bits(a: Any, b: Any) -> bool:
    if not isinstance(a, np.ndarray) or a.dtype == np.object_:
        return worst_error([a], [b]) == 0
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def _run_all(arguments: argparse.Namespace) -> int:
    packages = {FOLDLINE: FOLDLINE, **{tool: package for tool, (package, _) in PEERS.items()}}
    wanted = [tool for tool in arguments.tools.split(",") if tool]
    found = installed(*sorted({packages[tool] for tool in wanted}))
    tools = [tool for tool in wanted if packages[tool] in found]
    passed_on = ["--level", arguments.level, "--disable", arguments.disable]
    passed_on += ["--verify"] if arguments.verify else []
    passed_on += ["--models", arguments.models] if arguments.models else []
    results: dict[str, Any] = {}
    for model_id in model_set(arguments.models, arguments.only).ids:
        row = results[model_id] = {
            tool: in_child(
                "benchmarks.bench_nodes", "--run", tool, model_id, *passed_on, seconds=TIMEOUT
            )
            for tool in tools
        }
        failed = [f"{tool}: {row[tool]['failure']}" for tool in tools if "failure" in row[tool]]
        print(f"{model_id}: {'; '.join(failed) or 'counted'}", flush=True)
    _print_tables(results, tools)
    write_results("bench_nodes", {"versions": versions(*found), "models": results})
    return _print_checks(results) if FOLDLINE in tools else 0


def _print_tables(results: dict[str, Any], tools: list[str]) -> None:
    means = {tool: list(_ratios(results, tool)) for tool in tools}
    rows = [[name, _before(row), *_cells(row, tools, "after")] for name, row in results.items()]
    rows.append(["geometric mean", "", *(f"{geometric_mean(means[tool]):.3f}" for tool in tools)])
    if FOLDLINE in tools:
        fused = geometric_mean(list(_ratios(results, FOLDLINE, "fused")))
        cells = [f"{fused:.3f}" if tool == FOLDLINE else "" for tool in tools]
        rows.append(["fused operators as one", "", *cells])
    rows.append(["models", str(len(results)), *(str(len(means[tool])) for tool in tools)])
    print(f"\nrun-time nodes\n{table(['model', 'original', *tools], rows)}")
    rows = [[name, *_cells(row, tools, "seconds")] for name, row in results.items()]
    print(f"\ncompile seconds\n{table(['model', *tools], rows)}")


def _print_checks(results: dict[str, Any]) -> int:
    """Print what Foldline's files were checked for; 1 if one fails."""
    rows: list[list[str]] = []
    good = 0
    for name, tools in results.items():
        row = tools[FOLDLINE]
        errors, is_ok = row.get("errors", []), _is_ok(name, row)
        good += is_ok
        rows.append(
            [
                name,
                f"{row['size']:.3f}" if "size" in row else "-",
                " ".join(f"{error:.0e}" if error else "0" for error in errors) or "-",
                {True: "yes", False: "no", None: "-"}[row.get("same_bits")],
                "yes" if is_ok else row.get("failure", "NO"),
            ]
        )
    print(f"\nfiles\n{table(['model', 'size', 'errors', 'same bits', 'ok'], rows)}")
    print(f"{good} of {len(results)} are good")
    return int(good < len(results)) | print_beaten(results)


def print_beaten(results: dict[str, Any]) -> int:
    """Print where a peer that keeps the bits does better; 1 if that is no known exception."""
    beaten = [
        [name, str(tools[FOLDLINE]["after"]), str(best), MORE_NODES.get(name, "NOT EXPLAINED")]
        for name, tools in results.items()
        if "after" in tools[FOLDLINE] and (best := _best_peer(tools)) < tools[FOLDLINE]["after"]
    ]
    print(f"\nmore nodes than the better of {', '.join(EQUAL_BITS)}")
    print(table(["model", FOLDLINE, "peer", "reason"], beaten))
    return int(any(name not in MORE_NODES for name, *_ in beaten))


def _best_peer(tools: dict[str, Any]) -> float:
    """The fewest nodes that a peer leaves which keeps the bits and the size."""
    rows = [tools[peer] for peer in EQUAL_BITS if peer in tools]
    return min((r["after"] for r in rows if r.get("size", LARGEST + 1) <= LARGEST), default=np.inf)


def _is_ok(name: str, row: dict[str, Any]) -> bool:
    if "failure" in row or (row["size"] > LARGEST and name not in LARGER):
        return False
    return max(row.get("errors", []), default=0) <= row.get("limit", 0)


def _ratios(results: dict[str, Any], tool: str, key: str = "after") -> Iterator[float]:
    for row in results.values():
        if "failure" not in row[tool]:
            yield (row[tool][key] + 0.5) / (row[tool]["before"] + 0.5)


def _before(row: dict[str, Any]) -> str:
    return next((str(cell["before"]) for cell in row.values() if "before" in cell), "-")


def _cells(row: dict[str, Any], tools: list[str], key: str) -> list[str]:
    values = [row[tool].get(key) for tool in tools]
    return [f"{value:.3g}" if isinstance(value, float) else str(value or "-") for value in values]


if __name__ == "__main__":
    sys.exit(main())
