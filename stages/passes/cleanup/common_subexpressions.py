"""common-subexpressions: compute equal operators on equal inputs once.

    %a = onnx.Relu(%x); %b = onnx.Relu(%x)   ->   %a for both

Equal are the operator, its attributes bit for bit, and its inputs: the same values, or constants of
the same bits. What stands in a body gives way to an equal one in a block around it, never to one in
another body. Names, facts, doc strings and metadata make no difference; what the one that goes has
of them and the other lacks is handed on. Where an operator is commutative, so is the comparison,
but for floats: of two NaNs the first may win. Left alone: random and custom operators, calls,
operators with bodies, constants (merge-equal-constants), and of two outputs each its own.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeGuard

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import Commutative, ConstantLike

from foldline.dialects.fold.known import KNOWN, Fact, FullyKnown, get_fact
from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.equality import is_discardable
from foldline.dialects.onnx.op import OnnxOp, describe
from foldline.dialects.onnx.structure import functions, main_graph
from foldline.dialects.onnx.tensor import TensorAttr
from foldline.dialects.onnx.traits import is_pure
from foldline.dialects.onnx.types import AbsentType, element_type
from foldline.stages.context import PassContext
from foldline.stages.equal_constants import TensorTable
from foldline.stages.inference.joining import refine
from foldline.stages.pass_base import GraphPass
from foldline.support.passes import PASSES

NOTES = ("onnx.doc", "onnx.metadata")
"""Attributes that say nothing of what an operation computes, beside the discardable ones."""

_Key = tuple[Any, ...]
_Scope = ChainMap[_Key, OnnxOp]


@dataclass(frozen=True)
class CommonSubexpressions(GraphPass):
    """Merge equal operations."""

    name = "common-subexpressions"
    INFO: ClassVar = PASSES["common-subexpressions"]

    def run(self, context: PassContext) -> None:
        """Merge in the main graph and in each function."""
        for graph in (main_graph(context.module), *functions(context.module)):
            _Merging(context, self.name).block(graph.body.block, ChainMap())


class _Merging:
    """Merging in one graph or function, in program order: inputs merge before their readers."""

    def __init__(self, context: PassContext, name: str):
        self._context = context
        self._name = name
        self._constants: TensorTable[SSAValue] = TensorTable()
        self._tensors: TensorTable[TensorAttr] = TensorTable()

    def block(self, block: Block, scope: _Scope) -> None:
        """Merge in a block; `scope`: what was computed before it, by its key.

        Only the first map belongs to this block: what a body computes is not seen outside of it.
        """
        for op in block.ops:
            for region in op.regions:
                self.block(region.block, scope.new_child())
            if _is_candidate(op):
                kept = scope.setdefault(self._key(op), op)
                if kept is not op:
                    self._merge(op, kept)

    def _merge(self, op: OnnxOp, kept: OnnxOp) -> None:
        attributes, facts, types = dict(op.attributes), _facts(op), list(op.result_types)
        reason = self._context.rewriter.replace_values(op, kept.results)
        if reason is not None:
            self._context.remark("declined", self._name, op, reason)
            return
        self._context.remark("applied", self._name, op, f"{describe(kept)} computes it already")
        for name, value in attributes.items():
            if name != KNOWN:
                kept.attributes.setdefault(name, value)
        self._learn(kept, facts, types)

    def _learn(self, kept: OnnxOp, facts: Sequence[Fact | None], types: list[Attribute]) -> None:
        """Add what was known of the results of an equal operation."""
        rewriter = self._context.rewriter
        joined = list(map(_more, _facts(kept), facts))
        for result, other in zip(kept.results, types, strict=True):
            refined = refine(result.type, other, trusted=True)
            if not refined.contradiction and refined.type != result.type:
                rewriter.set_type(result, refined.type)
        if any(fact is not None for fact in joined):
            rewriter.set_facts(kept, joined)

    def _key(self, op: OnnxOp) -> _Key:
        """What equal operations have in common, and no others."""
        operands = [self._operand(value) for value in op.operands]
        while operands and operands[-1] is None:
            operands.pop()
        if op.has_trait(Commutative) and not _is_of_floats(op.results[0]):
            operands.sort(key=id)
        absent = tuple(isinstance(result.type, AbsentType) for result in op.results)
        others = {
            name: value
            for name, value in op.attributes.items()
            if not is_discardable(name) and name not in NOTES
        }
        given = (*op.properties.items(), *others.items())
        attributes = frozenset((name, self._attribute(value)) for name, value in given)
        return type(op), tuple(operands), absent, attributes

    def _operand(self, value: SSAValue) -> SSAValue | None:
        """The value, or the first constant of its bits; None for an absent one."""
        if isinstance(value.type, AbsentType):
            return None
        tensor = constant_tensor(value)
        return value if tensor is None else self._constants.find_or_add(tensor.data, value)

    def _attribute(self, value: Attribute) -> object:
        """An attribute, or what stands for all tensors of its bits."""
        if not isinstance(value, TensorAttr):
            return value
        return TensorAttr, id(self._tensors.find_or_add(value.data, value))


def _is_candidate(op: Operation) -> TypeGuard[OnnxOp]:
    return (
        isinstance(op, OnnxOp)
        and not op.regions
        and not op.has_trait(ConstantLike)
        and bool(op.results)
        and is_pure(op)
    )


def _is_of_floats(value: SSAValue) -> bool:
    """Whether a value may hold NaNs: two of them are different bits."""
    return not isinstance(element_type(value.type), IntegerType)


def _facts(op: Operation) -> list[Fact | None]:
    return [get_fact(result) for result in op.results]


def _more(one: Fact | None, other: Fact | None) -> Fact | None:
    """The fact that says more; what is known in full cannot be known better."""
    return other if one is None or isinstance(other, FullyKnown) else one
