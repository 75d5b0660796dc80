"""flatten-concats: join all parts at once instead of parts of parts.

    Concat<k>(a, Concat<k>(b, c), d)   ->   Concat<k>(a, b, c, d)

Requires one axis, counted from either end, and an inner Concat that is read once, by the outer one:
if that read it twice, the parts could double with every level. All that is nested goes at once,
seen from the outermost. Elements are only moved, so bits are preserved. Left alone: an inner Concat
along another axis, one that something else reads, and one that is an output.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.shape import ConcatOp
from foldline.stages.context import PassContext
from foldline.stages.driver.visitor import NodeVisitor
from foldline.stages.pass_base import NodePass
from foldline.stages.replacing import drop_unused, is_parametric
from foldline.stages.symbols.reading import axis_of
from foldline.support.passes import PASSES

OLD_DEFAULT = 1
"""The axis of a Concat (version 1) that names none."""


@dataclass(frozen=True)
class FlattenConcats(NodePass):
    """Make nested Concats one."""

    name = "flatten-concats"
    INFO: ClassVar = PASSES["flatten-concats"]

    def visitor(self, context: PassContext) -> NodeVisitor:
        """The pass for one traversal."""
        return _Visitor(self.name, context)


class _Visitor(NodeVisitor):
    def visit(self, op: NodeOp) -> None:
        """Let the outermost Concat read what those before it read."""
        if not isinstance(op, ConcatOp) or not any(_nested(value) for value in op.operands):
            return
        reader = op.results[0].get_user_of_unique_use()
        if isinstance(reader, ConcatOp) and self._refusal(reader, op) is None:
            return
        before, gone = tuple(op.operands), 0
        parts: list[SSAValue] = []
        waiting = [(value, op) for value in reversed(before)]
        while waiting:
            value, outer = waiting.pop()
            inner = _nested(value)
            reason = None if inner is None else self._refusal(outer, inner)
            if inner is None or reason is not None:
                parts.append(value)
                if reason is not None:
                    self.declined(op, reason)
            else:
                gone += 1
                waiting += ((part, inner) for part in reversed(inner.operands))
        if gone:
            self.applied(op, f"joins the parts of {gone} Concats before it as well")
            self.rewriter.set_operands(op, parts)
            drop_unused(self.rewriter, before)

    def _refusal(self, outer: ConcatOp, inner: ConcatOp) -> str | None:
        """Why the parts of a Concat cannot be parts of the one that reads it."""
        if inner.results[0].get_user_of_unique_use() is not outer:
            return "the Concat before it is an output, or is read more than once"
        if is_parametric(outer) or is_parametric(inner):
            return "an axis is a parameter of the function"
        axes = [OLD_DEFAULT if (k := op.int_of("axis")) is None else k for op in (outer, inner)]
        if axes[0] == axes[1]:
            return None
        sizes = self.context.knowledge.dims(inner.results[0])
        if sizes is None:
            return f"axes {axes[0]} and {axes[1]} may differ, as the rank is not known"
        if axis_of(outer, len(sizes), OLD_DEFAULT) == axis_of(inner, len(sizes), OLD_DEFAULT):
            return None
        return f"it joins along axis {axes[0]}, and the Concat before it along {axes[1]}"


def _nested(value: SSAValue) -> ConcatOp | None:
    """The Concat that makes a value."""
    return value.owner if isinstance(value.owner, ConcatOp) else None
