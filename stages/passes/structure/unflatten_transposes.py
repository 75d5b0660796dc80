"""unflatten-transposes: swap the last axes at once, not with the leading ones made one for it.

    Reshape(Transpose<0,2,1>(Reshape(x: [b,h,s,d], [-1,s,d])), [b,h,d,s])
        ->   Transpose<0,1,3,2>(x)

Exporters write this for the keys of attention; the target that asks for sizes one by one hides
what they are, as each that is 0 would be a copy. Required is that the sizes are those of `x` in
every run that succeeds, and that nothing else reads what is in between. Elements are only moved,
so bits are preserved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from foldline.dialects.onnx.builder import Builder
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.shape import ReshapeOp, TransposeOp
from foldline.stages.context import PassContext
from foldline.stages.driver.visitor import NodeVisitor
from foldline.stages.pass_base import NodePass
from foldline.stages.replacing import is_parametric, names_of, only_reader, replace
from foldline.stages.symbols.expression import Expr, expr_of, vanishes_with
from foldline.stages.symbols.facts import Item
from foldline.stages.symbols.reading import given_items
from foldline.support.passes import PASSES

FLAT_SWAP = (0, 2, 1)
WHOLE_SWAP = (0, 1, 3, 2)


@dataclass(frozen=True)
class UnflattenTransposes(NodePass):
    """Transpose without flattening."""

    name = "unflatten-transposes"
    INFO: ClassVar = PASSES["unflatten-transposes"]

    def visitor(self, context: PassContext) -> NodeVisitor:
        """The pass for one traversal."""
        return _Visitor(self.name, context)


class _Visitor(NodeVisitor):
    def visit(self, op: NodeOp) -> None:
        """Replace a Reshape that undoes what was flattened for the Transpose before it."""
        if not isinstance(op, ReshapeOp) or is_parametric(op):
            return
        swap = op.data.owner
        if not isinstance(swap, TransposeOp) or swap.permutation() != FLAT_SWAP:
            return
        flat = swap.data.owner
        sizes = None
        if isinstance(flat, ReshapeOp) and not is_parametric(flat):
            sizes = self.context.knowledge.dims(flat.data)
        if not isinstance(flat, ReshapeOp) or sizes is None or len(sizes) != len(WHOLE_SWAP):
            return
        if not self._flattens(flat, sizes) or not self._is_undone(op, sizes):
            self.declined(op, f"not certain to be [{', '.join(map(str, sizes))}] transposed")
        elif only_reader(op.data) is not op or only_reader(swap.data) is not swap:
            self.declined(op, "what is flattened for the Transpose before it has other readers")
        else:
            made = Builder.at(op).transpose(flat.data, WHOLE_SWAP, op.results[0].type, names_of(op))
            self.applied(op, "transposes without flattening")
            replace(self.rewriter, op, made)

    def _flattens(self, flat: ReshapeOp, sizes: Sequence[Expr]) -> bool:
        """Whether a Reshape, if there are elements at all, leaves the last two axes alone."""
        target, dims = self._target(flat), self.context.knowledge.dims(flat.results[0])
        asks = len(target) == len(FLAT_SWAP) and _asked(target[1:], sizes[2:])
        return asks or (dims is not None and dims[1:] == (*sizes[2:],))

    def _is_undone(self, op: ReshapeOp, sizes: Sequence[Expr]) -> bool:
        """Whether a Reshape gives the sizes in the order of a Transpose, or fails."""
        wanted = tuple(sizes[axis] for axis in WHOLE_SWAP)
        if self.context.knowledge.dims(op.results[0]) == wanted:
            return True
        return _asked(self._target(op), wanted) and (
            bool(op.int_of("allowzero")) or _is_copied_nowhere(*wanted[:-1])
        )

    def _target(self, op: ReshapeOp) -> tuple[Item, ...]:
        given = given_items(op, self.context.knowledge, "shape", 1)
        return (given and given.value) or ()


def _asked(target: Sequence[Item], sizes: Sequence[Expr]) -> bool:
    """Whether a target asks for sizes one by one."""
    return len(target) == len(sizes) and all(
        isinstance(item, int | Expr) and expr_of(item) == size
        for item, size in zip(target, sizes, strict=True)
    )


def _is_copied_nowhere(batch: Expr, heads: Expr, size: Expr) -> bool:
    """Whether no size is 0 that Reshape, given three axes, would copy from another one.

    A batch of 0 copies the flat axis, which is 0 then; a fourth axis of 0 has none to copy and
    fails. Heads of 0 would copy `size`: with elements that fails as well, and a batch of 0 cannot
    come together with heads that a Reshape worked out by dividing by it.
    """
    atom = heads.atom
    is_divided = atom is not None and atom.kind == "floordiv" and vanishes_with(atom.args[1], batch)
    return bool(size.value) and (bool(heads.value) or is_divided)
