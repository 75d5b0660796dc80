"""The sizes that operators give their results, by operator class."""

from __future__ import annotations

from foldline.dialects.onnx.op import NodeOp
from foldline.stages.symbols import (
    shapes_attention,
    shapes_elementwise,
    shapes_layout,
    shapes_linear,
    shapes_select,
    shapes_windows,
)
from foldline.stages.symbols.facts import ShapeRule

SHAPE_RULES: dict[type[NodeOp], ShapeRule] = {
    **shapes_attention.RULES,
    **shapes_elementwise.RULES,
    **shapes_layout.RULES,
    **shapes_linear.RULES,
    **shapes_select.RULES,
    **shapes_windows.RULES,
}
"""Operators without a rule have the sizes of their inferred types, and fresh symbols."""
