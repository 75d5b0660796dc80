"""Folding what follows a product with constant weights into these and its bias.

Computed in float64 and rounded once: weights `W factor`, bias `(b - before) factor + after`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from xdsl.ir import SSAValue

from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.tensor import Array, Tensor, TensorAttr, splat
from foldline.stages.folding.growth import MAX_BYTES, growth
from foldline.stages.pass_base import PassOptions
from foldline.stages.rewrite.affine import Affine, Floats, affine_of
from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.products import Product, product_of
from foldline.stages.rewrite.rule_pass import RulePass, built_in
from foldline.stages.rewrite.transform import Transform

SPLAT_BYTES = 4 << 10
"""Weights of one number are written out up to this size: a file is full of weights, and small
results of folds are not."""

ARITHMETIC = ("Add", "Div", "Mul", "Sub")


def tail_patterns(products: Sequence[str], tails: Sequence[str], most: int = 1) -> list[Pattern]:
    """A product and `most` of the tails, or fewer."""
    return [_chain(products, tails, count) for count in range(most, 0, -1)]


def _chain(
    products: Sequence[str], tails: Sequence[str], count: int, added: bool = False
) -> Pattern:
    pattern = Pattern()
    last = pattern.node(products, name="product")
    if added:
        addition = pattern.node("Add", where=has_constant, name="addition")
        pattern.edge(last, addition)
        last = addition
    for number in range(count):
        tail = pattern.node(tails, where=has_constant, name=f"tail {number}")
        pattern.edge(last, tail)
        last = tail
    pattern.results = [(last, 0)]
    return pattern


def after_addition(tails: Sequence[str], most: int = 1) -> list[Pattern]:
    """A MatMul, the Add of its bias, and `most` of the tails, or fewer."""
    return [_chain(("MatMul",), tails, count, added=True) for count in range(most, 0, -1)]


def has_constant(op: NodeOp) -> bool:
    """Whether a node reads a constant."""
    return any(constant_tensor(value) is not None for value in op.operands)


@dataclass(frozen=True)
class WeightFold(RulePass):
    """A pass that folds the tails of products. Nodes of its patterns are called as here."""

    PATTERNS: ClassVar[tuple[Pattern, ...]]

    max_bytes: int | None = MAX_BYTES
    """Larger results must not take more memory than what they are made of; None: they may."""

    def configured(self, options: PassOptions) -> Self:
        """With `fold.maxBytes`; none if `export.grow`."""
        return replace(self, max_bytes=None if options["export.grow"] else options["fold.maxBytes"])

    @property
    def transform(self) -> Transform:
        """The rule."""
        return _rule(type(self), self.max_bytes)


@functools.cache
def _rule(kind: type[WeightFold], max_bytes: int | None) -> Transform:
    def condition(match: Match) -> bool:
        return _can_fold(match, max_bytes)

    return built_in(kind.name, kind.PATTERNS, _fold, condition)


def _can_fold(match: Match, max_bytes: int | None) -> bool:
    nodes = {node.name: match.op(node) for node in match.pattern.nodes}
    product = product_of(nodes["product"], nodes.get("addition"))
    if isinstance(product, str):
        return match.refuse(product)
    affines: list[Affine] = []
    channels = product.channels
    for tail in (op for name, op in nodes.items() if name.startswith("tail")):
        found = affine_of(tail, channels)
        if isinstance(found, str):
            return match.refuse(found)
        affines.append(found)
        channels = replace(channels, value=tail.results[0])
    if nodes["product"].op_type == "MatMul" and product.bias is None and affines[0].is_sum:
        # The sum is the bias already.
        return False
    dying = dying_constants(match)
    size = _size(product, affines)
    written = max_bytes is not None and product.weights.is_splat and not _stays_splat(affines)
    if written and size > SPLAT_BYTES:
        return match.refuse(f"weights that are one number would be written out, in {size} bytes")
    problem = growth(size, dying, max_bytes)
    if problem is not None:
        return match.refuse(problem)
    weights, bias = _folded(product, affines)
    if not (is_finite(weights) and (bias is None or is_finite(bias))):
        return match.refuse("the folded weights are not finite")
    match.notes.update(product=product, weights=weights, bias=bias)
    return True


def _fold(build: RuleBuilder, match: Match) -> SSAValue:
    product: Product = match.notes["product"]
    return product.made(build, match.notes["weights"], match.notes["bias"])


def dying_constants(match: Match) -> Iterable[TensorAttr]:
    """The constants that nothing but a match reads."""
    inside = set(match.nodes)
    for value in match.inputs:
        tensor = constant_tensor(value)
        if tensor is not None and all(use.operation in inside for use in value.uses):
            yield tensor


def _stays_splat(affines: Sequence[Affine]) -> bool:
    """Whether weights that are one number are so when they are folded."""
    return all(is_uniform(affine.factor) for affine in affines)


def _size(product: Product, affines: Sequence[Affine]) -> int:
    """Stored bytes of the new weights and bias."""
    array, bias = product.weights.array, product.bias
    count = 1 if product.weights.is_splat and _stays_splat(affines) else array.size
    if bias is not None or any(affine.shifts for affine in affines):
        parts = [part for a in affines for part in (a.factor, a.before, a.after)]
        parts += [] if bias is None else [bias]
        count += 1 if all(map(is_uniform, parts)) else product.channels.count
    return array.itemsize * count


def _folded(product: Product, affines: Sequence[Affine]) -> tuple[Array, Array | None]:
    count, dtype = product.channels.count, product.weights.array.dtype
    factor: Floats = np.ones(1)
    bias = product.bias
    if bias is None and any(a.shifts for a in affines):
        bias = np.zeros(1)
    with np.errstate(all="ignore"):
        for affine in affines:
            factor = factor * affine.factor
            bias = None if bias is None else affine.of_bias(bias)
        weights = scaled(product.weights, product.spread(np.broadcast_to(factor, (count,))))
        rounded = None if bias is None else _rounded(bias, (count,), dtype)
    return weights, rounded


def _rounded(numbers: Floats, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Numbers in a type; a splat if all are one."""
    if is_uniform(numbers):
        return splat(numbers.flat[0].astype(dtype), shape, dtype)
    return np.broadcast_to(numbers.astype(dtype), shape)


def scaled(weights: Tensor, factor: Floats) -> Array:
    """Weights times factors in float64, rounded once; a splat stays one if the factors are."""
    array = weights.array
    if weights.is_splat and is_uniform(factor):
        value = array.flat[0].astype(np.float64) * factor.flat[0]
        return splat(value.astype(array.dtype), array.shape, array.dtype)
    return (array.astype(np.float64) * factor).astype(array.dtype)


def is_uniform(array: Array) -> bool:
    """Whether all elements are the same."""
    return array.size > 0 and bool((array == array.flat[0]).all())


def is_finite(array: Array) -> bool:
    """Whether all elements are finite; of a splat one is looked at."""
    seen = array.reshape(-1)[:1] if array.size and not any(array.strides) else array
    return bool(np.isfinite(seen).all())
