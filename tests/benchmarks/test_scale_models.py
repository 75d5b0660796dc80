"""The generated models are valid, run, and are of the size and kind that they promise."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from benchmarks.bench_nodes import count_nodes
from benchmarks.common import ort_session
from benchmarks.scale_models import BUILDERS, WIDTH


@pytest.mark.parametrize("shape", BUILDERS)
def test_models_are_valid_and_run(shape: str) -> None:
    model = BUILDERS[shape](1000)
    onnx.checker.check_model(model, full_check=True)
    assert count_nodes(model) == pytest.approx(1000, rel=0.02)
    size = [WIDTH, WIDTH] if shape == "mixed" else [3, WIDTH] if shape == "shape_chains" else [4]
    feed = {"x": np.ones(size, np.float32), "flag": np.array(True)}
    session = ort_session(model.SerializeToString(), "off")
    wanted = {value.name for value in session.get_inputs()}
    assert session.run(None, {name: feed[name] for name in wanted})


def test_wide_has_many_readers_and_a_large_concat() -> None:
    graph = BUILDERS["wide"](1000).graph
    assert sum(name == "x" for node in graph.node for name in node.input) == 500
    assert max(len(node.input) for node in graph.node if node.op_type == "Concat") == 100


def test_control_flow_has_500_nodes_an_if() -> None:
    graph = BUILDERS["control_flow"](1000).graph
    assert [node.op_type for node in graph.node] == ["If", "If"]
    assert [len(branch.g.node) for branch in graph.node[0].attribute] == [250, 250]


def test_mixed_has_30_operators_and_names_everywhere() -> None:
    graph = BUILDERS["mixed"](1000).graph
    assert len({node.op_type for node in graph.node}) == 30
    assert len({node.name for node in graph.node}) == len(graph.node) == 1000
    named = {value.name for value in (*graph.value_info, *graph.output)}
    assert named == {node.output[0] for node in graph.node}
