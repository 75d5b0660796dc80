"""What a replacement builds with: operators in the form of the place, constants, copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from foldline.dialects import operator_class
from foldline.dialects.fused import FUSED_DOMAIN
from foldline.dialects.fused.parts import Parts
from foldline.dialects.onnx.op import NodeOp, OnnxOp, opset_versions
from foldline.dialects.onnx.types import UNKNOWN
from foldline.stages.replacing import label_of, like


class RuleBuilder(Parts):
    """Makes the operations that stand in the place of a match.

    y = build.op("Conv", x, build.constant(w), strides=(1, 1))
    """

    def __init__(self, anchor: NodeOp):
        super().__init__({FUSED_DOMAIN: 1, **opset_versions(anchor)})

    def fused(self, op_type: str, *inputs: SSAValue | None, **attributes: Any) -> SSAValue:
        """Make an operator of the fused dialect."""
        return self.op(op_type, *inputs, domain=FUSED_DOMAIN, **attributes)

    def like(self, op: NodeOp, inputs: Sequence[SSAValue]) -> Any:
        """The same operator with the same attributes on other inputs; its result or results."""
        copy = like(op, inputs, [UNKNOWN] * len(op.results), label_of(op))
        self.made.append(copy)
        return copy.results[0] if len(copy.results) == 1 else tuple(copy.results)

    def operator_class(self, domain: str, op_type: str) -> type[OnnxOp] | None:
        """The class of any operator that is known here."""
        return operator_class(domain, op_type)
