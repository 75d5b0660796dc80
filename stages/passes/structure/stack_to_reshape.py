"""stack-to-reshape: turn a Concat of Unsqueezes into a Concat and one Reshape.

    Concat<k>(Unsqueeze(x, [k]), Unsqueeze(y, [k]), …)   ->   Reshape(Concat<k>(x, y, …), target)

Requires that two Unsqueezes or more have no other reader, so that nodes get fewer, and a constant
target: sizes that are known, a 0 for a size that is copied from its place, or a -1 beside positive
numbers. A stack along a new last axis interleaves elements and is left alone, unless the axis
before it has size 1. Elements are only moved, so bits are preserved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.ir import SSAValue

from foldline.dialects.onnx.attributes import Names
from foldline.dialects.onnx.builder import Builder
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.shape import ConcatOp, UnsqueezeOp
from foldline.dialects.onnx.types import UNKNOWN, element_type, tensor_type
from foldline.stages.context import PassContext
from foldline.stages.driver.visitor import NodeVisitor
from foldline.stages.pass_base import NodePass
from foldline.stages.replacing import (
    drop_unused,
    insert,
    is_parametric,
    label_of,
    names_of,
    only_reader,
    replace,
)
from foldline.stages.symbols.expression import constant
from foldline.stages.symbols.facts import Dims
from foldline.stages.symbols.targets import reshape_target
from foldline.support.passes import PASSES


@dataclass(frozen=True)
class StackToReshape(NodePass):
    """Turn stacks into Concat and Reshape."""

    name = "stack-to-reshape"
    INFO: ClassVar = PASSES["stack-to-reshape"]

    def visitor(self, context: PassContext) -> NodeVisitor:
        """The pass for one traversal."""
        return _Visitor(self.name, context)


class _Visitor(NodeVisitor):
    def visit(self, op: NodeOp) -> None:
        """Rewrite a Concat of which every input is an Unsqueeze along its axis."""
        if not isinstance(op, ConcatOp) or len(op.operands) < 2 or is_parametric(op):
            return
        parts = [v.owner for v in op.operands if isinstance(v.owner, UnsqueezeOp)]
        if len(parts) < len(op.operands):
            return
        reason = self._rewrite(op, parts)
        if reason is not None:
            self.declined(op, reason)

    def _rewrite(self, op: ConcatOp, parts: Sequence[UnsqueezeOp]) -> str | None:
        """Rewrite, or say why not."""
        sizes = self._sizes(parts)
        if sizes is None:
            return "the rank of its parts is not known"
        axis = (op.int_of("axis") or 0) % (len(sizes) + 1)
        if any(_axis(part, len(sizes) + 1) != axis for part in parts):
            return "its parts are not unsqueezed along the axis that it joins"
        gone = {part for part in parts if only_reader(part.results[0]) is op}
        if len(gone) < 2:
            return f"only {len(gone)} of its parts would go, for a Reshape"
        joined = axis
        if axis == len(sizes):
            joined -= 1
            if axis == 0 or sizes[-1].value != 1:
                return "it interleaves elements along a new last axis"
        whole = (*sizes[:joined], sizes[joined] * len(parts), *sizes[joined + 1 :])
        stack = (*sizes[:axis], constant(len(parts)), *sizes[axis:])
        target = reshape_target(whole, stack)
        if target is None:
            return (
                f"the shape [{', '.join(map(str, sizes))}] of its parts leaves no constant target"
            )
        self._replace(op, [part.data for part in parts], joined, target)
        return None

    def _sizes(self, parts: Sequence[UnsqueezeOp]) -> Dims:
        """The shape that all parts have before they are unsqueezed, as a Concat demands."""
        known = [self.context.knowledge.dims(part.data) for part in parts]
        shapes = [shape for shape in known if shape is not None]
        if not shapes or len({len(shape) for shape in shapes}) > 1:
            return None
        return tuple(
            next((size for size in along if size.value is not None), along[0])
            for along in zip(*shapes, strict=True)
        )

    def _replace(
        self, op: ConcatOp, values: Sequence[SSAValue], axis: int, target: Sequence[int]
    ) -> None:
        builder = Builder.at(op)
        parts = tuple(op.operands)
        element = element_type(op.results[0].type)
        type_ = UNKNOWN if element is None else tensor_type(element, None)
        joined = builder.concat(values, axis, type_, label_of(op))
        (whole,) = insert(self.rewriter, joined, op)
        shape = self.rewriter.constant_before(op, np.array(target, np.int64), Names(None))
        made = builder.reshape(whole, shape.results[0], op.results[0].type, names_of(op))
        self.applied(op, f"joins its {len(values)} parts along axis {axis}, then reshapes")
        replace(self.rewriter, op, made)
        drop_unused(self.rewriter, [*parts, shape.results[0]])


def _axis(op: UnsqueezeOp, rank: int) -> int | None:
    """The only axis that an Unsqueeze inserts, or None."""
    found = op.axes_known()
    if found is None or found.value is None or len(found.value) != 1:
        return None
    return found.value[0] % rank
