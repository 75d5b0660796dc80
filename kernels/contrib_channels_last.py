"""Windows of 8-bit integers with the channels last: NhwcMaxPool and QLinearConv.

Domain com.microsoft; version 1 of each operator.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from foldline.kernels.pooling import max_pool
from foldline.kernels.quantised_conv import qlinear_conv
from foldline.kernels.registry import Array, Operand, Step, maker

DOMAIN = "com.microsoft"


@maker("QLinearConv", domain=DOMAIN)
def qlinear_conv_channels_last(
    x: Operand,
    x_scale: Operand,
    x_zero_point: Operand,
    w: Operand,
    w_scale: Operand,
    w_zero_point: Operand,
    y_scale: Operand,
    y_zero_point: Operand,
    b: Operand | None = None,
    *,
    auto_pad: str = "NOTSET",
    channels_last: int = 0,
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Step:
    """QLinearConv: that of ONNX; with `channels_last` those of `x` and the result are.

    `w` is as in ONNX, `(maps, channels, *window)`.
    """
    step = qlinear_conv(
        _channels_second(x) if channels_last else x,
        x_scale,
        x_zero_point,
        w,
        w_scale,
        w_zero_point,
        y_scale,
        y_zero_point,
        b,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )
    return _moved(step) if channels_last else step


@maker("NhwcMaxPool", domain=DOMAIN)
def nhwc_max_pool(
    x: Operand,
    *,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Step:
    """NhwcMaxPool: MaxPool of ONNX with the channels last."""
    step = max_pool(
        _channels_second(x),
        kernel_shape=kernel_shape,
        auto_pad=auto_pad,
        ceil_mode=ceil_mode,
        dilations=dilations,
        pads=pads,
        strides=strides,
    )
    return _moved(step)


def _channels_second(x: Operand) -> Operand:
    return Operand((x.shape[0], x.shape[-1], *x.shape[1:-1]), x.dtype)


def _moved(step: Step) -> Step:
    """The step for an input and a result with the channels last."""

    def run(x: Array, *others: Array | None, **scratch: Array) -> Array:
        y = step.run(np.ascontiguousarray(np.moveaxis(x, -1, 1)), *others, **scratch)
        return np.ascontiguousarray(np.moveaxis(y, 1, -1))

    return Step(run, step.scratch_bytes)
