"""remove-conditionals: put what is decided in the place of If, Loop and Scan.

    %y = onnx.If(%true) {then, else}            ->   the operations of `then`
    %y, %s = onnx.Loop(%zero, %c, %x) {body}    ->   %x, an empty constant
    %y, %s = onnx.Loop(%two, %c, %x) {body}     ->   the operations of `body`, twice

A condition counts when it is a real constant of one element, not a potential one. A Loop is dropped
where it is never entered; it is unrolled where its trip count is a small constant and its condition
stays true, and so is a Scan over few slices. A branch is moved, with its initializers and names; of
a body that is repeated each turn has names of its own. Outputs keep their names, if need be by an
Identity. Left alone: large bodies, bodies that draw random numbers, and what would need an operator
that the operator set lacks. The same operators run on the same values, so bits are preserved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.ir import SSAValue

from foldline.dialects.onnx.attributes import Names
from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.control import IfOp, LoopOp, ScanOp
from foldline.dialects.onnx.op import NodeOp, opset_versions, result_names
from foldline.dialects.onnx.structure import terminator
from foldline.dialects.onnx.tensor import Array
from foldline.dialects.onnx.traits import is_pure
from foldline.dialects.onnx.types import element_of, element_type, static_shape
from foldline.stages.context import PassContext
from foldline.stages.driver.visitor import NodeVisitor
from foldline.stages.inlining import accepts, copy_refusal, hand_over, move_body, move_refusal
from foldline.stages.pass_base import NodePass
from foldline.stages.passes.control._turns import Turns, loop_turns, scan_turns, unroll
from foldline.stages.rewriting import count_nodes
from foldline.support.passes import PASSES


@dataclass(frozen=True)
class RemoveConditionals(NodePass):
    """Inline, drop or unroll decided control flow."""

    name = "remove-conditionals"
    INFO: ClassVar = PASSES["remove-conditionals"]

    max_trips: int = 8
    """A Loop or Scan of more turns is not unrolled."""
    max_nodes: int = 64
    """Nor is one that would become more nodes than this, unless it has one turn."""

    def visitor(self, context: PassContext) -> NodeVisitor:
        """The pass for one traversal."""
        return _Visitor(self, context)


class _Visitor(NodeVisitor):
    def __init__(self, options: RemoveConditionals, context: PassContext):
        super().__init__(options.name, context)
        self._options = options

    def visit(self, op: NodeOp) -> None:
        """Inline a branch before its nodes are visited, and leave the other one unvisited."""
        if isinstance(op, IfOp):
            self._inline(op)

    def visit_after_bodies(self, op: NodeOp) -> None:
        """Decide on a loop now that the types in its body are known."""
        if isinstance(op, LoopOp):
            self._repeated(op, loop_turns(op))
        elif isinstance(op, ScanOp):
            self._repeated(op, scan_turns(op))

    def _inline(self, op: IfOp) -> None:
        tensor = constant_tensor(op.condition)
        if tensor is None:
            return
        if tensor.array.size != 1:
            self.declined(op, f"its condition has {tensor.array.size} elements, expected 1")
            return
        holds = bool(tensor.array.item())
        block = op.then_block if holds else op.else_block
        values = tuple(terminator(block).operands)
        reason = move_refusal(block, op) or copy_refusal(op, values, opset_versions(op))
        if reason is not None:
            self.declined(op, reason)
            return
        self.applied(op, f"its condition is {str(holds).lower()}")
        moved = move_body(self.rewriter, block, op)
        self.requests.expect(op, moved.nodes)
        hand_over(self.rewriter, op, moved.values)

    def _repeated(self, op: LoopOp | ScanOp, turns: Turns | str | None) -> None:
        if isinstance(turns, Turns):
            turns = self._drop(op, turns) if turns.count == 0 else self._unroll(op, turns)
        if turns is not None:
            self.declined(op, turns)

    def _drop(self, op: LoopOp | ScanOp, turns: Turns) -> str | None:
        """Replace a loop that is never entered, or say why not."""
        versions = opset_versions(op)
        values: list[SSAValue | None] = list(turns.initial)
        stacks = len(turns.stacked)
        if (reason := copy_refusal(op, [*values, *[None] * stacks], versions)) is not None:
            return reason
        empties: list[Array | None] = []
        for result, stacked in zip(op.results[len(values) :], turns.stacked, strict=True):
            row = element_of(element_type(stacked.value.type) or stacked.value.type)
            shape = static_shape(stacked.value.type)
            if result.first_use is None:
                empties.append(None)
            elif row is None or shape is None:
                return f"it is never entered, but its empty output has the type {result.type}"
            elif not accepts("Constant", versions, stacked.value.type):
                return f"no Constant here can hold its empty output of type {stacked.value.type}"
            else:
                axis = stacked.axis % (len(shape) + 1)
                empties.append(np.empty((*shape[:axis], 0, *shape[axis:]), row.numpy))
        self.applied(op, "it is never entered")
        for index, empty in enumerate(empties, len(values)):
            names = Names(None, (result_names(op)[index],))
            made = None if empty is None else self.rewriter.constant_before(op, empty, names)
            values.append(None if made is None else made.results[0])
        hand_over(self.rewriter, op, values)
        return None

    def _unroll(self, op: LoopOp | ScanOp, turns: Turns) -> str | None:
        """Replace a loop by its turns, or say why not."""
        if turns.count > self._options.max_trips:
            return f"it has {turns.count} turns, more than max-trips = {self._options.max_trips}"
        if turns.count > 1:
            nodes = turns.count * (count_nodes(op) - 1)
            if nodes > self._options.max_nodes:
                return f"{nodes} nodes would be more than max-nodes = {self._options.max_nodes}"
            if not is_pure(op):
                return "its body draws random numbers, or calls what may do more than compute"
        reason = move_refusal(turns.body, op) or turns.refusal(op)
        if reason is not None:
            return reason
        self.applied(op, f"its {turns.count} turns are unrolled")
        unroll(self.rewriter, self.requests, op, turns)
        return None
