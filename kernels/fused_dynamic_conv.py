"""Convolutions of float32 in 8-bit integers: the input is quantised by its range.

    codes, x_scale, x_zero_point = DynamicQuantizeLinear(X)
    Y = ConvIntegerToFloat(codes, W, x_zero_point, w_zero_point, x_scale w_scale, b, bias)

Both are the kernels of these operators, so the bits are theirs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from foldline.kernels.dynamic_quantisation import dynamic_quantize_linear
from foldline.kernels.exact_bits import canonical
from foldline.kernels.exact_quantisation import dynamic_quantize_linear as exactly_quantised
from foldline.kernels.fused_integer_conv import (
    conv_integer_to_float,
    conv_integer_to_float_reference,
    exact_conv_integer_to_float,
)
from foldline.kernels.quantisation import dynamic_quantize_linear as quantised_by_parts
from foldline.kernels.registry import Array, Operand, Step, kernel, maker

DOMAIN = "foldline"


def _listing(function: Callable[..., Any], like: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, whose signature has the keywords of `like`, as the registry reads them."""
    own = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    listed = inspect.signature(like).parameters.values()
    window = [p for p in listed if p.kind is p.KEYWORD_ONLY and p.name != "out"]
    cast(Any, function).__signature__ = inspect.Signature([*own, *window])
    return function


def _plain(
    quantise: Callable[[Array], tuple[Array, Array, Array]],
    scaled: Callable[[Array], Array],
    conv: Callable[..., Array],
) -> Callable[..., Array]:
    """A kernel that runs one operator after the other."""

    def run(
        x: Array,
        w: Array,
        w_zero_point: Array | None,
        w_scale: Array,
        b: Array | None = None,
        bias: Array | None = None,
        **window: Any,
    ) -> Array:
        codes, scale, zero = quantise(x)
        factor = scaled(np.asarray(scale * w_scale))
        return conv(codes, w, zero, w_zero_point, factor, b, bias, **window)

    return _listing(run, conv)


def _fast(
    x: Operand,
    w: Operand,
    w_zero_point: Operand | None,
    w_scale: Operand,
    b: Operand | None = None,
    bias: Operand | None = None,
    *,
    out: Array | None = None,
    **window: Any,
) -> Step:
    """DynamicQuantizeConv: the plan of the convolution is made once."""
    codes, zero = Operand(x.shape, np.dtype(np.uint8)), Operand((), np.dtype(np.uint8))
    factor = Operand(w_scale.shape, w_scale.dtype)
    step = conv_integer_to_float(codes, w, zero, w_zero_point, factor, b, bias, **window)

    def run(
        x: Array,
        w: Array,
        w_zero_point: Array | None,
        w_scale: Array,
        b: Array | None = None,
        bias: Array | None = None,
        **memory: Array,
    ) -> Array:
        codes, scale, zero = dynamic_quantize_linear(x)
        factor = np.asarray(scale * w_scale)
        return step.run(codes, w, zero, w_zero_point, factor, b, bias, **memory)

    return Step(run, step.scratch_bytes)


_REGISTERED = (
    kernel("DynamicQuantizeConv", domain=DOMAIN)(
        _plain(quantised_by_parts, lambda scale: scale, conv_integer_to_float_reference)
    ),
    kernel("DynamicQuantizeConv", domain=DOMAIN, grade="exact")(
        _plain(exactly_quantised, canonical, exact_conv_integer_to_float)
    ),
    maker("DynamicQuantizeConv", domain=DOMAIN)(_listing(_fast, conv_integer_to_float)),
)
