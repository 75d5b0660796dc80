"""constant-clip: clip constants to the range of the narrower type they are cast to.

    %h = onnx.Cast(%c) {to = 10}   ->   %d = onnx.Clip(%c, -65504, 65504)
                                        %h = onnx.Cast(%d) {to = 10}

Only for a Cast of a real constant from one float type to a narrower one that overflows, infinities
included: what would become infinite becomes the largest number. This changes values, and runs only
when `weightClip` says so. NaN stays NaN. Left alone: casts that saturate by themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, cast

import ml_dtypes
import numpy as np
import numpy.typing as npt

from foldline.dialects.fold import mark_inserted
from foldline.dialects.onnx.attributes import Names
from foldline.dialects.onnx.builder import Builder
from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.math import CastOp
from foldline.dialects.onnx.op import NodeOp, node_name
from foldline.dialects.onnx.types import element_of, element_type
from foldline.stages.context import PassContext
from foldline.stages.driver.visitor import NodeVisitor
from foldline.stages.folding.splats import is_splat
from foldline.stages.pass_base import NodePass
from foldline.support.dtypes import BY_NUMPY, ElementType
from foldline.support.passes import PASSES

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class ConstantClip(NodePass):
    """Put a Clip between a constant and a Cast that overflows."""

    name = "constant-clip"
    INFO: ClassVar = PASSES["constant-clip"]

    def visitor(self, context: PassContext) -> NodeVisitor:
        """The pass for one traversal."""
        return _Visitor(self.name, context)


class _Visitor(NodeVisitor):
    def visit(self, op: NodeOp) -> None:
        """Clip the input of a Cast."""
        if not isinstance(op, CastOp):
            return
        tensor, element = constant_tensor(op.X), element_type(op.results[0].type)
        target = None if element is None else element_of(element)
        if tensor is None or target is None or not _narrows(tensor.array.dtype, target.numpy):
            return
        low, high = _limits(tensor.array.dtype, target.numpy)
        beyond = 0 if _saturates(op, target) else _count_beyond(tensor.array, low, high)
        if not beyond:
            return
        label = Names(f"{node_name(op) or 'cast'}_const_clip")
        ops = Builder.at(op).clip(op.X, low, high, type_=op.X.type, names=label)
        for new in ops:
            self.rewriter.insert_before(new, op)
        mark_inserted(ops[-1])
        self.rewriter.set_operands(op, ops[-1].results)
        limits = f"[{float(low):g}, {float(high):g}]"
        self.applied(op, f"clipped {beyond} elements to {limits} of {target.name}")


def _narrows(source: np.dtype[Any], target: np.dtype[Any]) -> bool:
    """Whether both are floats and the second takes fewer bits."""
    return _is_float(source) and _is_float(target) and BY_NUMPY[target].bits < BY_NUMPY[source].bits


def _is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" or BY_NUMPY[dtype].name.startswith(("bfloat", "float"))


def _saturates(op: CastOp, target: ElementType) -> bool:
    """Whether the Cast gives the largest number for what is beyond it: below 8 bits it always does.

    Types without negative numbers have no range to clip to.
    """
    if target.bits < 8 or target.name == "float8e8m0":
        return True
    return target.bits == 8 and op.int_of("saturate") != 0


def _limits(source: np.dtype[Any], target: np.dtype[Any]) -> tuple[Array, Array]:
    """The least and the greatest number of `target`, as `source` holds them."""
    limits: Any = cast(Any, ml_dtypes.finfo(target))
    return np.array(limits.min, source), np.array(limits.max, source)


def _count_beyond(array: Array, low: Array, high: Array) -> int:
    """How many elements are outside; NaN is not."""
    stored = array[(0,) * array.ndim] if is_splat(array) else array
    return int(np.count_nonzero((stored < low) | (stored > high)))
