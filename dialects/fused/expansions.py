"""What fused operators stand for: the standard operators that files get in their place.

An expansion is also the definition of its operator: kernels are tested against it. Where the
model's operator set has the operator itself (Gelu from 20 on), that is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import Operation, SSAValue

from foldline.dialects.fused.parts import Parts
from foldline.dialects.fused.signatures import FUSED_DOMAIN
from foldline.dialects.onnx.op import NodeOp, OnnxOp, opset_versions
from foldline.dialects.onnx.types import element_of, element_type

Expansion: TypeAlias = Callable[[OnnxOp, Parts], Any]
"""Makes the parts of an operator; gives its results."""


def is_fused(op: Operation) -> bool:
    """Whether an operation is one of the fused dialect."""
    return isinstance(op, NodeOp) and op.domain == FUSED_DOMAIN


def parts_of(op: OnnxOp) -> tuple[list[Operation], tuple[SSAValue, ...]]:
    """The standard operators that a fused one stands for, and what takes its results' place."""
    parts = Parts(opset_versions(op))
    made = EXPANSIONS[op.op_type](op, parts)
    return parts.made, made if isinstance(made, tuple) else (made,)


def scalar(op: OnnxOp, parts: Parts, value: float) -> SSAValue:
    """A constant of the element type of the first input."""
    attribute = element_type(op.operands[0].type)
    element = None if attribute is None else element_of(attribute)
    assert element is not None
    return parts.constant(np.array(value, element.numpy))


def activated(op: OnnxOp, parts: Parts, value: SSAValue) -> SSAValue:
    """The activation of a fused operator, applied to `value`."""
    name: Any = op.value_of("activation")
    if not name:
        return value
    params: Any = op.value_of("activation_params") or ()
    if name == "Clip":
        low, high = (scalar(op, parts, p) for p in params)
        return parts.op("Clip", value, min=low, max=high)
    return parts.op(name, value, **dict(zip(ACTIVATIONS[name], params, strict=True)))


ACTIVATIONS: dict[str, tuple[str, ...]] = {
    "Clip": ("min", "max"),
    "HardSigmoid": ("alpha", "beta"),
    "HardSwish": (),
    "LeakyRelu": ("alpha",),
    "Relu": (),
    "Sigmoid": (),
    "Tanh": (),
}
"""What may be applied to the result of a fused operator, and what its parameters are called."""


def _gelu(op: OnnxOp, parts: Parts) -> SSAValue:
    x = op.operands[0]
    if parts.has("Gelu"):
        return parts.op("Gelu", x, approximate=op.value_of("approximate"))
    half, one = scalar(op, parts, 0.5), scalar(op, parts, 1.0)
    if op.value_of("approximate") == "tanh":
        cube = parts.Mul(x, parts.Mul(x, x))
        inner = parts.Add(x, parts.Mul(scalar(op, parts, 0.044715), cube))
        bent = parts.Tanh(parts.Mul(scalar(op, parts, math.sqrt(2 / math.pi)), inner))
    else:
        bent = parts.Erf(parts.Div(x, scalar(op, parts, math.sqrt(2))))
    return parts.Mul(parts.Mul(x, parts.Add(bent, one)), half)


EXPANSIONS: dict[str, Expansion] = {
    "Gelu": _gelu,
}
