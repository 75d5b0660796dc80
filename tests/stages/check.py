"""How passes are tested: IR as text before and after, remarks, and values on ONNX Runtime.

In the text, `return(%y)` and `yield[%i, %c](%y)` stand for the `onnx.return` of the graph and of a
body with these arguments; values are named in the interface as in the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnx import parser
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.parser import Parser

from foldline.dialects import load_dialects
from foldline.dialects.onnx.attributes import InterfaceAttr
from foldline.dialects.onnx.equality import difference
from foldline.dialects.onnx.op import NodeOp, node_name
from foldline.dialects.onnx.structure import main_graph, terminator
from foldline.dialects.onnx.tensor import TensorAttr
from foldline.dialects.onnx.verifier import verify_model
from foldline.exporter import export_model
from foldline.importer import import_model
from foldline.stages.context import PassContext
from foldline.stages.observers import module_text
from foldline.stages.pass_base import Pass
from foldline.stages.rewriting import count_nodes

Array = npt.NDArray[Any]


def constant(value: npt.ArrayLike, dtype: npt.DTypeLike = np.int64) -> str:
    """The text of a Constant node."""
    return _constant(np.asarray(value, dtype))


def splat(value: npt.ArrayLike, shape: tuple[int, ...], dtype: npt.DTypeLike) -> str:
    """The text of a Constant node that holds one element."""
    return _constant(np.broadcast_to(np.asarray(value, dtype), shape))


def _constant(array: Array) -> str:
    tensor = TensorAttr.of(array)
    return f"onnx.Constant() {{value = {tensor}}} : {tensor.type}"


def parse(text: str, inputs: str = "%x: tensor<2x3xf32>", opset: int = 21) -> ModuleOp:
    """A module of one graph with these block arguments and operations."""
    names = re.findall(r"%(\w+):", inputs)
    body = re.sub(r"\breturn\((.*?)\)", lambda m: _end(names, m[1]), text)
    body = re.sub(r"\byield\[(.*?)\]\((.*?)\)", lambda m: _end(_names(m[1]), m[2]), body)
    whole = f"""
    builtin.module attributes {{onnx.ir_version = 10 : i64}} {{
      onnx.graph() {{opsets = #onnx.opsets<"" : {opset}, "local" : 1>}} ({{
      ^bb0({inputs}):
        {body}
      }})
    }}"""
    context = Context()
    load_dialects(context)
    module = Parser(context, whole).parse_module()
    _type_inputs(module)
    return module


def _type_inputs(module: ModuleOp) -> None:
    """Declare the inputs with the types of the block arguments."""
    block = main_graph(module).body.block
    end = terminator(block)
    pairs = zip(end.interface.data.inputs, block.args, strict=True)
    typed = tuple(info.with_type(argument.type) for info, argument in pairs)
    end.properties["interface"] = InterfaceAttr(replace(end.interface.data, inputs=typed))


def _names(values: str) -> list[str]:
    return re.findall(r"%(\w+)", values)


def _end(inputs: Sequence[str], values: str) -> str:
    listed = [", ".join(f'"{name}"' for name in names) for names in (inputs, _names(values))]
    interface = f"#onnx.interface<_, [{listed[0]}], [{listed[1]}], []>"
    return f"onnx.return({values}) {{interface = {interface}}}"


def from_onnx(text: str, ir_version: int = 10, opset: int = 21) -> ModuleOp:
    """A module from ONNX's own text: `g (float[N] x) => (float[N] y) { y = Relu(x) }`."""
    return import_model(onnx_model(text, ir_version, opset), [])


def onnx_model(text: str, ir_version: int = 10, opset: int = 21) -> onnx.ModelProto:
    """A message from ONNX's own text."""
    imports = f'["" : {opset}, "local" : 1]' if "local" in text else f'["" : {opset}]'
    return parser.parse_model(f"<ir_version: {ir_version}, opset_import: {imports}>\n{text}")


def run_pass(given: Pass, module: ModuleOp) -> PassContext:
    """Run a pass alone, check the module and the count of nodes."""
    context = PassContext(module)
    given.run(context)
    verify_model(module, names=False)
    assert context.rewriter.nodes == count_nodes(module)
    return context


def check_pass(given: Pass, before: ModuleOp, expected: ModuleOp) -> PassContext:
    """The pass turns `before` into `expected`, up to names and facts."""
    context = run_pass(given, before)
    found = difference(before, expected)
    assert found is None, f"{found}, got\n{module_text(before)}"
    return context


def check_unchanged(given: Pass, module: ModuleOp, reason: str | None = None) -> PassContext:
    """The pass changes nothing, and says `reason`, if one is given, in a `declined` remark."""
    context = check_pass(given, module, module.clone())
    declined = [r.message for r in context.remarks if r.kind == "declined"]
    if reason is not None:
        assert any(reason in message for message in declined), declined
    return context


def values(module: ModuleOp, feed: Mapping[str, Array]) -> list[Array]:
    """What ONNX Runtime, optimisation off, computes for a module."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.disable_prepacking", "1")
    options.log_severity_level = 4
    data = export_model(module).SerializeToString()
    return onnxruntime.InferenceSession(data, options).run(None, dict(feed))


def check_values(given: Pass, module: ModuleOp, feed: Mapping[str, Array]) -> None:
    """The module computes the same bits after the pass."""
    before = values(module.clone(), feed)
    run_pass(given, module)
    for old, new in zip(before, values(module, feed), strict=True):
        assert old.dtype == new.dtype
        np.testing.assert_array_equal(old.view(np.uint8), new.view(np.uint8))


def nodes(module: ModuleOp) -> list[NodeOp]:
    """The nodes of the main graph, in order."""
    return [op for op in main_graph(module).body.block.ops if isinstance(op, NodeOp)]


def op_types(module: ModuleOp) -> list[str]:
    """Operators of the main graph without constants, in order."""
    return [op.op_type for op in nodes(module) if op.op_type != "Constant"]


def named(module: ModuleOp, name: str) -> Operation:
    """The node of a name, wherever it is."""
    return next(op for op in module.walk() if node_name(op) == name)


def type_text(value: SSAValue) -> str:
    """A type as text."""
    return str(value.type)
