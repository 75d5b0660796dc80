"""Large splat constants are written as ConstantOfShape, small ones and old opsets as they are."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.structure import main_graph
from foldline.dialects.onnx.tensor import TensorAttr, splat
from foldline.exporter import export_model
from foldline.importer import import_model


def with_constant(array: np.ndarray, opset: int) -> ModuleOp:
    element = helper.np_dtype_to_tensor_dtype(array.dtype)
    small = numpy_helper.from_array(np.zeros(array.shape and (1,), array.dtype))
    nodes = [
        helper.make_node("Constant", [], ["k"], value=small, name="k"),
        helper.make_node("Abs", ["k"], ["y"]),
    ]
    out = helper.make_tensor_value_info("y", element, list(array.shape))
    graph = helper.make_graph(nodes, "g", [], [out])
    imports = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=4)
    module = import_model(model)
    constant, _ = [op for op in main_graph(module).body.block.ops if isinstance(op, NodeOp)]
    constant.properties["value"] = TensorAttr.of(array)
    return module


def kinds(module: ModuleOp) -> list[str]:
    model = export_model(module)
    onnx.checker.check_model(model, full_check=True)
    return [node.op_type for node in model.graph.node]


def test_a_large_splat_costs_no_bytes() -> None:
    module = with_constant(splat(1.5, (10_000, 10_000), np.float32), 9)
    model = export_model(module)
    assert [node.op_type for node in model.graph.node] == ["Constant", "ConstantOfShape", "Abs"]
    assert model.ByteSize() < 1000
    fill = model.graph.node[1]
    assert fill.name == "k"
    assert numpy_helper.to_array(fill.attribute[0].t).tolist() == [1.5]
    assert numpy_helper.to_array(model.graph.node[0].attribute[0].t).tolist() == [10_000, 10_000]
    onnx.checker.check_model(model, full_check=True)


@pytest.mark.parametrize(
    ("array", "opset"),
    [
        (splat(1.5, (4, 4), np.float32), 9),
        (splat(1.5, (100, 100), np.float32), 8),
        (np.arange(10_000, dtype=np.float32), 9),
        (splat(1, (100, 100), np.dtype("bfloat16")), 19),
    ],
    ids=["small", "before ConstantOfShape", "no splat", "type not allowed"],
)
def test_others_stay_constants(array: np.ndarray, opset: int) -> None:
    assert kinds(with_constant(array, opset)) == ["Constant", "Abs"]


def test_exporting_again_gives_the_same_names() -> None:
    module = with_constant(splat(1.5, (100, 100), np.float32), 9)
    once = export_model(module)
    other = export_model(import_model(once))
    assert other.SerializeToString() == once.SerializeToString()
