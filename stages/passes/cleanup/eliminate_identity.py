"""eliminate-identity: remove operators that hand their input on unchanged, bit for bit.

    %y = onnx.Identity(%x); use(%y)   ->   use(%x)

So do Identity, Dropout at inference, Cast and CastLike to the type that is there, Concat, Sum, Max,
Min and Mean of one input, Split into one part, Transpose that moves nothing, and Reshape, Flatten,
Squeeze, Unsqueeze, Expand and Tile to the static shape that is there. Left alone: a node that names
an output whose name its input cannot bear, such as one from an input of the model to an output.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.ir import SSAValue

from foldline.dialects.onnx import OPERATORS
from foldline.dialects.onnx.attributes import Names
from foldline.dialects.onnx.math import CastOp
from foldline.dialects.onnx.nn import DropoutOp
from foldline.dialects.onnx.op import NodeOp, OnnxOp, result_names
from foldline.dialects.onnx.shape import TransposeOp
from foldline.dialects.onnx.tensor import splat
from foldline.dialects.onnx.types import element_of, element_type, static_shape
from foldline.stages.context import PassContext
from foldline.stages.driver.visitor import NodeVisitor
from foldline.stages.pass_base import NodePass
from foldline.stages.replacing import is_parametric
from foldline.support.passes import PASSES


@dataclass(frozen=True)
class EliminateIdentity(NodePass):
    """Remove operators without effect."""

    name = "eliminate-identity"
    INFO: ClassVar = PASSES["eliminate-identity"]

    def visitor(self, context: PassContext) -> NodeVisitor:
        """The pass for one traversal."""
        return _Visitor(self.name, context)


class _Visitor(NodeVisitor):
    def visit(self, op: NodeOp) -> None:
        """Replace the result by the input where the operator's rule says they are one."""
        rule = RULES.get(type(op))
        if rule is None or not isinstance(op, OnnxOp) or is_parametric(op) or not rule(op):
            return
        if isinstance(op, DropoutOp) and not self._make_mask(op):
            return
        kept: list[SSAValue | None] = [op.operands[0], *[None] * (len(op.results) - 1)]
        reason = self.rewriter.replace_values(op, kept)
        if reason is None:
            self.applied(op, "handed its input on unchanged")
        else:
            self.declined(op, reason)

    def _make_mask(self, op: DropoutOp) -> bool:
        """Give who reads the mask of a Dropout a constant; whether the mask is unused now."""
        if len(op.results) == 1 or op.results[1].first_use is None:
            return True
        shape = static_shape(op.results[0].type)
        if shape is None or op.since < 10:
            self.declined(op, "its mask is read and has no known shape or no defined value")
            return False
        names = Names(None, (result_names(op)[1],))
        mask = self.rewriter.constant_before(op, splat(True, shape, np.bool_), names)
        self.rewriter.replace_uses(op.results[1], mask.results[0])
        return True


def _always(op: OnnxOp) -> bool:
    return True


def _has_one_input(op: OnnxOp) -> bool:
    return len(op.operands) == 1


def _has_one_output(op: OnnxOp) -> bool:
    return len(op.results) == 1


def _never_drops(op: OnnxOp) -> bool:
    return isinstance(op, DropoutOp) and not op.may_train()


def _casts_to_same(op: OnnxOp) -> bool:
    element = element_type(op.operands[0].type)
    row = None if element is None else element_of(element)
    if row is None:
        return False
    if isinstance(op, CastOp):
        return op.value_of("to") == (row.code if op.since > 1 else row.name.upper())
    return element == element_type(op.operands[1].type)


def _moves_nothing(op: OnnxOp) -> bool:
    if not isinstance(op, TransposeOp):
        return False
    order = op.permutation()
    return order is not None and order == tuple(range(len(order)))


def _keeps_shape(op: OnnxOp) -> bool:
    shape = static_shape(op.operands[0].type)
    return shape is not None and shape == static_shape(op.results[0].type)


RULES: dict[type[NodeOp], Callable[[OnnxOp], bool]] = {
    OPERATORS["", name]: rule
    for rule, names in {
        _always: ("Identity",),
        _never_drops: ("Dropout",),
        _casts_to_same: ("Cast", "CastLike"),
        _has_one_input: ("Concat", "Sum", "Max", "Min", "Mean"),
        _has_one_output: ("Split",),
        _moves_nothing: ("Transpose",),
        # Of these, the elements and their order hang on the two shapes alone.
        _keeps_shape: ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Expand", "Tile"),
    }.items()
    for name in names
}
"""When an operator's first result is its first input."""
