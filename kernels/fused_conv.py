"""Conv and ConvTranspose with what follows them: something that is added, and an activation.

    Y = activation(Conv(X, W, B) + Z)

A convolution is computed by the function that serves the operator alone, in the same parts; the sum
and the activation are those of the single operators. So the bits are the same.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from foldline.kernels import exact_conv
from foldline.kernels.col2im import (
    conv_transpose,
    conv_transpose_reference,
    conv_transpose_step,
    image_window,
)
from foldline.kernels.conv import conv, conv_reference, conv_step, conv_window
from foldline.kernels.conv_finish import Finish, done, finish_all, finisher
from foldline.kernels.epilogue import exactly_activated
from foldline.kernels.exact_bits import canonical
from foldline.kernels.precision import NARROW
from foldline.kernels.registry import Array, Operand, Step, kernel, maker

DOMAIN = "foldline"

Function: TypeAlias = Callable[..., Any]
Shape: TypeAlias = tuple[int, ...]


def _listing(fused: Function, function: Function) -> Function:
    """`fused`, whose signature lists what it hands on to `function`, as the registry reads it."""
    own = [p for p in inspect.signature(fused).parameters.values() if p.kind is not p.VAR_KEYWORD]
    listed = inspect.signature(function).parameters.values()
    window = [p for p in listed if p.kind is p.KEYWORD_ONLY and p.name != "out"]
    cast(Any, fused).__signature__ = inspect.Signature([*own, *window])
    return fused


def _plain(function: Function) -> Function:
    """A kernel that runs one operator after the other."""

    def fused(
        x: Array,
        w: Array,
        b: Array | None = None,
        z: Array | None = None,
        *,
        activation: str = "",
        activation_params: Sequence[float] = (),
        **window: Any,
    ) -> Array:
        y = function(x, w, b, **window)
        total = np.ascontiguousarray(y if z is None else np.add(y, z))
        finish_all(total, finisher(activation, activation_params, y.dtype))
        return total

    return _listing(fused, function)


def _exact(function: Function) -> Function:
    """The same with exact kernels."""

    def fused(
        x: Array,
        w: Array,
        b: Array | None = None,
        z: Array | None = None,
        *,
        activation: str = "",
        activation_params: Sequence[float] = (),
        **window: Any,
    ) -> Array:
        y = function(x, w, b, **window)
        total = y if z is None else canonical(np.asarray(np.add(y, z)))
        return exactly_activated(total, activation, activation_params)

    return _listing(fused, function)


def _fast(function: Function, finishing: Callable[..., tuple[Shape, Step]]) -> Function:
    """A maker; `finishing` gives the shape of the product and a step that finishes its parts."""

    def fused(
        x: Operand,
        w: Operand,
        b: Operand | None = None,
        z: Operand | None = None,
        *,
        activation: str = "",
        activation_params: Sequence[float] = (),
        out: Array | None = None,
        **window: Any,
    ) -> Step:
        finish = finisher(activation, activation_params, x.dtype)
        if z is None and x.dtype not in NARROW:
            shape, step = finishing(x, w, finish, **window)
            finish = done
        else:
            # A narrow product is rounded as a whole first; so are sums, which may be broadcast.
            (shape, _), step = finishing(x, w, done, **window), function(x, w, b, **window)

        def run(
            x: Array,
            w: Array,
            b: Array | None = None,
            z: Array | None = None,
            *,
            out: Array | None = None,
            **scratch: Array,
        ) -> Array:
            if z is None or z.shape == shape:
                y = step.run(x, w, b, out=out, **scratch)
                finish_all(y, finish, z)
            else:
                y = np.asarray(np.add(step.run(x, w, b, **scratch), z, out=out))
                finish_all(y, finish)
            return y

        is_finished = z is None and finish is done
        bind = step.bind if is_finished else None
        return Step(run, step.scratch_bytes, step.channels_last, bind)

    return _listing(fused, function)


def _conv(
    x: Operand,
    w: Operand,
    finish: Finish,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> tuple[Shape, Step]:
    window = conv_window(x.shape, w.shape, kernel_shape, strides, dilations, pads, auto_pad)
    return (x.shape[0], w.shape[0], *window.output), conv_step(x, w, group, window, finish)


def _conv_transpose(
    x: Operand,
    w: Operand,
    finish: Finish,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    output_padding: Sequence[int] | None = None,
    output_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> tuple[Shape, Step]:
    window = image_window(
        x.shape, w.shape, auto_pad, dilations, output_padding, output_shape, pads, strides
    )
    shape = (x.shape[0], group * w.shape[1], *window.spatial)
    return shape, conv_transpose_step(x, w, group, window, finish)


for _op_type, _reference, _maker, _finishing, _exactly in (
    ("Conv", conv_reference, conv, _conv, exact_conv.conv),
    (
        "ConvTranspose",
        conv_transpose_reference,
        conv_transpose,
        _conv_transpose,
        exact_conv.conv_transpose,
    ),
):
    kernel(_op_type, domain=DOMAIN)(_plain(_reference))
    maker(_op_type, domain=DOMAIN, any_order=_op_type == "Conv")(_fast(_maker, _finishing))
    kernel(_op_type, domain=DOMAIN, grade="exact")(_exact(_exactly))
