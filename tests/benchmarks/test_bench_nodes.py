"""What counts as a node that runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.bench_nodes import count_nodes

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
