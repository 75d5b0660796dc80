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
from foldline.kernels.channels_last import is_channels_last, pixels
from foldline.kernels.col2im import (
    conv_transpose,
    conv_transpose_reference,
    conv_transpose_step,
    image_window,
)
from foldline.kernels.conv import conv, conv_reference, conv_step, conv_window
from foldline.kernels.conv_finish import (
    Finish,
    bound_finish,
    done,
    finish_all,
    finisher,
    halves_finisher,
    round_part,
)
from foldline.kernels.epilogue import exactly_activated
from foldline.kernels.exact_bits import canonical
from foldline.kernels.precision import NARROW
from foldline.kernels.registry import Array, Operand, Step, computes_in_single, kernel, maker

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


def _fast(
    function: Function, finishing: Callable[..., tuple[Shape, Step]], of_halves: bool = False
) -> Function:
    """A maker; `finishing` gives the shape of the product and a step that finishes its parts.

    `of_halves`: for float16 held in float32, so what an operator hands to the next is rounded.
    """

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
        finish = (
            halves_finisher(activation, activation_params)
            if of_halves and activation
            else finisher(activation, activation_params, x.dtype)
        )
        if x.dtype in NARROW:
            # A narrow product is rounded as a whole first.
            (shape, _), step = finishing(x, w, done, **window), function(x, w, b, **window)
        elif z is None:
            shape, step = finishing(x, w, finish, **window)
            finish = done
        else:
            # So are sums, which may be broadcast.
            shape, step = finishing(x, w, round_part if of_halves else done, **window)

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

        bound = step.bind

        def bind_sum(
            x: Array, w: Array, b: Array | None, z: Array, *, out: Array, **scratch: Array
        ) -> Callable[[], object]:
            if bound is None or not _lie_alike(z, out):
                return lambda: run(x, w, b, z, out=out, **scratch)
            convolve = bound(x, w, b, out=out, **scratch)
            finished = bound_finish(out, finish, z)

            def compute() -> None:
                convolve()
                finished()

            return compute

        if z is None:
            bind = bound if finish is done else None
        else:
            bind = bind_sum if bound is not None and z.shape == shape else None
        return Step(run, step.scratch_bytes, step.channels_last, bind)

    return _listing(fused, function)


def _lie_alike(z: Array, out: Array) -> bool:
    """Whether both are contiguous in the same order, so that they can be seen as one run each."""
    if is_channels_last(out):
        return bool(pixels(z).flags.c_contiguous)
    return z.flags.c_contiguous and out.flags.c_contiguous


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
    _fused = computes_in_single(_fast(_maker, _finishing), _fast(_maker, _finishing, True))
    maker(_op_type, domain=DOMAIN, any_order=_op_type == "Conv")(_fused)
    kernel(_op_type, domain=DOMAIN, grade="exact")(_exact(_exactly))
