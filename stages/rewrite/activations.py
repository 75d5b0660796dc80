"""Activations that a fused operator can apply to its result, read from the nodes that are them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from foldline.dialects.fused import FUSED_DOMAIN
from foldline.dialects.onnx.math import ClipOp
from foldline.dialects.onnx.op import NodeOp, OnnxOp
from foldline.stages.replacing import is_parametric


@dataclass(frozen=True)
class Activation:
    """What stands in `activation` and `activation_params` of a fused operator."""

    name: str
    params: tuple[float, ...] = ()


def activation_of(op: NodeOp) -> Activation | str:
    """The activation that a node of ACTIVATION_OPERATORS is, or why it is none."""
    read = _READERS.get((op.domain, op.op_type))
    if read is None or not isinstance(op, OnnxOp):
        return f"{op.op_type} is no activation of fused operators"
    if is_parametric(op):
        return f"the attributes of {op.op_type} are given by the callers of the function"
    params = read(op)
    return params if isinstance(params, str) else Activation(op.op_type, params)


class IsActivation:
    """The predicate that a node is an activation; it says why one is not."""

    def __call__(self, op: NodeOp) -> bool:
        """Whether it is."""
        return self.complaint(op) is None

    def complaint(self, op: NodeOp) -> str | None:
        """Why it is not."""
        found = activation_of(op)
        return found if isinstance(found, str) else None


def _attributes(*names: str) -> Callable[[OnnxOp], tuple[float, ...]]:
    def read(op: OnnxOp) -> tuple[float, ...]:
        values: list[Any] = [op.value_of(name) for name in names]
        return tuple(float(value) for value in values)

    return read


def _gelu(op: OnnxOp) -> tuple[float, ...]:
    return (float(op.value_of("approximate") == "tanh"),)


def _clip(op: OnnxOp) -> tuple[float, ...] | str:
    bounds = op.bounds() if isinstance(op, ClipOp) else None
    if bounds is None:
        return "the bounds of Clip are not constants of one element"
    low = -math.inf if bounds.minimum is None else float(bounds.minimum)
    high = math.inf if bounds.maximum is None else float(bounds.maximum)
    for bound in (low, high):
        if not np.isnan(bound) and float(np.float32(bound)) != bound:
            return f"Clip has the bound {bound}, which no attribute can hold"
    return low, high


_READERS: Mapping[tuple[str, str], Callable[[OnnxOp], tuple[float, ...] | str]] = {
    ("", "Clip"): _clip,
    ("", "Gelu"): _gelu,
    ("", "HardSigmoid"): _attributes("alpha", "beta"),
    ("", "HardSwish"): _attributes(),
    ("", "LeakyRelu"): _attributes("alpha"),
    ("", "Relu"): _attributes(),
    ("", "Sigmoid"): _attributes(),
    ("", "Swish"): _attributes("alpha"),
    ("", "Tanh"): _attributes(),
    (FUSED_DOMAIN, "Gelu"): _gelu,
    (FUSED_DOMAIN, "HardSwish"): _attributes(),
    (FUSED_DOMAIN, "Swish"): _attributes("alpha"),
}

ACTIVATION_OPERATORS = tuple(f"{domain}::{name}".removeprefix("::") for domain, name in _READERS)
"""The operators that can be activations, as patterns name them."""
