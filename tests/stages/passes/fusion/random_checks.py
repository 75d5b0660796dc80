"""What has to hold of a random model and of what compiling makes of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import ModelProto

import foldline
from foldline.support.passes import PASSES
from tests.stages.passes.algebraic.graphs import interface
from tests.stages.passes.drawing import Array
from tests.stages.passes.fusion.random_graphs import Family, Graph, drawn, plain_values
from tests.zoo.limits import worst_error

RUNTIME = 5
"""ONNX Runtime computes each fifth graph: to make its sessions takes most of the time."""
AGAIN = 4
"""What was written is compiled again for each fourth, as compiling takes the rest of it."""


def check(family: Family, number: int) -> frozenset[str]:
    """Valid, alike outside, equal in value, then settled; the passes that changed something."""
    graph = drawn(family, number)
    source = graph.model()
    onnx.checker.check_model(source, full_check=True)
    wanted = plain_values(source, graph.feed)
    done = foldline.compile(source, options={"oo.level": "O3", **graph.options})
    changed = frozenset(row.name for row in done.report.rows if row.changes)
    written = done.to_proto()
    onnx.checker.check_model(written, full_check=True)
    assert interface(written) == interface(source)
    assert opsets(written) == opsets(source)
    _compare(graph, family, wanted, done.session().run(None, graph.feed), changed)
    if number % RUNTIME == 0 and graph.dtype == np.float32:
        found = [runtime(model, graph.feed) for model in (source, written)]
        # Its MaxPool takes the least number for minus infinity, so it is its own oracle there.
        if all(np.isfinite(value).all() for value in wanted):
            _compare(graph, family, wanted, found[0], None)
            _compare(graph, family, wanted, found[1], None)
        else:
            _compare(graph, family, found[0], found[1], None)
    else:
        _compare(graph, family, wanted, plain_values(written, graph.feed), None)
    if number % AGAIN == 0:
        again = foldline.optimize(written, options={"oo.level": "O3", **graph.options})
        # What is known of values in between may grow: an output's sizes go to what it is made of.
        del again.graph.value_info[:], written.graph.value_info[:]
        assert again.SerializeToString() == written.SerializeToString()
    return changed


def opsets(model: ModelProto) -> dict[str, int]:
    """Operator sets by domain."""
    return {entry.domain: entry.version for entry in model.opset_import}


def runtime(model: ModelProto, feed: Mapping[str, Array]) -> list[Any]:
    """What ONNX Runtime computes with optimisation off."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, dict(feed))


def _compare(
    graph: Graph,
    family: Family,
    wanted: Sequence[Array],
    found: Sequence[Array],
    changed: frozenset[str] | None,
) -> None:
    """Within the limit; bit for bit where only passes that keep bits changed something."""
    for a, b in zip(wanted, found, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
    if changed is not None and not graph.options:
        if all(name in PASSES and PASSES[name].preserves_bits for name in changed):
            for a, b in zip(wanted, found, strict=True):
                assert _bits(a) == _bits(b), f"bits moved by {sorted(changed)}"
    if graph.step is None:
        least = _largest(graph.feed.values()) if family.by_inputs else 0.0
        for a, b in zip(wanted, found, strict=True):
            floor = max(_largest([a]), 1e-3)
            error = worst_error([b], [a]) * floor / max(floor, least)
            assert error <= family.limits[graph.dtype], error
        return
    for a, b in zip(wanted, found, strict=True):
        wide = a.astype(np.float64), b.astype(np.float64)
        step = graph.step if a.dtype.kind == "f" else 1
        error = np.abs(wide[0] - wide[1]).max(initial=0)
        assert error <= 1.001 * step, (error, step)


def _largest(arrays: Iterable[Array]) -> float:
    """The largest finite size of an element."""
    wide = [array.astype(np.float64) for array in arrays if array.dtype.kind == "f"]
    return max((float(np.abs(a[np.isfinite(a)]).max(initial=0)) for a in wide), default=0.0)


def _bits(array: Array) -> bytes:
    """The bytes of an array; all NaN are one."""
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), np.asarray(np.nan, array.dtype), array)
    return array.tobytes()
