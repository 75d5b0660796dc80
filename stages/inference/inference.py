"""Types of the results of any operation, those with bodies and calls included.

    %y = onnx.Conv(%x, %w) : !onnx.unknown   ->   %y = onnx.Conv(%x, %w) : tensor<1x8x?x?xf32>

The library infers nodes; control flow is inferred here from what the bodies yield.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Attribute, Block, Operation

from foldline.dialects.fused.element_wise import ElementWiseOp
from foldline.dialects.onnx.constant import ConstantOp
from foldline.dialects.onnx.control import IfOp, LoopOp, ScanOp, SequenceMapOp
from foldline.dialects.onnx.op import NodeOp, OnnxOp
from foldline.dialects.onnx.structure import CallOp, terminator
from foldline.dialects.onnx.tensor import TensorAttr
from foldline.dialects.onnx.types import UNKNOWN, AbsentType
from foldline.stages.inference import control_flow
from foldline.stages.inference.calls import Calls
from foldline.stages.inference.joining import join, opened, refine
from foldline.stages.inference.library import IllTyped, LibraryInference
from foldline.stages.inference.scope import Scope, TrialScope

Problem = Callable[[Operation, str], None]
Sharpen = Callable[[NodeOp, Sequence[Attribute]], Sequence[Attribute]]
"""Adds to the inferred types of a node's results what else is known of them."""

MAX_ROUNDS = 3
"""So often a body is inferred until what it carries is stable; then its shapes are left open."""


class Inference:
    """Inference in one scope."""

    def __init__(
        self,
        library: LibraryInference,
        scope: Scope,
        calls: Calls,
        on_ill_typed: Problem,
        on_contradiction: Problem,
        trusted: bool,
        sharpen: Sharpen | None = None,
    ):
        self.library = library
        self.scope = scope
        self.calls = calls
        self.on_ill_typed = on_ill_typed
        self.on_contradiction = on_contradiction
        self.trusted = trusted
        """Whether types were inferred before, rather than declared by the model."""
        self._sharpen = sharpen

    def block(self, block: Block) -> None:
        """Infer every node of a body, in order."""
        for op in block.ops:
            if isinstance(op, NodeOp):
                self.arguments(op)
                for region in op.regions:
                    self.block(region.block)
                self.results(op)

    def arguments(self, op: NodeOp) -> None:
        """Give the bodies of a node the types of their arguments, before they are walked."""
        if isinstance(op, LoopOp | ScanOp | SequenceMapOp):
            self._settle(op, op.regions[0].block)

    def results(self, op: NodeOp) -> None:
        """Give the results of a node, whose bodies have been inferred, their types."""
        types = self._inferred(op)
        if self._sharpen is not None:
            types = self._sharpen(op, types)
        for result, inferred in zip(op.results, types, strict=True):
            old = self.scope.type_of(result)
            if old is inferred or isinstance(old, AbsentType):
                continue
            refined = refine(old, inferred, self.trusted)
            if refined.contradiction:
                self.on_contradiction(op, f"declared {old}, inferred {refined.type}")
            self.scope.set_type(result, refined.type)

    def _inferred(self, op: NodeOp) -> Sequence[Attribute]:
        types = [self.scope.type_of(operand) for operand in op.operands]
        match op:
            case ConstantOp():
                tensor = op.tensor()
                return (UNKNOWN if tensor is None else tensor.type,)
            case IfOp():
                yields = [self._yields(op.then_block), self._yields(op.else_block)]
                return tuple(join(a, b) for a, b in zip(*yields, strict=True))
            case ElementWiseOp():
                return self._yields(op.regions[0].block)
            case LoopOp() | ScanOp() | SequenceMapOp():
                return control_flow.result_types(op, types, self._yields(op.regions[0].block))
            case CallOp():
                constants = [self.scope.constant(operand) for operand in op.operands]
                return self.calls.results(op, types, constants, self.on_ill_typed)
            case OnnxOp():
                constants = [self.scope.constant(operand) for operand in op.operands]
                return self._from_library(op, types, constants)
            case _:
                return (UNKNOWN,) * len(op.results)

    def _from_library(
        self, op: OnnxOp, types: Sequence[Attribute], constants: Sequence[TensorAttr | None]
    ) -> Sequence[Attribute]:
        try:
            return self.library.infer(op, types, constants, self.scope.properties(op))
        except IllTyped as error:
            self.on_ill_typed(op, str(error))
            return (UNKNOWN,) * len(op.results)

    def _yields(self, block: Block) -> list[Attribute]:
        return [self.scope.type_of(value) for value in terminator(block).operands]

    def _settle(self, op: OnnxOp, block: Block) -> None:
        """Give the arguments of a body types that hold in every turn.

        They are tried out beside the scope, with nothing trusted: what earlier rounds inferred
        rests on narrower arguments.
        """
        trial = Inference(
            self.library,
            TrialScope(self.scope),
            self.calls,
            _say_nothing,
            _say_nothing,
            trusted=False,
        )
        types = [self.scope.type_of(operand) for operand in op.operands]
        if why := control_flow.misfit(op, types):
            self.on_ill_typed(op, why)
        declared = [self.scope.type_of(argument) for argument in block.args]
        arguments = control_flow.argument_types(op, types, declared)
        carried = control_flow.carried(op)
        for _ in range(MAX_ROUNDS):
            joined = trial.after_a_turn(block, arguments, carried)
            if joined == arguments:
                break
            arguments = joined
        else:
            for argument, _ in carried:
                arguments[argument] = opened(arguments[argument])
        for argument, new in zip(block.args, arguments, strict=True):
            self.scope.set_type(argument, new)

    def after_a_turn(
        self, block: Block, arguments: Sequence[Attribute], carried: Sequence[tuple[int, int]]
    ) -> list[Attribute]:
        """What the arguments of a body can be in this turn or the next; infers the body."""
        for argument, new in zip(block.args, arguments, strict=True):
            self.scope.set_type(argument, new)
        self.block(block)
        yields = self._yields(block)
        joined = list(arguments)
        for argument, result in carried:
            joined[argument] = join(arguments[argument], yields[result])
        return joined


def _say_nothing(op: Operation, what: str) -> None:
    """A turn that is tried out has faults that the types which hold in every turn may not have."""
