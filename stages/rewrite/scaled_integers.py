"""Products of integers that become floats: what the rules for MatMul and Conv have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from foldline.dialects.onnx.math import CastOp
from foldline.dialects.onnx.nn import ConvIntegerOp, MatMulIntegerOp
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.types import Dim, dims_of, element_type, rank
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.quantised import BYTES
from foldline.stages.rewrite.stand_in import element_of_value


def to_float_pattern(product: str) -> Pattern:
    """The product, what may be added to it as integers, Cast, Mul, and what may be added then.

    Nodes: product, integers (an Add), cast, scaled (a Mul), biased (an Add).
    """
    pattern = Pattern()
    first = pattern.node(product, name="product")
    cast = pattern.node("Cast", where=_is_to_float, name="cast")
    scaled = pattern.node("Mul", name="scaled")
    biased = pattern.node("Add", where=_AddsBias(), name="biased", optional=True)
    if product == "ConvInteger":
        integers = pattern.node("Add", where=_AddsIntegers(), name="integers", optional=True)
        pattern.edge(first, integers)
        pattern.edge(integers, cast, 0)
    else:
        pattern.edge(first, cast, 0)
    pattern.edge(cast, scaled)
    pattern.edge(scaled, biased)
    pattern.results = [(biased, 0)]
    return pattern


@dataclass(frozen=True)
class Spread:
    """What has one element for each column, or each map, of the result of a product."""

    axes: int | None
    """The rank of the result."""
    size: int | None
    """So many columns or maps there are."""
    after: int
    """So many axes come after that of the columns or maps."""

    @classmethod
    def of(cls, product: NodeOp) -> Spread:
        """What fits the result of a product of integers."""
        if isinstance(product, ConvIntegerOp):
            dims, axes = dims_of(product.W.type), rank(product.X.type)
            return cls(axes, _size(dims, 0), (axes or 2) - 2)
        dims = dims_of(product.operands[1].type)
        axes = rank(product.operands[0].type)
        is_matrix = dims is not None and len(dims) == 2 and axes is not None and axes >= 2
        return cls(axes if is_matrix else None, _size(dims, -1), 0)

    def problem(self, what: str, value: SSAValue, element: object = f32) -> str | None:
        """Why a value is none that has one element for each, or one for all."""
        dims = dims_of(value.type)
        if self.axes is None:
            return "the factors are not known to be of two axes or more, and a matrix"
        if dims is None:
            return f"the rank of the {what} is not known"
        if element_type(value.type) != element:
            return f"the {what} is {element_type(value.type)}"
        if len(dims) > self.axes:
            return f"a {what} of rank {len(dims)} raises the rank"
        if all(dim == 1 for dim in dims):
            return None
        place = len(dims) - 1 - self.after
        if (
            self.size is None
            or place < 0
            or dims[place] != self.size
            or any(dim != 1 for at, dim in enumerate(dims) if at != place)
        ):
            return f"a {what} of shape {list(dims)} is not one for each of {self.size}"
        return None


def integer_operand_problem(product: NodeOp) -> str | None:
    """Why the factors of a product are not of 8 bits."""
    for value in product.operands[:2]:
        found = element_of_value(value)
        if found is None or np.dtype(found.numpy) not in BYTES:
            return "a factor is not known to be of 8 bits"
    return None


def other_operand(op: NodeOp, made_by: NodeOp) -> SSAValue:
    """The operand of a node of two that another node does not make."""
    first, second = op.operands
    return second if first.owner is made_by else first


def bias_of(match: Match) -> tuple[SSAValue | None, bool]:
    """The bias, and whether it is the first operand of its Add."""
    biased = match["biased"]
    if biased is None:
        return None, False
    bias = other_operand(biased, match.op("scaled"))
    return bias, biased.operands[0] is bias


def _is_to_float(op: NodeOp) -> bool:
    return element_type(op.results[0].type) == f32


class _AddsBias:
    """The predicate that an Add adds a bias to a product of integers that became a float."""

    def __call__(self, op: NodeOp) -> bool:
        return self.complaint(op) is None

    def complaint(self, op: NodeOp) -> str | None:
        """Why it does not."""
        for scaled in op.operands:
            product = _product_below(scaled)
            if product is not None and isinstance(scaled.owner, NodeOp):
                other = other_operand(op, scaled.owner)
                return Spread.of(product).problem("bias", other)
        return "it adds nothing to a product"


class _AddsIntegers:
    """The predicate that an Add adds an integer for each map to a convolution of integers."""

    def __call__(self, op: NodeOp) -> bool:
        return self.complaint(op) is None

    def complaint(self, op: NodeOp) -> str | None:
        """Why it does not."""
        for value in op.operands:
            if isinstance(value.owner, ConvIntegerOp):
                other = other_operand(op, value.owner)
                element = element_type(value.type)
                return Spread.of(value.owner).problem("integer bias", other, element)
        return "it adds nothing to a convolution"


def _product_below(value: SSAValue) -> NodeOp | None:
    """The product of integers that a Mul scales, through a Cast and, of convolutions, an Add."""
    if not (isinstance(value.owner, NodeOp) and value.owner.op_type == "Mul"):
        return None
    for operand in value.owner.operands:
        if not isinstance(operand.owner, CastOp):
            continue
        inner = operand.owner.X.owner
        if isinstance(inner, MatMulIntegerOp | ConvIntegerOp):
            return inner
        if isinstance(inner, NodeOp) and inner.op_type == "Add":
            for added in inner.operands:
                if isinstance(added.owner, ConvIntegerOp):
                    return added.owner
    return None


def _size(dims: Sequence[Dim] | None, place: int) -> int | None:
    """The size of an axis, where it is known."""
    size = None if not dims else dims[place]
    return size if isinstance(size, int) and size >= 0 else None
