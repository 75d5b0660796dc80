"""Products that ONNX Runtime fuses with what surrounds them: FusedConv, FusedGemm, FusedMatMul.

Domain com.microsoft; version 1 of each operator.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from foldline.kernels.activation import (
    hard_sigmoid,
    hard_swish,
    leaky_relu,
    relu,
    sigmoid,
    softplus,
    softsign,
    thresholded_relu,
)
from foldline.kernels.conv import conv
from foldline.kernels.exponential_units import elu, selu
from foldline.kernels.matmul import gemm, matmul
from foldline.kernels.precision import widening_maker
from foldline.kernels.registry import Array, Operand, Step, maker
from foldline.kernels.ufuncs import clip, constant

DOMAIN = "com.microsoft"


def _clip(x: Array, *, low: float = -math.inf, high: float = math.inf) -> Array:
    return np.asarray(clip(x, constant(low, x.dtype), constant(high, x.dtype)))


@dataclass(frozen=True)
class _Activation:
    """A function of an array, and its parameters in the order that they are given in."""

    function: Callable[..., Array]
    parameters: tuple[str, ...] = ()


_ACTIVATIONS: Mapping[str, _Activation] = {
    "Clip": _Activation(_clip, ("low", "high")),
    "Elu": _Activation(elu, ("alpha",)),
    "HardSigmoid": _Activation(hard_sigmoid, ("alpha", "beta")),
    "HardSwish": _Activation(hard_swish),
    "LeakyRelu": _Activation(leaky_relu, ("alpha",)),
    "Relu": _Activation(relu),
    "Selu": _Activation(selu, ("alpha", "gamma")),
    "Sigmoid": _Activation(sigmoid),
    "Softplus": _Activation(softplus),
    "Softsign": _Activation(softsign),
    "Tanh": _Activation(np.tanh),
    "ThresholdedRelu": _Activation(thresholded_relu, ("alpha",)),
}


def _activation(name: str, given: Sequence[float]) -> Callable[[Array], None]:
    """The named function, to be applied in place; `given` are its first parameters.

    ValueError for an unknown name.
    """
    if not name:
        return lambda x: None
    found = _ACTIVATIONS.get(name)
    if found is None:
        raise ValueError(f"unknown activation {name!r}, expected one of {sorted(_ACTIVATIONS)}")
    keywords = dict(zip(found.parameters, given, strict=False))

    def apply(x: Array) -> None:
        np.copyto(x, found.function(x, **keywords))

    return apply


@maker("FusedConv", domain=DOMAIN)
@widening_maker
def fused_conv(
    x: Operand,
    w: Operand,
    b: Operand | None = None,
    z: Operand | None = None,
    *,
    activation: str = "",
    activation_params: Sequence[float] = (),
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    out: Array | None = None,
) -> Step:
    """FusedConv: `activation(Conv(x, w, b) + z)`, with Conv as in ONNX."""
    step = conv(
        x,
        w,
        b,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )
    activate = _activation(activation, activation_params)

    def run(
        x: Array,
        w: Array,
        b: Array | None = None,
        z: Array | None = None,
        *,
        out: Array | None = None,
        **scratch: Array,
    ) -> Array:
        y = step.run(x, w, b, out=out, **scratch)
        if z is not None:
            np.add(y, z, out=y)
        activate(y)
        return y

    return Step(run, step.scratch_bytes)


@maker("FusedGemm", domain=DOMAIN)
@widening_maker
def fused_gemm(
    a: Operand,
    b: Operand,
    c: Operand | None = None,
    *,
    activation: str = "",
    activation_alpha: float | None = None,
    activation_beta: float | None = None,
    activation_gamma: float | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    out: Array | None = None,
) -> Callable[..., Array]:
    """FusedGemm: `activation(Gemm(a, b, c))`, with Gemm as in ONNX."""
    product = gemm(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
    parameters = (activation_alpha, activation_beta, activation_gamma)
    activate = _activation(activation, [p for p in parameters if p is not None])

    def run(a: Array, b: Array, c: Array | None = None, *, out: Array | None = None) -> Array:
        y = product(a, b, c, out=out)
        activate(y)
        return y

    return run


@maker("FusedMatMul", domain=DOMAIN)
@widening_maker
def fused_matmul(
    a: Operand,
    b: Operand,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    transBatchA: int = 0,
    transBatchB: int = 0,
    out: Array | None = None,
) -> Callable[..., Array]:
    """FusedMatMul: `alpha * MatMul(a', b')`.

    With `transBatchA` the first axis of `a` moves to the last but one, then with `transA` its
    last two axes are swapped, and likewise for `b`. A vector stays as it is.
    """
    seen_a = seen_order(len(a.shape), transBatchA, transA)
    seen_b = seen_order(len(b.shape), transBatchB, transB)
    product = matmul(_viewed(a, seen_a), _viewed(b, seen_b))

    def run(a: Array, b: Array, *, out: Array | None = None) -> Array:
        y = product(a.transpose(seen_a), b.transpose(seen_b), out=out)
        if alpha != 1.0:
            y = np.multiply(y, y.dtype.type(alpha), out=y if y.ndim else None)
        return np.asarray(y)

    return run


@maker("TransposeMatMul", domain=DOMAIN)
def transpose_matmul(
    a: Operand,
    b: Operand,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    out: Array | None = None,
) -> Callable[..., Array] | Step:
    """TransposeMatMul: what FusedMatMul was called before it had more attributes."""
    return fused_matmul(a, b, alpha=alpha, transA=transA, transB=transB)


def seen_order(rank: int, batch: int, last: int) -> tuple[int, ...]:
    """The order in which to see the axes of a factor."""
    axes = list(range(rank))
    if len(axes) < 2:
        return tuple(axes)
    if batch:
        axes.insert(len(axes) - 2, axes.pop(0))
    if last:
        axes[-2:] = reversed(axes[-2:])
    return tuple(axes)


def _viewed(x: Operand, order: Sequence[int]) -> Operand:
    value = None if x.value is None else x.value.transpose(order)
    return Operand(tuple(x.shape[axis] for axis in order), x.dtype, value)
