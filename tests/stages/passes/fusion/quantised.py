"""Quantised graphs: how they are written down, and sessions before and after a pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from xdsl.dialects.builtin import ModuleOp

from foldline.importer import import_model
from foldline.kernels.registry import GRADES
from foldline.lowering import lower
from foldline.session import Session
from foldline.stages.context import PassContext
from foldline.stages.pass_base import Pass
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from tests.stages.check import Array, run_pass, values
from tests.stages.passes.fusion.graphs import Node, check_bits

Input = tuple[Any, Sequence[Any]]
"""Type and shape."""


def scale(value: float, count: int = 0) -> Array:
    """One scale, or a vector of `count`."""
    return np.full((count,) if count else (), value, np.float32)


def codes(*shape: int, dtype: Any = np.int8, seed: int = 0) -> Array:
    """Seeded codes of all values."""
    info = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(info.min, info.max, shape, dtype, endpoint=True)


def dq(x: str, y: str, axis: int | None = None) -> Node:
    """DequantizeLinear of `x` with `x_s` and `x_z`."""
    return ("DequantizeLinear", f"{x} {x}_s {x}_z", y, {} if axis is None else {"axis": axis})


def q(x: str, y: str) -> Node:
    """QuantizeLinear to `y` with `y_s` and `y_z`."""
    return ("QuantizeLinear", f"{x} {y}_s {y}_z", y)


def proto(
    graph: Sequence[Node],
    weights: Mapping[str, Array],
    inputs: Mapping[str, Input],
    opset: int = 17,
    outputs: Sequence[str] = ("y",),
) -> onnx.ModelProto:
    """A model of nodes, constants by name, and types and shapes of inputs by name."""
    made = [
        helper.make_node(
            op, ["" if i == "_" else i for i in given.split()], results.split(), **rest
        )
        for op, given, results, rest in ((*n[:3], n[3] if len(n) > 3 else {}) for n in graph)
    ]
    listed = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), list(shape)
        )
        for name, (dtype, shape) in inputs.items()
    ]
    held = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()]
    unknown = [helper.make_tensor_value_info(n, onnx.TensorProto.UNDEFINED, None) for n in outputs]
    model = helper.make_model(
        helper.make_graph(made, "g", listed, unknown, held),
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=8,
    )
    typed = onnx.shape_inference.infer_shapes(model)
    return typed


def module(*given: Any, **keywords: Any) -> ModuleOp:
    """The same, imported and typed."""
    imported = import_model(proto(*given, **keywords), [])
    InferShapes().run(PassContext(imported))
    return imported


def session_values(given: ModuleOp, feed: Mapping[str, Array], mode: str = "fast") -> list[Array]:
    """What a session computes."""
    return Session(lower(given, grades=GRADES[mode]), 1).run(None, dict(feed))


def check_same_bits(given: Pass, before: ModuleOp, feed: Mapping[str, Array]) -> None:
    """A pass changes no bit: of sessions of both modes, and of the file on ONNX Runtime."""
    after = before.clone()
    run_pass(given, after)
    for mode in ("fast", "exact"):
        old, new = (session_values(m, feed, mode) for m in (before, after))
        for wanted, found in zip(old, new, strict=True):
            check_bits(found, wanted)
    for wanted, found in zip(values(before, feed), values(after, feed), strict=True):
        check_bits(found, wanted)


def declined(context: PassContext) -> list[str]:
    """Why matches were refused."""
    return [remark.message for remark in context.remarks if remark.kind == "declined"]
