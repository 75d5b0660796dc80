"""What counts as a node that runs."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from benchmarks.bench_nodes import count_nodes, data_size, print_beaten, run_tool
from benchmarks.model_sets import model_set

SHAPE = numpy_helper.from_array(np.array([2], np.int64), "shape")


def _model(*nodes: onnx.NodeProto, **fields: Any) -> onnx.ModelProto:
    return helper.make_model(helper.make_graph(nodes, "g", [], [], **fields))


def test_constants_do_not_count() -> None:
    constant = helper.make_node("Constant", [], ["c"], value=SHAPE)
    assert count_nodes(_model(constant, helper.make_node("Relu", ["c"], ["y"]))) == 1


def test_splats_of_constants_do_not_count() -> None:
    splat = helper.make_node("ConstantOfShape", ["shape"], ["y"])
    assert count_nodes(_model(splat, initializer=[SHAPE])) == 0
    assert count_nodes(_model(splat)) == 1


def test_bodies_count_and_see_outer_constants() -> None:
    value = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    splat = helper.make_node("ConstantOfShape", ["shape"], ["s"])
    branch = helper.make_graph([splat, helper.make_node("Relu", ["s"], ["y"])], "b", [], [value])
    node = helper.make_node("If", ["flag"], ["z"], then_branch=branch, else_branch=branch)
    assert count_nodes(_model(node, initializer=[SHAPE])) == 3


def test_a_call_counts_as_the_body_of_the_function() -> None:
    imports = [helper.make_opsetid("", 20), helper.make_opsetid("local", 1)]
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Neg", ["a"], ["y"])]
    inner = helper.make_function("local", "f", ["x"], ["y"], nodes, imports)
    call = helper.make_node("f", ["x"], ["y"], domain="local")
    outer = helper.make_function("local", "h", ["x"], ["y"], [call], imports)
    calls = [helper.make_node(name, ["x"], ["y"], domain="local") for name in ("f", "h", "f")]
    model = _model(*calls)
    model.functions.extend([inner, outer])
    assert count_nodes(model) == 6


def test_declared_types_weigh_nothing() -> None:
    model = _model(helper.make_node("Relu", ["x"], ["y"]))
    size = data_size(model)
    model.graph.value_info.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3]))
    # What is left is the tag and the length of the entry.
    assert size <= data_size(model) <= size + 2


INPUTS = """
import numpy as np
SETTINGS = {"twice": ({"N": 1}, {"N": 2})}
def make_inputs(name, setting=0, **dims):
    return {"x": np.full({**SETTINGS[name][setting], **dims}["N"], np.nan, np.float32)}
"""


def test_a_model_of_a_folder_is_compiled_and_verified(tmp_path: Path) -> None:
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["N"]) for n in "xy")
    nodes = [helper.make_node("Identity", ["x"], ["a"]), helper.make_node("Neg", ["a"], ["y"])]
    graph = helper.make_graph(nodes, "g", [x], [y])
    opsets = [helper.make_opsetid("", 20)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), tmp_path / "twice.onnx")
    (tmp_path / "inputs.py").write_text(INPUTS)
    models = model_set(str(tmp_path), "")
    assert models.ids == ("twice",)
    row = run_tool("foldline", models, Namespace(level="O2", disable="", verify=True))
    assert (row["before"], row["after"], row["errors"], row["same_bits"]) == (
        2,
        1,
        [0.0, 0.0, 0.0],
        True,
    )
    assert row["size"] < 1


@pytest.mark.parametrize(
    ("after", "size", "status"),
    [(5, 1.0, 0), (4, 1.0, 1), (4, 3.9, 0)],
    ids=["as many", "fewer", "fewer but larger"],
)
def test_a_peer_with_fewer_nodes_and_no_larger_file_is_an_exception_to_name(
    after: int, size: float, status: int
) -> None:
    ours = {"after": 5, "size": 1.0}
    assert print_beaten({"m": {"foldline": ours, "onnxsim =": {"after": after, "size": size}}}) == (
        status
    )
