"""remove-double-permute: two Transposes, one after the other, are one or none.

    Transpose<q>(Transpose<p>(x))   ->   x, where the second undoes the first
    Transpose<q>(Transpose<p>(x))   ->   Transpose<p[q]>(x), where nothing else reads the first

It clears up what fusion has brought together; cancel-transposes does the same, and more, before.
Elements are only moved, so bits are preserved. Left alone: permutations that are not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.shape import TransposeOp
from foldline.stages.passes.cleanup.cancel_transposes import order_of
from foldline.stages.replacing import only_reader
from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.rule_pass import RulePass, built_in
from foldline.stages.rewrite.transform import Transform
from foldline.support.passes import PASSES


def _reads_transpose(op: NodeOp) -> bool:
    return isinstance(op.operands[0].owner, TransposeOp)


def _pattern() -> Pattern:
    """The second of two: the first may be read by others, and stay for them."""
    pattern = Pattern()
    pattern.node("Transpose", where=_reads_transpose, name="second")
    return pattern


def _is_one_order(match: Match) -> bool:
    second = match.op("second")
    first = second.operands[0].owner
    assert isinstance(first, TransposeOp)
    assert isinstance(second, TransposeOp)
    before, after = order_of(first), order_of(second)
    if before is None or after is None or len(before) != len(after):
        return match.refuse("a permutation is not known")
    order = tuple(before[axis] for axis in after)
    undoes = order == tuple(range(len(order)))
    if not undoes and only_reader(second.data) is not second:
        return match.refuse("the first Transpose is read elsewhere, and not undone")
    match.notes.update(source=first.data, order=None if undoes else order)
    return True


def _merge(build: RuleBuilder, match: Match) -> SSAValue:
    source: SSAValue = match.notes["source"]
    order = match.notes["order"]
    return source if order is None else build.op("Transpose", source, perm=order)


TRANSFORM = built_in("remove-double-permute", _pattern(), _merge, _is_one_order)


@dataclass(frozen=True)
class RemoveDoublePermute(RulePass):
    """Merge neighbouring Transposes."""

    name = "remove-double-permute"
    INFO: ClassVar = PASSES["remove-double-permute"]

    @property
    def transform(self) -> Transform:
        """The rule."""
        return TRANSFORM
