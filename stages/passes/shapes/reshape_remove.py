"""reshape-remove: make chains of Reshape, Squeeze, Unsqueeze and Flatten one Reshape, or none.

    Reshape(x: [N, 4], …): [N, 4]                 ->   x
    Squeeze(Unsqueeze(x, a), a)                   ->   x, or whatever before it has the shape
    Reshape(Reshape(x, …), [-1, 4])               ->   Reshape(x, [-1, 4])
    Unsqueeze(Reshape(x: [N, 1, 6], …): [N, 6])   ->   Reshape(x, [0, 6, 1])

Shapes are compared size by size, symbols included. A Reshape reads past what is before it if its
target is constant and copies no size, or copies one that is the same there. All others become a
Reshape of the earliest value from which a constant target leads to their shape, if nothing else
reads what is between. Such operators keep the elements and their order, so equal shapes are equal
values, bit for bit. Left alone: nodes that name an output whose name the input cannot bear.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from xdsl.ir import SSAValue

from foldline.dialects.onnx.builder import Builder
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.shape import FlattenOp, ReshapeOp, SqueezeOp, Target, UnsqueezeOp
from foldline.stages.context import PassContext
from foldline.stages.driver.visitor import NodeVisitor
from foldline.stages.pass_base import NodePass
from foldline.stages.replacing import (
    bypass,
    drop_unused,
    is_parametric,
    names_of,
    only_reader,
    replace,
)
from foldline.stages.symbols.expression import Expr
from foldline.stages.symbols.targets import reshape_target
from foldline.support.errors import RewriteError
from foldline.support.passes import PASSES

Shaping: TypeAlias = ReshapeOp | SqueezeOp | UnsqueezeOp | FlattenOp
"""Operators that keep the elements of their first input and their order."""

LONGEST_CHAIN = 8
"""So many producers are looked at for one of the same shape."""


@dataclass(frozen=True)
class ReshapeRemove(NodePass):
    """Remove operators that do not change the shape."""

    name = "reshape-remove"
    INFO: ClassVar = PASSES["reshape-remove"]

    def visitor(self, context: PassContext) -> NodeVisitor:
        """The pass for one traversal."""
        return _Visitor(self.name, context)


class _Visitor(NodeVisitor):
    def visit(self, op: NodeOp) -> None:
        """Replace the result by an earlier value of its shape, or read an earlier value."""
        if not isinstance(op, Shaping):
            return
        reason = None
        for value in _earlier(op):
            if self.context.knowledge.same_shape(value, op.results[0]):
                reason = bypass(self.rewriter, op, [value])
                if reason is None:
                    self.applied(op, "the shape is that of an earlier value")
                    return
        before = op.operands[0].owner
        if isinstance(before, Shaping):
            reason = self._shorten(op, before)
        if reason is not None:
            self.declined(op, reason)

    def _shorten(self, op: Shaping, before: Shaping) -> str | None:
        """Let an operator go past the one before it; why not, if not."""
        if not isinstance(op, ReshapeOp):
            return self._collapse(op, before)
        reason = self._read_past(op, before)
        if reason is None or self._collapse(op, before) is None:
            return None
        return reason

    def _read_past(self, op: ReshapeOp, before: Shaping) -> str | None:
        """Let a Reshape read what the operator before it reads; why not, if not."""
        target = None if is_parametric(op) else op.target()
        if target is None:
            return "it follows another Reshape, and its target is not constant"
        if not self._copies_alike(target, op.data, before.operands[0]):
            return "it follows another Reshape, and its target copies a size that is not the same"
        self.applied(op, f"reads past {before.name}")
        self.rewriter.set_operands(op, [before.operands[0], *op.operands[1:]])
        drop_unused(self.rewriter, before.results)
        return None

    def _copies_alike(self, target: Target, value: SSAValue, earlier: SSAValue) -> bool:
        """Whether what zeros in a target mean is the same of both values."""
        copied = [] if target.allows_zero else [i for i, n in enumerate(target.dims) if n == 0]
        if not copied:
            return True
        sizes = self.context.knowledge.dims(value)
        others = self.context.knowledge.dims(earlier)
        if sizes is None or others is None:
            return False
        return all(i < min(len(sizes), len(others)) and sizes[i] is others[i] for i in copied)

    def _collapse(self, op: Shaping, before: Shaping) -> str | None:
        """Make a chain one Reshape of the earliest value; why not, if not."""
        if only_reader(before.results[0]) is not op:
            return f"it follows {before.op_type}, which has other readers"
        out = self.context.knowledge.dims(op.results[0])
        if is_parametric(op) or out is None:
            return f"it follows {before.op_type}, and the rank of its result is not known"
        found = self._target(op, out)
        if found is None:
            return f"no constant target of a Reshape says [{', '.join(map(str, out))}]"
        value, target = found
        try:
            made = Builder.at(op).reshape(value, target, op.results[0].type, names_of(op))
        except RewriteError as error:
            return str(error)
        self.applied(op, f"becomes a Reshape to {target}")
        return replace(self.rewriter, op, made)

    def _target(self, op: Shaping, out: Sequence[Expr]) -> tuple[SSAValue, list[int]] | None:
        """The earliest value of a chain from which a constant target leads to `out`, and that.

        What the last Reshape leaves open may stay -1: beside it stand the same sizes as there, but
        for ones.
        """
        chain = list(_alone(op))
        left_over = self._left_over(op, *chain)
        given = [-1 if size is left_over else None for size in out]
        for here in reversed(chain):
            value = here.operands[0]
            target = reshape_target(self.context.knowledge.dims(value) or (), out, given)
            if target is not None:
                return value, target
        return None

    def _left_over(self, *chain: Shaping) -> Expr | None:
        """The size that the target of the last Reshape leaves open; the last operator is first."""
        last = next((op for op in chain if isinstance(op, ReshapeOp)), None)
        target = None if last is None else last.target()
        sizes = None if last is None else self.context.knowledge.dims(last.results[0])
        if target is None or sizes is None or -1 not in target.dims:
            return None
        return sizes[target.dims.index(-1)]


def _earlier(op: Shaping) -> Iterator[SSAValue]:
    """What the operators of a chain read, the last one first."""
    here: object = op
    for _ in range(LONGEST_CHAIN):
        if not isinstance(here, Shaping):
            return
        value = here.operands[0]
        yield value
        here = value.owner


def _alone(op: Shaping) -> Iterator[Shaping]:
    """The operators before `op` of which each is read by the next alone, the last one first."""
    here = op
    for value in _earlier(op):
        before = value.owner
        if not isinstance(before, Shaping) or only_reader(value) is not here:
            return
        yield before
        here = before
