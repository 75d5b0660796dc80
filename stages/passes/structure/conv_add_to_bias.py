"""conv-add-to-bias: make a constant channel Add after a Conv without bias its bias.

    Add(Conv(x, w), c: [1, M, 1, 1])   ->   Conv(x, w, c: [M])

Requires a Conv that nothing else reads, a constant that differs along the channel axis only, and
float or double: the bias is added after the product is summed up, as the Add does, so bits are
preserved; in half precision the product would be rounded before the Add and is not before the
bias. Left alone: constants with a NaN, which an Add of two NaNs may or may not pass on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from foldline.dialects.onnx.attributes import Names
from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.math import AddOp
from foldline.dialects.onnx.nn import ConvOp
from foldline.dialects.onnx.op import NodeOp, node_name, result_names
from foldline.dialects.onnx.tensor import Tensor, splat
from foldline.stages.context import PassContext
from foldline.stages.driver.visitor import NodeVisitor
from foldline.stages.pass_base import NodePass
from foldline.stages.replacing import is_parametric, like, only_reader, replace
from foldline.support.passes import PASSES

Array = npt.NDArray[Any]

ADDED_EXACTLY = (np.dtype(np.float32), np.dtype(np.float64))
"""Types in which a sum is rounded to the type of the result before anything is added to it."""


@dataclass(frozen=True)
class ConvAddToBias(NodePass):
    """Turn a constant Add after Conv into its bias."""

    name = "conv-add-to-bias"
    INFO: ClassVar = PASSES["conv-add-to-bias"]

    def visitor(self, context: PassContext) -> NodeVisitor:
        """The pass for one traversal."""
        return _Visitor(self.name, context)


class _Visitor(NodeVisitor):
    def visit(self, op: NodeOp) -> None:
        """Rewrite an Add of a Conv and a constant."""
        if not isinstance(op, AddOp) or is_parametric(op):
            return
        for place, operand in enumerate(op.operands):
            conv, constant = operand.owner, constant_tensor(op.operands[1 - place])
            if isinstance(conv, ConvOp) and constant is not None and conv.B is None:
                bias = self._bias(op, conv, constant.data, place)
                if isinstance(bias, str):
                    self.declined(op, bias)
                else:
                    self._rewrite(op, conv, bias)
                return

    def _bias(self, op: AddOp, conv: ConvOp, addend: Tensor, place: int) -> Array | str:
        """What is added to each channel, or why it cannot be the bias."""
        sizes, weights = (self.context.knowledge.dims(v) for v in (conv.results[0], conv.W))
        if only_reader(conv.results[0]) is not op:
            return "the Conv has other readers"
        if addend.array.dtype not in ADDED_EXACTLY:
            return f"a bias of {addend.array.dtype} is added before the product is rounded"
        maps = None if weights is None else weights[0].value
        if maps is None or sizes is None:
            return "the rank of the Conv or the number of its channels is not known"
        shape = _aligned(op, addend.array.shape, len(sizes), place)
        if shape is None or any(n != 1 for axis, n in enumerate(shape) if axis != 1):
            return f"the constant of shape {list(addend.array.shape)} is not one number a channel"
        if shape[1] not in (1, maps):
            return f"there are {maps} channels, but {shape[1]} numbers"
        if np.isnan(addend.array).any():
            return "the constant holds a NaN"
        if addend.is_splat or shape[1] == 1:
            return splat(addend.array.flat[0], (maps,), addend.array.dtype)
        return addend.array.reshape(maps)

    def _rewrite(self, op: AddOp, conv: ConvOp, bias: Array) -> None:
        constant = self.rewriter.constant_before(op, bias, Names(None))
        names = Names(node_name(conv), result_names(op))
        operands = [conv.X, conv.W, constant.results[0]]
        made = like(conv, operands, [op.results[0].type], names)
        self.applied(op, f"is the bias of {node_name(conv) or conv.name}")
        replace(self.rewriter, op, [made])


def _aligned(op: AddOp, shape: tuple[int, ...], rank: int, place: int) -> tuple[int, ...] | None:
    """The shape of an addend to an operand of `rank` axes, with the axes that it lacks as 1.

    Below version 7 it is the second operand that is broadcast, from `axis` on.
    """
    axis = op.int_of("axis")
    if op.since < 7 and (place == 1 or not op.int_of("broadcast")):
        return None
    start = rank - len(shape) if axis is None or axis < 0 else axis
    end = rank - start - len(shape)
    return None if start < 0 or end < 0 else ((1,) * start + shape + (1,) * end)
