"""cast-like-to-cast: name the target type of a CastLike where it is known.

    %y = onnx.CastLike(%x, %like : tensor<…xf16>)   ->   %y = onnx.Cast(%x) {to = 10}

The value that was only there for its type loses a reader. Both convert with the same kernel, and
the rounding attributes go along: bits are preserved. Left alone: targets of unknown type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from foldline.dialects.onnx import OPERATORS
from foldline.dialects.onnx.builder import Builder
from foldline.dialects.onnx.math import CastOp
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.types import element_of, element_type
from foldline.stages.context import PassContext
from foldline.stages.driver.visitor import NodeVisitor
from foldline.stages.pass_base import NodePass
from foldline.stages.replacing import names_of, replace
from foldline.support.passes import PASSES

CastLikeOp = OPERATORS["", "CastLike"]


@dataclass(frozen=True)
class CastLikeToCast(NodePass):
    """Turn CastLike into Cast."""

    name = "cast-like-to-cast"
    INFO: ClassVar = PASSES["cast-like-to-cast"]

    def visitor(self, context: PassContext) -> NodeVisitor:
        """The pass for one traversal."""
        return _Visitor(self.name, context)


class _Visitor(NodeVisitor):
    def visit(self, op: NodeOp) -> None:
        """Replace a CastLike whose target type is known."""
        if not isinstance(op, CastLikeOp):
            return
        element = element_type(op.operands[1].type)
        row = None if element is None else element_of(element)
        if row is None:
            self.declined(op, f"its target type is {op.operands[1].type}")
            return
        types = (op.results[0].type,)
        ops = Builder.at(op).operator(CastOp, [op.operands[0]], {"to": row}, types, names_of(op))
        # The two share their attributes: how to round, and whether to saturate.
        ops[-1].properties.update(op.properties)
        self.applied(op, f"casts to {row.name}")
        replace(self.rewriter, op, ops)
