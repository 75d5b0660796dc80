"""protect-quantisation: keep dequantised weights from being folded to floats.

    %f = onnx.DequantizeLinear(%c, %s)       ->   the same, {fold.no_need = …}
    %y = onnx.MatMul(%x, %f)

Quantised rewrites look for that pair. The same holds where a Cast and a Mul stand for the
DequantizeLinear, where Conv, ConvTranspose, Gemm or Gather read the weight, and where a Transpose
or Reshape stands between. Only integer constants are meant, of at most
8 bits where a Cast stands. Nothing is rewritten: a later pass
releases what no rewrite took. Other dequantised constants fold as ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import Operation, SSAValue

from foldline.dialects.fold import set_no_need
from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.indexing import GatherOp
from foldline.dialects.onnx.math import CastOp, MulOp
from foldline.dialects.onnx.nn import ConvOp, ConvTransposeOp, GemmOp, MatMulOp
from foldline.dialects.onnx.op import describe
from foldline.dialects.onnx.quantisation import DequantizeLinearOp
from foldline.dialects.onnx.shape import ReshapeOp, TransposeOp
from foldline.stages.context import PassContext
from foldline.stages.folding.ranges import BOOLEAN, range_of_type
from foldline.stages.pass_base import GraphPass
from foldline.support.dtypes import BY_NUMPY
from foldline.support.passes import PASSES

READERS = (ConvOp, ConvTransposeOp, MatMulOp, GemmOp, GatherOp)
"""What quantised rewrites begin at."""
LAYOUT = (TransposeOp, ReshapeOp)
"""What may stand between the constant, the dequantisation and the reader."""
MAX_CAST_BITS = 8
"""Wider integers that are cast and scaled are no weights: positions, for instance."""


@dataclass(frozen=True)
class ProtectQuantisation(GraphPass):
    """Mark dequantised weights as not to be folded."""

    name = "protect-quantisation"
    INFO: ClassVar = PASSES["protect-quantisation"]

    def run(self, context: PassContext) -> None:
        """Look at every dequantisation of the module."""
        for op in context.module.walk():
            pair = _dequantisation(op)
            if not pair:
                continue
            reader = next(_readers(pair[-1]), None)
            if reader is None:
                continue
            reason = f"its integer weight goes into {describe(reader)}, which may be quantised"
            for each in pair:
                set_no_need(each, reason)
                context.remark("note", self.name, each, f"is not folded: {reason}")


def _dequantisation(op: Operation) -> tuple[Operation, ...]:
    """A DequantizeLinear, or a Cast and the Mul by a scale, of an integer constant."""
    match op:
        case DequantizeLinearOp() if _constant_bits(op.x):
            return (op,)
        case MulOp():
            for weight, scale in ((op.A, op.B), (op.B, op.A)):
                cast = weight.owner
                if (
                    isinstance(cast, CastOp)
                    and range_of_type(weight.type) is None
                    and 0 < _constant_bits(cast.X) <= MAX_CAST_BITS
                    and constant_tensor(scale) is not None
                ):
                    return cast, op
            return ()
        case _:
            return ()


def _constant_bits(value: SSAValue) -> int:
    """Bits of an element of an integer constant; 0 for any other value."""
    while isinstance(value.owner, LAYOUT):
        value = value.owner.operands[0]
    tensor = constant_tensor(value)
    if tensor is None or range_of_type(tensor.type) in (None, BOOLEAN):
        return 0
    return BY_NUMPY[tensor.array.dtype].bits


def _readers(op: Operation) -> Iterator[Operation]:
    """Those of the readers that quantised rewrites begin at."""
    pending = [op]
    while pending:
        for use in pending.pop().results[0].uses:
            if isinstance(use.operation, READERS):
                yield use.operation
            elif isinstance(use.operation, LAYOUT) and use.index == 0:
                pending.append(use.operation)
