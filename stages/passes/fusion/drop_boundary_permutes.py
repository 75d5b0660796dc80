"""drop-boundary-permutes: take Transposes at the border of the model out of it.

    input x: 1x224x224x3; Transpose<0,3,1,2>(x)    ->   input x: 1x3x224x224
    output y: 1x7x7x64 = Transpose<0,2,3,1>(z)     ->   output y: 1x64x7x7 = z

The caller has to permute instead: the interface of the model changes, which each remark says. Left
alone: inputs that anything else reads, or that are permuted in several ways; outputs that are read
inside as well; and values that cannot bear the name of the output.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from xdsl.ir import Attribute, Block, BlockArgument

from foldline.dialects.onnx.attributes import InterfaceAttr, ValueInfo
from foldline.dialects.onnx.shape import TransposeOp
from foldline.dialects.onnx.structure import interface, main_graph, terminator
from foldline.dialects.onnx.types import Dim, dims_of, with_dims
from foldline.stages.context import PassContext
from foldline.stages.pass_base import GraphPass
from foldline.stages.passes.cleanup.cancel_transposes import order_of
from foldline.stages.replacing import only_reader
from foldline.stages.rewriting import is_returned
from foldline.support.passes import PASSES


@dataclass(frozen=True)
class DropBoundaryPermutes(GraphPass):
    """Drop Transposes of inputs and of outputs."""

    name = "drop-boundary-permutes"
    INFO: ClassVar = PASSES["drop-boundary-permutes"]

    inputs: bool = True
    """Those that read an input."""
    outputs: bool = True
    """Those that make an output."""

    def run(self, context: PassContext) -> None:
        """Look at each input and output of the model."""
        border = _Border(self.name, context, main_graph(context.module).body.block)
        if self.inputs:
            for argument, info in border.arguments():
                border.drop_after(argument, info.name)
        if self.outputs:
            for place, info in enumerate(interface(border.block).outputs):
                border.drop_before(place, info.name)


@dataclass(frozen=True)
class _Border:
    pass_name: str
    context: PassContext
    block: Block

    def arguments(self) -> list[tuple[BlockArgument, ValueInfo]]:
        """The inputs with what is declared of them."""
        return list(zip(self.block.args, interface(self.block).argument_infos(), strict=True))

    def drop_after(self, argument: BlockArgument, name: str) -> None:
        """Let the input be what its Transposes make of it."""
        readers = list(dict.fromkeys(use.operation for use in argument.uses))
        permuting = [op for op in readers if isinstance(op, TransposeOp)]
        orders = {order_of(op) for op in permuting}
        dims = dims_of(argument.type)
        if not permuting:
            return
        order = next(iter(orders))
        if len(permuting) < len(readers):
            self._decline(permuting[0], f"the input '{name}' is read by others as well")
        elif len(orders) > 1 or order is None or dims is None or len(order) != len(dims):
            self._decline(permuting[0], f"the input '{name}' is not permuted in one known way")
        elif any(is_returned(op.results[0]) for op in permuting):
            self._decline(permuting[0], f"the input '{name}' cannot be an output by itself")
        else:
            changed = with_dims(argument.type, tuple(dims[axis] for axis in order))
            self._apply(permuting[0], f"the input '{name}'", dims, changed)
            self.context.rewriter.set_type(argument, changed)
            self._declare("inputs", name, changed)
            for op in permuting:
                self.context.rewriter.replace_uses(op.results[0], argument)
                self.context.rewriter.erase(op)

    def drop_before(self, place: int, name: str) -> None:
        """Let the output be what its Transpose reads."""
        end = terminator(self.block)
        op = end.operands[place].owner
        if not isinstance(op, TransposeOp):
            return
        order, dims = order_of(op), dims_of(op.results[0].type)
        uses = sum(1 for _ in op.results[0].uses)
        if order is None or dims is None or len(order) != len(dims):
            self._decline(op, f"how the output '{name}' is permuted is not known")
        elif uses > 1 or only_reader(op.results[0]) is not end:
            self._decline(op, f"the output '{name}' is read inside as well")
        else:
            back = [order.index(axis) for axis in range(len(order))]
            changed = with_dims(op.results[0].type, tuple(dims[axis] for axis in back))
            reason = self.context.rewriter.replace_values(op, [op.data])
            if reason is not None:
                self._decline(op, reason)
                return
            self._apply(op, f"the output '{name}'", dims, changed)
            self._declare("outputs", name, changed)

    def _declare(self, side: Literal["inputs", "outputs"], name: str, changed: Attribute) -> None:
        """Write another type into the interface."""
        end = terminator(self.block)
        infos: tuple[ValueInfo, ...] = getattr(end.interface.data, side)
        new = tuple(info.with_type(changed) if info.name == name else info for info in infos)
        end.properties["interface"] = InterfaceAttr(replace(end.interface.data, **{side: new}))

    def _apply(
        self, op: TransposeOp, what: str, before: tuple[Dim, ...], changed: Attribute
    ) -> None:
        text = f"{what} changes its layout, from {_text(before)} to {_text(dims_of(changed))}"
        self.context.remark("applied", self.pass_name, op, text)

    def _decline(self, op: TransposeOp, reason: str) -> None:
        self.context.remark("declined", self.pass_name, op, reason)


def _text(dims: tuple[Dim, ...] | None) -> str:
    return f"[{', '.join('?' if isinstance(d, int) and d < 0 else str(d) for d in dims or ())}]"
