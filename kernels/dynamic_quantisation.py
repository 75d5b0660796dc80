"""Quantisation by the range of the data, and what hangs on it: the codes never leave float32.

Scale and zero point are computed as scalars, which cost a tenth of what rank 0 arrays do.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from foldline.kernels.epilogue import Apply
from foldline.kernels.integer_products import ExactMatMul, centred
from foldline.kernels.parallel import parallel_for
from foldline.kernels.quantisation import TILE_ELEMENTS
from foldline.kernels.quantisation import dynamic_quantize_linear as by_its_parts
from foldline.kernels.registry import Array, Operand, kernel
from foldline.kernels.ufuncs import clip
from foldline.kernels.windows import even_spans

MOST_CODE = 255

_BYTE = np.dtype(np.uint8)
_ZERO, _ONE, _MOST = np.float32(0), np.float32(1), np.float32(MOST_CODE)


@kernel("DynamicQuantizeLinear", grade="fast")
def dynamic_quantize_linear(x: Array) -> tuple[Array, Array, Array]:
    """DynamicQuantizeLinear 11, tile by tile; a range that is no number is not its business."""
    found = _range(x)
    if found is None:
        return by_its_parts(x)
    scale, point, has_excess = found
    out = np.empty(x.shape, np.uint8)
    source, target = x.reshape(-1), out.reshape(-1)
    spans = even_spans(x.size, -(-x.size // TILE_ELEMENTS))

    def tile(index: int) -> None:
        span = slice(*spans[index])
        part = _codes(source[span], scale, point, has_excess)
        np.add(part, np.float32(point), out=part)
        np.copyto(target[span], part, casting="unsafe")

    parallel_for(len(spans), tile)
    return out, scale, np.array(point, np.uint8)


def centred_codes(x: Array) -> tuple[Array, Array]:
    """What DynamicQuantizeLinear gives, as `code - zero_point` in float32, and its scale."""
    found = _range(x)
    if found is None:
        codes, scale, zero = by_its_parts(x)
        return centred(codes, zero), scale
    scale, point, has_excess = found
    return _codes(x, scale, point, has_excess), scale


def dynamic_product(x: Operand, b: Operand, b_zero_point: Operand | None) -> Callable[..., Array]:
    """The way to multiply `x`, quantised by its range, with 8-bit integers.

    Takes (x, b, b_zero_point, finish, out): `finish` takes the scale of `x` to what becomes of
    tiles of the integers, in float32.
    """
    product = ExactMatMul(Operand(x.shape, _BYTE), b, Operand((), _BYTE), b_zero_point)

    def run(
        x: Array,
        b: Array,
        b_zero_point: Array | None,
        finish: Callable[[Array], Apply],
        out: Array | None = None,
    ) -> Array:
        left, scale = centred_codes(x)
        return product.floats(left, b, b_zero_point, finish(scale), out)

    return run


def _range(x: Array) -> tuple[Array, int, bool] | None:
    """Scale, zero point, and whether a code may come out as 256; None unless all are finite."""
    if not x.size:
        return None
    flat = x.reshape(-1)
    least = min(np.minimum.reduce(flat), _ZERO)
    greatest = max(np.maximum.reduce(flat), _ZERO)
    scale = (greatest - least) / _MOST if greatest > least else _ONE
    if not 0 < scale < np.inf or least != least:
        return None
    point = min(round(float(-least / scale)), MOST_CODE)
    return np.asarray(scale), point, round(float(greatest / scale)) + point > MOST_CODE


def _codes(x: Array, scale: Array, point: int, has_excess: bool) -> Array:
    """`code - zero_point`; rounding is monotonous, so only the ends may lie beyond the codes."""
    codes = np.divide(x, scale).reshape(x.shape or 1)
    np.rint(codes, codes)
    if has_excess:
        clip(codes, np.array(-point, np.float32), np.array(MOST_CODE - point, np.float32), codes)
    return codes
