"""recover-reshapes: rebuild shape vectors that stay from the earliest tensor that has their sizes.

    %h = onnx.MatMul(%x: [N, S, 8], %w)                %s = onnx.Shape(%x)
    %n = onnx.Gather(onnx.Shape(%h), 0)                %v = onnx.Gather(%s, [0, 1])
    %v = onnx.Concat(onnx.Unsqueeze(%n), …)     ->     onnx.ConstantOfShape(%v)
    onnx.ConstantOfShape(%v: [N, S])

Whatever computed such a vector dies with its producer; inputs of the model come first. Sizes are
numbers of the same run, so nothing changes but where they are read. The rebuilt vectors share their
nodes, and nothing is done unless fewer nodes are left than before. Left alone: vectors with a size
that no tensor has, and those that name an output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from xdsl.ir import Block, Operation, SSAValue

from foldline.dialects.onnx.constant import is_constant
from foldline.dialects.onnx.op import NodeOp, opset_versions
from foldline.dialects.onnx.structure import FunctionOp, GraphOp
from foldline.dialects.onnx.traits import ReadsShapeOnly, is_pure
from foldline.stages.context import PassContext
from foldline.stages.pass_base import GraphPass
from foldline.stages.replacing import drop_unused
from foldline.stages.rewriting import count_nodes, is_returned
from foldline.stages.symbols.expression import Expr
from foldline.stages.symbols.facts import Elements
from foldline.stages.symbols.knowledge import Knowledge
from foldline.stages.symbols.sources import Maker, Recipe, Sizes, nodes_of, sources_of
from foldline.stages.symbols.value_rules import VALUE_RULES
from foldline.support.passes import PASSES

INTEGER_CONSTANTS = 9
"""The operator set from which a Constant may hold integers."""
LONGEST = 8
"""Vectors of more elements are not shapes."""


@dataclass(frozen=True)
class RecoverReshapes(GraphPass):
    """Read sizes where they come from."""

    name = "recover-reshapes"
    INFO: ClassVar = PASSES["recover-reshapes"]

    def run(self, context: PassContext) -> None:
        """Rebuild all vectors of the module for which it pays."""
        search = _Search(context.knowledge)
        for op in context.module.body.block.ops:
            if isinstance(op, GraphOp | FunctionOp):
                search.block(op.regions[0].block, Sizes.empty())
        plans = search.needed()
        chosen = plans if _gain(plans) > 0 else [p for p in plans if _gain([p]) > 0]
        if not chosen:
            return
        maker, before = Maker(context.rewriter), [plan.value for plan in chosen]
        for plan in chosen:
            context.remark("applied", self.name, plan.op, "is read from the earliest tensor")
            context.rewriter.replace_uses(plan.value, maker.make(plan.recipe, plan.op))
        drop_unused(context.rewriter, before)


@dataclass(frozen=True)
class _Plan:
    """A value and how to rebuild it."""

    op: NodeOp
    value: SSAValue
    recipe: Recipe


@dataclass
class _Search:
    """Finds vectors of sizes, who needs them, and where their sizes can be read."""

    knowledge: Knowledge
    plans: dict[SSAValue, _Plan] = field(default_factory=dict[SSAValue, _Plan])
    vectors: dict[NodeOp, None] = field(default_factory=dict[NodeOp, None])
    """Nodes that compute nothing but sizes, in order."""

    def block(self, block: Block, sizes: Sizes) -> None:
        """Look at a block and what its nodes hold."""
        for argument in block.args:
            self._add(argument, sizes)
        for op in block.ops:
            if not isinstance(op, NodeOp) or is_constant(op):
                continue
            for region in op.regions:
                self.block(region.block, sizes.inner())
            if self._is_of_sizes(op):
                self.vectors[op] = None
                self._plan(op, sizes)
            else:
                for result in op.results:
                    self._add(result, sizes)

    def needed(self) -> list[_Plan]:
        """Plans for vectors that something else than other vectors reads."""
        wanted: set[SSAValue] = set()
        found: list[_Plan] = []
        for op in reversed(self.vectors):
            for result in op.results:
                is_read = any(use.operation not in self.vectors for use in result.uses)
                if not is_read and result not in wanted:
                    continue
                if (plan := self.plans.get(result)) is not None:
                    found.append(plan)
                else:
                    wanted.update(op.operands)
        found.reverse()
        return found

    def _add(self, value: SSAValue, sizes: Sizes) -> None:
        """Let the sizes of a value be read, if more than its shape is read of it already."""
        if all(use.operation.has_trait(ReadsShapeOnly) for use in value.uses):
            return
        dims = self.knowledge.dims(value)
        if dims:
            sizes.add(value, dims)

    def _is_of_sizes(self, op: NodeOp) -> bool:
        """Whether a node computes integers that are numbers or expressions of sizes."""
        if type(op) not in VALUE_RULES or not is_pure(op):
            return False
        return all(_is_complete(self.knowledge.elements(result)) for result in op.results)

    def _plan(self, op: NodeOp, sizes: Sizes) -> None:
        if len(op.results) > 1 or is_returned(op.results[0]):
            return
        elements = self.knowledge.elements(op.results[0])
        if elements is None or not _is_shape(elements):
            return
        if opset_versions(op).get("", 0) < INTEGER_CONSTANTS:
            return
        recipe = sizes.recipe(elements)
        if recipe is not None:
            self.plans[op.results[0]] = _Plan(op, op.results[0], recipe)


def _is_complete(elements: Elements | None) -> bool:
    return elements is not None and elements.dtype.kind in "ib" and None not in elements.items


def _is_shape(elements: Elements) -> bool:
    """Whether elements are a vector or a scalar of sizes, not all of them numbers."""
    return (
        len(elements.shape) <= 1
        and len(elements.items) <= LONGEST
        and elements.dtype.name in ("int32", "int64")
        and any(isinstance(item, Expr) for item in elements.items)
    )


def _gain(plans: Sequence[_Plan]) -> int:
    """How many nodes fewer there are when all of these are carried out."""
    made = {key for plan in plans for key in nodes_of(plan.recipe, plan.op.parent)}
    return _dying(plans) - len(made)


def _dying(plans: Sequence[_Plan]) -> int:
    """How many nodes nothing reads any more when these values are rebuilt."""
    rebuilt = {plan.value for plan in plans}
    kept = {value for plan in plans for value in sources_of(plan.recipe)}
    dead: dict[Operation, None] = {}
    waiting: list[Operation] = [plan.op for plan in reversed(plans)]
    while waiting:
        op = waiting.pop()
        if op in dead or is_constant(op) or not isinstance(op, NodeOp) or not is_pure(op):
            continue
        if all(_is_unread(result, rebuilt, kept, dead) for result in op.results):
            dead[op] = None
            waiting += [v.owner for v in op.operands if isinstance(v.owner, Operation)]
    return sum(map(count_nodes, dead))


def _is_unread(
    value: SSAValue, rebuilt: set[SSAValue], kept: set[SSAValue], dead: dict[Operation, None]
) -> bool:
    if value in kept:
        return False
    return value in rebuilt or all(use.operation in dead for use in value.uses)
