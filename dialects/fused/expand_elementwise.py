"""What the fused activations stand for; no more operators than the fusions replace."""

from __future__ import annotations

import math
from typing import Any

from xdsl.ir import SSAValue

from foldline.dialects.fused.expand_common import scalar
from foldline.dialects.fused.parts import Parts
from foldline.dialects.onnx.op import OnnxOp


def gelu(op: OnnxOp, parts: Parts) -> SSAValue:
    """Gelu: `x (1 + erf(x / sqrt 2)) / 2`, or the form with tanh."""
    return _gelu(op, parts, op.operands[0], op.value_of("approximate"))


def _gelu(op: OnnxOp, parts: Parts, x: SSAValue, approximate: object) -> SSAValue:
    if parts.has("Gelu"):
        return parts.op("Gelu", x, approximate=approximate)
    half, one = scalar(op, parts, 0.5), scalar(op, parts, 1.0)
    if approximate == "tanh":
        bent = parts.Tanh(
            parts.Mul(scalar(op, parts, math.sqrt(2 / math.pi)), _cubic(op, parts, x))
        )
    else:
        bent = parts.Erf(parts.Div(x, scalar(op, parts, math.sqrt(2))))
    return parts.Mul(parts.Mul(x, half), parts.Add(bent, one))


def _cubic(op: OnnxOp, parts: Parts, x: SSAValue) -> SSAValue:
    """`x + 0.044715 x^3`."""
    cube = parts.Pow(x, scalar(op, parts, 3.0))
    return parts.Add(x, parts.Mul(scalar(op, parts, 0.044715), cube))


def swish(op: OnnxOp, parts: Parts) -> SSAValue:
    """Swish: `x Sigmoid(alpha x)`."""
    return _swish(op, parts, op.operands[0], op.value_of("alpha"))


def _swish(op: OnnxOp, parts: Parts, x: SSAValue, alpha: Any) -> SSAValue:
    if parts.has("Swish"):
        return parts.op("Swish", x, alpha=alpha)
    inner = x if alpha == 1 else parts.Mul(x, scalar(op, parts, alpha))
    return parts.Mul(x, parts.Sigmoid(inner))


def hard_swish(op: OnnxOp, parts: Parts) -> SSAValue:
    """HardSwish: `x Clip(x / 6 + 1 / 2, 0, 1)`."""
    return _hard_swish(parts, op.operands[0])


def _hard_swish(parts: Parts, x: SSAValue) -> SSAValue:
    if parts.has("HardSwish"):
        return parts.HardSwish(x)
    return parts.Mul(x, parts.op("HardSigmoid", x, alpha=1 / 6, beta=0.5))


def mish(op: OnnxOp, parts: Parts) -> SSAValue:
    """Mish: `x Tanh(Softplus(x))`."""
    x = op.operands[0]
    if parts.has("Mish"):
        return parts.Mish(x)
    return parts.Mul(x, parts.Tanh(parts.Softplus(x)))


def activated(op: OnnxOp, parts: Parts, value: SSAValue) -> SSAValue:
    """The activation of a fused operator, applied to `value`."""
    name: Any = op.value_of("activation")
    params: Any = op.value_of("activation_params") or ()
    match name:
        case None | "":
            return value
        case "Clip":
            return parts.op("Clip", value, **_bounds(op, parts, *params))
        case "Gelu":
            return _gelu(op, parts, value, "tanh" if any(params) else "none")
        case "HardSwish":
            return _hard_swish(parts, value)
        case "Swish":
            return _swish(op, parts, value, *params)
        case _:
            return parts.op(name, value, **dict(zip(ACTIVATIONS[name], params, strict=True)))


def _bounds(op: OnnxOp, parts: Parts, low: float, high: float) -> dict[str, Any]:
    """The bounds of Clip, attributes below 11; what is infinite does not bound at all."""
    given = {"min": low, "max": high}
    bounds = {k: v for k, v in given.items() if v != (-math.inf if k == "min" else math.inf)}
    if parts.opsets[""] < 11:
        return bounds
    return {k: scalar(op, parts, v) for k, v in bounds.items()}


ACTIVATIONS: dict[str, tuple[str, ...]] = {
    "HardSigmoid": ("alpha", "beta"),
    "LeakyRelu": ("alpha",),
    "Relu": (),
    "Sigmoid": (),
    "Tanh": (),
}
"""Activations that every operator set has, and their attributes in the order of the parameters."""
