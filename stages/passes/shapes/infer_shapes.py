"""infer-shapes: give every value the best element type and shape that inference can find.

    %y = onnx.Conv(%x, %w) : !onnx.unknown   ->   %y = onnx.Conv(%x, %w) : tensor<1x8x?x?xf32>

Declared types of inner values are hints: what inference contradicts or does not confirm is
dropped, as real models declare sizes and ranks that are wrong. Types of graph inputs are kept: they
are the model's interface. Sizes that symbols prove to be a number, or a named axis of an input, are
written as such. Nothing is concluded from two inputs naming an axis alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import Attribute, Block, Operation

from foldline.dialects.onnx.op import NodeOp, describe
from foldline.dialects.onnx.structure import FunctionOp, GraphOp
from foldline.dialects.onnx.types import Dim, dims_of, element_type, tensor_type
from foldline.stages.context import PassContext
from foldline.stages.driver.visitor import NodeVisitor
from foldline.stages.inference.calls import Calls
from foldline.stages.inference.inference import Inference
from foldline.stages.inference.scope import IrScope
from foldline.stages.pass_base import NodePass
from foldline.stages.symbols.expression import Expr
from foldline.stages.symbols.facts import Dims
from foldline.support.errors import InvalidModel
from foldline.support.passes import PASSES


@dataclass(frozen=True)
class InferShapes(NodePass):
    """Infer the types of all values."""

    name = "infer-shapes"
    INFO: ClassVar = PASSES["infer-shapes"]

    trusted: bool = False
    """The types in the IR were inferred, not declared: keep what inference cannot find again."""
    refuses: bool = True
    """A node that always runs and is ill-typed makes the model invalid."""

    def visitor(self, context: PassContext) -> NodeVisitor:
        """The pass for one traversal."""
        return _Visitor(self, context)


class _Visitor(NodeVisitor):
    def __init__(self, options: InferShapes, context: PassContext):
        super().__init__(options.name, context)
        self._refuses = options.refuses
        self._calls = Calls(
            context.module,
            lambda scope, on_ill_typed: Inference(
                context.library, scope, self._calls, on_ill_typed, _ignore, trusted=False
            ),
        )
        self._inference = Inference(
            context.library,
            IrScope(context.rewriter),
            self._calls,
            self._ill_typed,
            self._contradicted,
            options.trusted,
            self._sharpened,
        )

    def enter(self, block: Block) -> None:
        """Give the arguments of a function the types that hold in all its calls."""
        function = block.parent_op()
        if isinstance(function, FunctionOp):
            types = self._calls.arguments(function)
            for argument, new in zip(block.args, types, strict=False):
                self._inference.scope.set_type(argument, new)

    def visit(self, op: NodeOp) -> None:
        """Infer a node, or what goes into its bodies."""
        if op.regions:
            self._inference.arguments(op)
        else:
            self._inference.results(op)

    def visit_after_bodies(self, op: NodeOp) -> None:
        """Infer the results from what the bodies yield."""
        self._inference.results(op)

    def _sharpened(self, op: NodeOp, types: Sequence[Attribute]) -> list[Attribute]:
        """The types with sizes that inference leaves open and symbols prove to be numbers."""
        sizes = self.context.knowledge.infer(op, types)
        return [sharpened(t, dims, self._name) for t, dims in zip(types, sizes, strict=True)]

    def _name(self, size: Expr) -> str | None:
        return self.context.knowledge.name_of(size)

    def _ill_typed(self, op: Operation, why: str) -> None:
        """A node that always runs makes the model invalid; one in a body may never run."""
        block = op.parent
        if self._refuses and block is not None and isinstance(block.parent_op(), GraphOp):
            raise InvalidModel(f"{self._where}: {describe(op)} is ill-typed: {why}")
        self.note(op, f"fails if it runs: {why}")

    def _contradicted(self, op: Operation, what: str) -> None:
        self.note(op, what)

    @property
    def _where(self) -> str:
        stage = self.context.stage
        return f"{stage}/{self.name}" if stage else self.name


def sharpened(
    attribute: Attribute, sizes: Dims, name_of: Callable[[Expr], str | None]
) -> Attribute:
    """A type with what is known of its sizes: numbers, else names of the model, else as it was."""
    element, dims = element_type(attribute), dims_of(attribute)
    if element is None or sizes is None or (dims is not None and len(dims) != len(sizes)):
        return attribute
    given = (None,) * len(sizes) if dims is None else dims
    found = tuple(
        dim if _is_number(dim) else _dim(size, dim, name_of)
        for dim, size in zip(given, sizes, strict=True)
    )
    return attribute if found == dims else tensor_type(element, found)


def _is_number(dim: Dim) -> bool:
    return isinstance(dim, int) and dim >= 0


def _dim(size: Expr, otherwise: Dim, name_of: Callable[[Expr], str | None]) -> Dim:
    number = size.value
    if number is not None:
        return number if number >= 0 else otherwise
    return name_of(size) or otherwise


def _ignore(op: Operation, what: str) -> None:
    """Inside a function, what is declared holds for no call in particular."""
