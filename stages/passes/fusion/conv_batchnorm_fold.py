"""conv-batchnorm-fold: fold a BatchNormalization into the Conv before it.

    BatchNormalization(Conv(x, W, b), gamma, beta, mean, var)
        ->   Conv(x, W s, (b - mean) s + beta)

with `s = gamma / sqrt(var + epsilon)`, all in float64 and rounded once to the type of the weights.
Requires constants, inference mode, and a Conv that nothing else reads. Weights that the fold would
make infinite are left alone. Last bits move, as the product is rounded in another place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from xdsl.ir import SSAValue

from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.nn import BatchNormalizationOp, ConvOp
from foldline.dialects.onnx.tensor import Array
from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.rule_pass import RulePass, built_in
from foldline.stages.rewrite.transform import Transform
from foldline.support.passes import PASSES

PARAMETERS = ("scale", "shift", "mean", "variance")


def _pattern() -> Pattern:
    pattern = Pattern()
    conv = pattern.node("Conv", name="conv")
    norm = pattern.node("BatchNormalization", name="norm")
    pattern.edge(conv, norm, 0)
    pattern.constant(conv, 1, _is_float, name="W", label="a float constant")
    for place, name in enumerate(PARAMETERS, 1):
        pattern.constant(norm, place, name=name)
    pattern.results = [(norm, 0)]
    return pattern


def _is_float(array: Array) -> bool:
    return array.dtype == np.float32 or array.dtype == np.float64


def _can_fold(match: Match) -> bool:
    conv, norm = match.op("conv"), match.op("norm")
    assert isinstance(norm, BatchNormalizationOp)
    if norm.trains():
        return match.refuse("the BatchNormalization trains")
    if conv.operand(2) is not None and _constant(conv.operand(2)) is None:
        return match.refuse("the bias of the Conv is not constant")
    weights, bias = _folded(match)
    if not (np.isfinite(weights).all() and np.isfinite(bias).all()):
        return match.refuse("the folded weights are not finite")
    match.notes.update(weights=weights, bias=bias)
    return True


def _folded(match: Match) -> tuple[Array, Array]:
    """Weights and bias, computed in float64 and rounded once."""
    W = match.constant("W")
    assert W is not None
    given = [match.constant(name) for name in PARAMETERS]
    scale, shift, mean, variance = (np.asarray(a, np.float64) for a in given)
    epsilon: Any = match.op("norm").attribute_values()["epsilon"]
    factor = scale / np.sqrt(variance + epsilon)
    before = _constant(match.op("conv").operand(2))
    bias = np.zeros(len(W)) if before is None else before.astype(np.float64)
    with np.errstate(over="ignore"):
        folded = W.astype(np.float64) * factor.reshape(-1, *[1] * (W.ndim - 1))
        return folded.astype(W.dtype), ((bias - mean) * factor + shift).astype(W.dtype)


def _fold(build: RuleBuilder, match: Match) -> SSAValue:
    conv = match.op("conv")
    assert isinstance(conv, ConvOp)
    weights, bias = build.constant(match.notes["weights"]), build.constant(match.notes["bias"])
    return build.like(conv, [conv.X, weights, bias])


def _constant(value: SSAValue | None) -> Array | None:
    tensor = None if value is None else constant_tensor(value)
    return None if tensor is None else tensor.array


TRANSFORM = built_in("conv-batchnorm-fold", _pattern(), _fold, _can_fold)


@dataclass(frozen=True)
class ConvBatchnormFold(RulePass):
    """Fold BatchNormalization into Conv."""

    name = "conv-batchnorm-fold"
    INFO: ClassVar = PASSES["conv-batchnorm-fold"]

    @property
    def transform(self) -> Transform:
        """The rule."""
        return TRANSFORM
