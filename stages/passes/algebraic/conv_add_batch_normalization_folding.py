"""conv-add-batch-normalization-folding: fold a BatchNormalization into the Conv and Add before it.

    BatchNormalization(Add(Conv(x, W, b), A), gamma, beta, mean, var)
        ->   Add(Conv(x, W g, (b - mean) g + beta), A g)

with `g = gamma / sqrt(var + epsilon)`, all in float64 and rounded once. Requires constants of the
type of the weights, inference mode, and a Conv and an Add that nothing else reads. Last bits move,
as the products are rounded in another place. Left alone: parameters that would not be finite, a
variance that has no root, an addend that differs in more than it did once it has channels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from foldline.dialects.onnx.nn import BatchNormalizationOp, ConvOp
from foldline.dialects.onnx.tensor import Array, Tensor, splat
from foldline.stages.passes.algebraic._common import (
    ConstantMakingPass,
    fits,
    float_tensor,
    growth,
    is_finite,
    refusal_at,
    rounded,
    widened,
)
from foldline.stages.passes.algebraic._views import CHANNELS
from foldline.stages.passes.algebraic.conv_channel_affine_folding import scaled
from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.rule_pass import RulePass, built_in
from foldline.stages.rewrite.transform import Condition, Transform
from foldline.support.passes import PASSES

PARAMETERS = ("scale", "shift", "mean", "variance")
NAME = "conv-add-batch-normalization-folding"

Tensors: TypeAlias = "dict[str, Tensor | None]"
"""The constants of a match by name; None for a bias that is absent."""


def _pattern() -> Pattern:
    pattern = Pattern()
    conv = pattern.node("Conv", name="conv")
    add = pattern.node("Add", name="add")
    norm = pattern.node("BatchNormalization", name="norm")
    pattern.edge(conv, add, 0)
    pattern.edge(add, norm, 0)
    pattern.constant(add, 1, name="A")
    pattern.constant(conv, 1, name="W")
    for place, name in enumerate(PARAMETERS, 1):
        pattern.constant(norm, place, name=name)
    pattern.results = [(norm, 0)]
    return pattern


def _condition(max_bytes: int | None) -> Condition:
    def can_fold(match: Match) -> bool:
        problem = _problem(match, max_bytes)
        return True if problem is None else match.refuse(problem)

    return can_fold


def _problem(match: Match, max_bytes: int | None) -> str | None:
    """Why a match stays; what takes its place is noted otherwise."""
    conv, norm = match.op("conv"), match.op("norm")
    assert isinstance(conv, ConvOp)
    assert isinstance(norm, BatchNormalizationOp)
    if norm.trains():
        return "the BatchNormalization trains"
    if norm.int_of("spatial") == 0:
        return "the BatchNormalization has parameters for each place"
    if (problem := refusal_at(conv, 7)) is not None:
        return problem
    tensors = {name: float_tensor(match.value(name)) for name in ("W", "A", *PARAMETERS)}
    tensors["bias"] = float_tensor(conv.B)
    if conv.B is not None and tensors["bias"] is None:
        return "the bias of the Conv is not constant"
    weights = tensors["W"]
    given = [tensor for tensor in tensors.values() if tensor is not None]
    if weights is None or len(given) < len(tensors) - (conv.B is None):
        return "not all constants are floats"
    if any(tensor.array.dtype != weights.array.dtype for tensor in given):
        return "the constants are not all of one type"
    if (problem := _misfit(match, conv, tensors)) is not None:
        return problem
    factor = _factor(norm, tensors)
    if isinstance(factor, str):
        return factor
    size = _stored(tensors, factor, match.notes["rank"])
    if (problem := growth(size, given, max_bytes)) is not None:
        return problem
    made = _folded(tensors, factor, match.notes["rank"])
    if not all(map(is_finite, made)):
        return "the folded parameters are not finite"
    match.notes["made"] = made
    return None


def _misfit(match: Match, conv: ConvOp, tensors: dict[str, Tensor | None]) -> str | None:
    """Why constants are not of the shapes that the channels of the Conv ask for."""
    weights, addend = tensors["W"], tensors["A"]
    assert weights is not None
    assert addend is not None
    dims = match.knowledge.dims(conv.results[0])
    if dims is None or len(dims) <= CHANNELS or weights.array.ndim == 0:
        return "the rank of the Conv is not known"
    channels = dims[CHANNELS].value
    if channels is None or channels != len(weights.array):
        return f"the weights make {len(weights.array)} channels, the Conv {dims[CHANNELS]}"
    for name in (*PARAMETERS, "bias"):
        tensor = tensors[name]
        if tensor is not None and tensor.array.shape != (channels,):
            return f"{name} of shape {list(tensor.array.shape)} is not one number a channel"
    if not fits(addend.array.shape, dims):
        return f"an addend of shape {list(addend.array.shape)} may make the sum larger"
    match.notes["rank"] = len(dims)
    return None


def _factor(norm: BatchNormalizationOp, tensors: Tensors) -> Array | str:
    """What each channel is multiplied by, or why there is no such number."""
    scale, variance = _wide(tensors, "scale"), _wide(tensors, "variance")
    epsilon: Any = norm.attribute_values()["epsilon"]
    spread = variance + epsilon
    if epsilon < 0 or not (np.isfinite(spread).all() and (spread > 0).all()):
        return f"variance and epsilon {epsilon:.3g} do not add up to positive numbers"
    return scale / np.sqrt(spread)


def _folded(tensors: Tensors, factor: Array, rank: int) -> tuple[Array, Array, Array]:
    """Weights, bias and addend, computed in float64 and rounded once."""
    weights, addend = tensors["W"], tensors["A"]
    assert weights is not None
    assert addend is not None
    before = np.zeros_like(factor) if tensors["bias"] is None else _wide(tensors, "bias")
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        bias = (before - _wide(tensors, "mean")) * factor + _wide(tensors, "shift")
        exact = (scaled(weights, factor), bias, _on_channels(addend, factor, rank))
        weights, bias, addend = (rounded(array, weights.array.dtype) for array in exact)
    return weights, bias, addend


def _wide(tensors: Tensors, name: str) -> Array:
    tensor = tensors[name]
    assert tensor is not None
    return tensor.array.astype(np.float64)


def _on_channels(addend: Tensor, factor: Array, rank: int) -> Array:
    """An addend with a factor for each channel; it keeps its shape if the factors are equal."""
    array = widened(addend)
    if (factor == factor[0]).all():
        if addend.is_splat:
            return splat(array.flat[0] * factor[0], array.shape, np.float64)
        return np.asarray(array * factor[0])
    return array * factor.reshape(-1, *[1] * (rank - CHANNELS - 1))


def _stored(tensors: Tensors, factor: Array, rank: int) -> int:
    """The bytes that the new constants will take, found before they are made."""
    weights, addend = tensors["W"], tensors["A"]
    assert weights is not None
    assert addend is not None
    width, channels = weights.array.itemsize, len(factor)
    if (factor == factor[0]).all():
        return weights.stored_bytes + width * channels + addend.stored_bytes
    shape = np.broadcast_shapes(addend.array.shape, (channels, *[1] * (rank - CHANNELS - 1)))
    return width * (weights.array.size + channels + math.prod(shape))


def _fold(build: RuleBuilder, match: Match) -> SSAValue:
    conv = match.op("conv")
    assert isinstance(conv, ConvOp)
    weights, bias, addend = (build.constant(array) for array in match.notes["made"])
    return build.op("Add", build.like(conv, [conv.X, weights, bias]), addend)


@cache
def _transform(max_bytes: int | None) -> Transform:
    return built_in(NAME, _pattern(), _fold, _condition(max_bytes))


@dataclass(frozen=True)
class ConvAddBatchNormalizationFolding(ConstantMakingPass, RulePass):
    """Fold BatchNormalization into Conv and Add."""

    name = NAME
    INFO: ClassVar = PASSES[NAME]

    @property
    def transform(self) -> Transform:
        """The rule."""
        return _transform(self.max_bytes)
