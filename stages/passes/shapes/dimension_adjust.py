"""dimension-adjust: make shape parameters constant that say something known in another way.

    Reshape(x: [N, S, 4, 16], [N, S, 64])   ->   Reshape(x, [0, 0, 64])
    Reshape(x: [N, 3, H], [N, 3*H])         ->   left alone: two sizes are not known
    Expand(x: [N, 1, S], [N, 4, S])         ->   Expand(x, [1, 4, 1])
    Slice(x: [N, S], 0, S, axis 1)          ->   x
    Concat(x: [N, 0], y, axis 1)            ->   y

The chain that computed the parameter loses a reader. In a Reshape target numbers come first; 0,
which copies a size, stands only where no -1 is needed; -1 stands beside positive numbers only, or
where the model had it: so sizes of 0 reshape as before. Elements are moved as they were, so bits
are preserved. Left alone, with a remark: parameters that hang on more sizes than that can say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.ir import SSAValue

from foldline.dialects.onnx.attributes import Names
from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.indexing import SliceOp
from foldline.dialects.onnx.op import NodeOp, OnnxOp, opset_versions
from foldline.dialects.onnx.shape import ConcatOp, ExpandOp, ReshapeOp, TileOp
from foldline.stages.context import PassContext
from foldline.stages.driver.visitor import NodeVisitor
from foldline.stages.pass_base import NodePass
from foldline.stages.replacing import bypass, drop_unused
from foldline.stages.symbols.expression import Expr, at_most, broadcast
from foldline.stages.symbols.facts import Item, as_expr
from foldline.stages.symbols.reading import axis_of, given_items
from foldline.stages.symbols.shapes_select import slice_ranges
from foldline.stages.symbols.targets import reshape_target
from foldline.support.passes import PASSES

LAST = (1 << 63) - 1
"""The end of a Slice that goes to the end of its axis."""
INTEGER_CONSTANTS = 9
"""The operator set from which a Constant may hold integers."""


@dataclass(frozen=True)
class DimensionAdjust(NodePass):
    """Make shape parameters constant."""

    name = "dimension-adjust"
    INFO: ClassVar = PASSES["dimension-adjust"]

    def visitor(self, context: PassContext) -> NodeVisitor:
        """The pass for one traversal."""
        return _Visitor(self.name, context)


class _Visitor(NodeVisitor):
    def __init__(self, name: str, context: PassContext):
        super().__init__(name, context)
        self._known = context.knowledge
        self._rules: dict[type[NodeOp], Callable[[OnnxOp], object]] = {
            ConcatOp: self._concat,
            ExpandOp: self._expand,
            ReshapeOp: self._reshape,
            SliceOp: self._slice,
            TileOp: self._keep_shape,
        }

    def visit(self, op: NodeOp) -> None:
        """Adjust a node of these kinds."""
        rule = self._rules.get(type(op))
        if rule is not None and isinstance(op, OnnxOp):
            rule(op)

    def _reshape(self, op: OnnxOp) -> None:
        shape = op.operand(1)
        if shape is None or constant_tensor(shape) is not None:
            return
        sizes, out = self._known.dims(op.operands[0]), self._known.dims(op.results[0])
        items = given_items(op, self._known, "shape", 1)
        if out is None:
            return
        target = items.value if items is not None and items.value else (None,) * len(out)
        found = reshape_target(sizes or (), out, target)
        if found is None:
            self.declined(op, f"no constant target says [{_text(target)}]")
        elif self._set(op, {1: found}):
            op.properties.pop("allowzero", None)

    def _expand(self, op: OnnxOp) -> None:
        if self._keep_shape(op) or constant_tensor(op.operands[1]) is not None:
            return
        items, dims = given_items(op, self._known, "", 1), self._known.dims(op.operands[0])
        if items is None or items.value is None or dims is None:
            return
        first, out = len(items.value) - len(dims), self._known.dims(op.results[0])
        target = [
            _expand_entry(item, dims[axis - first] if axis >= first else None)
            for axis, item in enumerate(items.value)
        ]
        if out is not None and len(out) == len(target):
            target = [
                n if n is not None else size.value for n, size in zip(target, out, strict=True)
            ]
        numbers = [n for n in target if n is not None]
        if len(numbers) < len(target):
            self.declined(op, f"it widens to unknown sizes: [{_text(items.value)}]")
        else:
            self._set(op, {1: numbers})

    def _slice(self, op: OnnxOp) -> None:
        dims = self._known.dims(op.operands[0])
        ranges = None if dims is None else slice_ranges(op, self._known, len(dims))
        if dims is None or ranges is None:
            return
        if all(step == 1 for _, _, step in ranges.values()) and self._keep_shape(op):
            return
        starts = [self._bound(a, dims[axis], step) for axis, (a, _, step) in ranges.items()]
        ends = [self._bound(b, dims[axis], step) for axis, (_, b, step) in ranges.items()]
        for index, bounds in ((1, starts), (2, ends)):
            operand = op.operand(index)
            if operand is None or constant_tensor(operand) is not None:
                continue
            numbers = [n for n in bounds if n is not None]
            if len(numbers) == len(bounds):
                self._set(op, {index: numbers})
            else:
                self.declined(op, "it cuts at unknown places")

    def _bound(self, place: Item, size: Expr, step: Item) -> int | None:
        """A bound as a number that means the same on an axis of that size."""
        if isinstance(place, int) and not isinstance(place, Expr):
            return place
        found = as_expr(place)
        if found is None or not isinstance(step, int) or step < 1:
            return None
        if at_most(size, found):
            return LAST
        back = (found - size).value
        return back if back is not None and back < 0 and self._known.is_nonneg(found) else None

    def _concat(self, op: OnnxOp) -> None:
        """Leave out inputs without elements."""
        shapes = [self._known.dims(operand) for operand in op.operands]
        axis = axis_of(op, len(shapes[0]), default=1) if shapes[0] is not None else None
        if axis is None or any(s is None or len(s) != len(shapes[0] or ()) for s in shapes):
            return
        kept = [
            operand
            for operand, sizes in zip(op.operands, shapes, strict=True)
            if sizes is not None and sizes[axis].value != 0
        ]
        if kept and len(kept) < len(op.operands):
            self.applied(op, f"left out {len(op.operands) - len(kept)} inputs without elements")
            before = list(op.operands)
            self.rewriter.set_operands(op, kept)
            drop_unused(self.rewriter, before)

    def _keep_shape(self, op: OnnxOp) -> bool:
        """Remove an operator that can but repeat or cut and leaves the shape as it was."""
        if not self._known.same_shape(op.operands[0], op.results[0]):
            return False
        reason = bypass(self.rewriter, op, [op.operands[0]])
        if reason is None:
            self.applied(op, "it does not change the shape")
        else:
            self.declined(op, reason)
        return reason is None

    def _set(self, op: OnnxOp, parameters: dict[int, Sequence[int]]) -> bool:
        """Give an operator constant parameters in place of computed ones."""
        if opset_versions(op).get("", 0) < INTEGER_CONSTANTS:
            self.declined(op, f"Constant of opset {opset_versions(op).get('')} holds no integers")
            return False
        operands, before = list(op.operands), [op.operands[index] for index in parameters]
        for index, numbers in parameters.items():
            array = np.array(numbers, self._dtype(op.operands[index]))
            made = self.rewriter.constant_before(op, array, Names(None))
            operands[index] = made.results[0]
        self.applied(op, f"made constant: {', '.join(str(list(n)) for n in parameters.values())}")
        self.rewriter.set_operands(op, operands)
        drop_unused(self.rewriter, before)
        return True

    def _dtype(self, value: SSAValue) -> np.dtype[np.generic]:
        elements = self._known.elements(value)
        return np.dtype(np.int64) if elements is None else elements.dtype


def _expand_entry(item: Item, size: Expr | None) -> int | None:
    """What an Expand target may say in the place of `item`, where the input has that size."""
    wanted = as_expr(item)
    if wanted is None:
        return None
    if wanted.value is not None:
        return wanted.value
    return 1 if size is not None and broadcast(size, wanted) is size else None


def _text(items: Sequence[Item]) -> str:
    return ", ".join("?" if item is None else str(item) for item in items)
