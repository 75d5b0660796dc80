"""Conv 1/11/22: any rank, groups, strides, dilations and pads.

Images in one group, and depthwise, are computed with channels innermost, see
`foldline.kernels.conv_channels_last`, `conv_side_by_side`, `conv_winograd` and `conv_depthwise`.
Many short signals in one group are computed together, see `conv_rows`. All else is computed
channels first: a 1x1 window with stride 1 is one matrix product on the input as it lies; any other
window is gathered into columns (im2col) in scratch, a piece at a time, and multiplied by the
weights seen as a matrix. A piece is some groups, some rows of the output, or all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from foldline.kernels.conv_channels_last import channels_last_step, pointwise_step
from foldline.kernels.conv_columns import Case, flat_step, gathering_step
from foldline.kernels.conv_depthwise import depthwise_step
from foldline.kernels.conv_finish import Finish, done
from foldline.kernels.conv_rows import rows_step, suits_rows
from foldline.kernels.conv_side_by_side import positions_together, side_by_side_step
from foldline.kernels.conv_winograd import suits_winograd, winograd_step
from foldline.kernels.precision import widening, widening_maker
from foldline.kernels.registry import Array, Operand, Step, kernel, maker
from foldline.kernels.windows import Window, sliding_window


@kernel("Conv")
@widening
def conv_reference(
    x: Array,
    w: Array,
    b: Array | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Array:
    """Conv 1/11/22: for every tap of the kernel, add its weights times the inputs it sees."""
    window = conv_window(x.shape, w.shape, kernel_shape, strides, dilations, pads, auto_pad)
    weights = w.reshape(group, -1, *w.shape[1:])
    out = np.zeros((x.shape[0], *weights.shape[:2], *window.output), x.dtype)
    for tap in window.taps():
        into, seen = window.hits_of(tap)
        inputs = x[seen]
        inputs = inputs.reshape(x.shape[0], group, weights.shape[2], *inputs.shape[2:])
        out[(slice(None), *into)] += np.einsum(
            "ngc...,gmc->ngm...", inputs, weights[(..., *tap)], optimize=True
        )
    out = out.reshape(x.shape[0], w.shape[0], *window.output)
    return out if b is None else out + b.reshape(-1, *(1,) * window.rank)


@maker("Conv", any_order=True)
@widening_maker
def conv(
    x: Operand,
    w: Operand,
    b: Operand | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    out: Array | None = None,
) -> Step:
    """Conv 1/11/22 as matrix products, if need be of transformed or gathered inputs."""
    window = conv_window(x.shape, w.shape, kernel_shape, strides, dilations, pads, auto_pad)
    return conv_step(x, w, group, window)


def conv_step(
    x: Operand,
    w: Operand,
    group: int,
    window: Window,
    finish: Finish = done,
    direct: bool = False,
) -> Step:
    """How a convolution is computed, whatever is done to the finished parts of its result.

    `direct`: only as sums of products, which are exact for integers where the sums are.
    """
    case = Case.of(x, w, group, window)
    if window.rank == 2 and group == case.channels == case.maps > 1:
        return depthwise_step(x, w, window, finish)
    if window.rank == 2 and group == 1 and not direct:
        if case.is_pointwise:
            return pointwise_step(x, w, finish)
        together = positions_together(case.channels, case.maps, window)
        has_winograd = suits_winograd(case.channels, case.maps, window)
        if together == 1 and not has_winograd:
            return channels_last_step(x, w, window, finish)
        safe = channels_last_step(x, replace(w, value=None), window, finish)
        if has_winograd:
            return winograd_step(x, w, window, finish, safe)
        return side_by_side_step(x, w, window, together, finish, safe)
    if suits_rows(case):
        return rows_step(case, w, finish)
    if case.is_pointwise:
        return flat_step(case, finish)
    return gathering_step(case, finish)


def conv_window(
    x: tuple[int, ...],
    w: tuple[int, ...],
    kernel_shape: Sequence[int] | None,
    strides: Sequence[int] | None,
    dilations: Sequence[int] | None,
    pads: Sequence[int] | None,
    auto_pad: str,
) -> Window:
    if kernel_shape and tuple(kernel_shape) != w[2:]:
        raise ValueError(f"kernel_shape={tuple(kernel_shape)} but the weights have shape {w}")
    return sliding_window(
        x[2:], w[2:], strides=strides, dilations=dilations, pads=pads, auto_pad=auto_pad
    )
