"""Exact sums of products of 8-bit integers, by float32 BLAS.

    (a - a_zero) @ (b - b_zero)  =  sum, over blocks of K, of float32 products

A float32 holds every integer up to 2^24, so a sum of products is exact, in whatever order it is
taken, as long as the absolute values of its terms add up to no more. K is cut into blocks for
which types and constants prove that; the blocks are added as int32, which wraps as ONNX allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from foldline.kernels.conv import conv
from foldline.kernels.matmul import matrix_product
from foldline.kernels.registry import Array, Operand, Step
from foldline.kernels.windows import even_spans

EXACT_SUM = 1 << 24
"""Every integer up to here is a float32."""

Spans = list[tuple[int, int]]


def centred(x: Array, zero: Array | None) -> Array:
    """`x - zero` as float32; both of 8 bits."""
    if zero is None or not zero.any():
        return x.astype(np.float32)
    return np.subtract(x, zero, dtype=np.float32)


def row_zero(zero: Array | None) -> Array | None:
    """Zero points of the left factor in a shape that broadcasts: a vector has one for each row."""
    return zero[:, None] if zero is not None and zero.ndim == 1 and zero.size > 1 else zero


def map_zero(zero: Array | None, rank: int) -> Array | None:
    """Zero points of convolution weights in a shape that broadcasts: one, or one for each map."""
    return zero if zero is None or zero.size == 1 else zero.reshape(-1, *(1,) * (rank - 1))


def exact_matmul(
    a: Operand, b: Operand, a_zero: Operand | None, b_zero: Operand | None
) -> Callable[[Array, Array, Array | None, Array | None], Array]:
    """The way to compute the int32 product of (a, b, a_zero, b_zero), as numpy.matmul has it.

    Zero points broadcast to their factor, except that a vector for `a` has one for each row.
    """
    k = a.shape[-1]
    kept = _constant(b, b_zero)
    flat = len(b.shape) == 2
    spans = _spans(k, _largest(a, a_zero), _largest(b, b_zero), kept if flat else None)
    assert spans is not None, "two bytes multiply to less than EXACT_SUM"
    rows, n = math.prod(a.shape[:-1]), b.shape[-1]
    multiply = matrix_product(rows, k, n)

    def product(a: Array, b: Array) -> Array:
        if not flat:
            return np.asarray(np.matmul(a, b))
        result = np.empty((rows, n), np.float32)
        multiply(a, b, result)
        return result

    def run(a: Array, b: Array, a_zero: Array | None, b_zero: Array | None) -> Array:
        left = centred(a, row_zero(a_zero))
        shape = (*left.shape[:-1], n)
        left = left.reshape(rows, k) if flat else left
        right = kept if kept is not None else centred(b, b_zero)
        total = _sum(product(left[..., i:j], _rows(right, i, j)) for i, j in spans)
        return total.reshape(shape) if flat else total

    return run


def _rows(matrix: Array, start: int, stop: int) -> Array:
    return matrix[start:stop] if matrix.ndim == 1 else matrix[..., start:stop, :]


def exact_conv(
    x: Operand,
    w: Operand,
    x_zero: Operand | None,
    w_zero: Operand | None,
    *,
    auto_pad: str,
    dilations: Sequence[int] | None,
    group: int,
    kernel_shape: Sequence[int] | None,
    pads: Sequence[int] | None,
    strides: Sequence[int] | None,
) -> Step:
    """The way to compute the int32 convolution of (x, w, x_zero, w_zero), padded with `x_zero`.

    Blocks are of channels. Where they cannot be, that is for a long sum in several groups or
    under a huge window, one product in float64 is exact. ValueError when shapes do not fit.
    """
    if x.shape[1] != group * w.shape[1]:
        raise ValueError(f"x {x.shape} and w {w.shape} do not fit together with group={group}")
    kept = _constant(w, w_zero, len(w.shape))
    taps = math.prod(w.shape[2:])
    sizes = None if kept is None else np.abs(kept).reshape(*kept.shape[:2], taps).sum(axis=2).T
    spans = _spans(w.shape[1], _largest(x, x_zero), _largest(w, w_zero) * taps, sizes)
    dtype = np.dtype(np.float32)
    if spans is None or (group > 1 and len(spans) > 1):
        spans, dtype = [(0, w.shape[1])], np.dtype(np.float64)
        kept = None if kept is None else kept.astype(dtype)

    def step(start: int, stop: int) -> Step:
        return conv(
            Operand((x.shape[0], group * (stop - start), *x.shape[2:]), dtype),
            Operand((w.shape[0], stop - start, *w.shape[2:]), dtype),
            auto_pad=auto_pad,
            dilations=dilations,
            group=group,
            kernel_shape=kernel_shape,
            pads=pads,
            strides=strides,
        )

    steps = [step(start, stop) for start, stop in spans]

    def run(
        x: Array,
        w: Array,
        x_zero: Array | None,
        w_zero: Array | None,
        scratch: Array | None = None,
    ) -> Array:
        inputs = centred(x, x_zero).astype(dtype, copy=False)
        weights = kept
        if weights is None:
            weights = centred(w, map_zero(w_zero, w.ndim)).astype(dtype, copy=False)

        def part(step: Step, span: tuple[int, int]) -> Array:
            keywords = {"scratch": scratch} if step.scratch_bytes else {}
            if len(spans) == 1:
                return step.run(inputs, weights, **keywords)
            some = slice(*span)
            channels = np.ascontiguousarray(inputs[:, some])
            return step.run(channels, np.ascontiguousarray(weights[:, some]), **keywords)

        return _sum(map(part, steps, spans))

    return Step(run, max(step.scratch_bytes for step in steps))


def _sum(parts: Iterable[Array]) -> Array:
    """The sum of arrays of integers, one or more, as int32."""
    # int64 between: a float64 beyond int32 has no defined cast, an int64 wraps.
    wrapped = (p.astype(np.int64) if p.dtype == np.float64 else p for p in parts)
    narrow = (p.astype(np.int32) for p in wrapped)
    total = next(narrow)
    for part in narrow:
        np.add(total, part, out=total)
    return total


def _constant(b: Operand, zero: Operand | None, rank: int | None = None) -> Array | None:
    """The centred right factor, when it and its zero point are constant."""
    if b.value is None or (zero is not None and zero.value is None):
        return None
    point = None if zero is None else zero.value
    return centred(b.value, point if rank is None else map_zero(point, rank))


def _largest(x: Operand, zero: Operand | None) -> int:
    """The greatest absolute value that the centred operand may have."""
    info = np.iinfo(x.dtype)
    points = (0,) if zero is None else (info.min, info.max)
    if zero is not None and zero.value is not None and zero.value.size:
        points = int(zero.value.min()), int(zero.value.max())
    return max(info.max - points[0], points[-1] - info.min)


def _spans(count: int, left: int, right: int, sizes: Array | None) -> Spans | None:
    """Blocks of `range(count)`, one or more, within which sums are exact.

    None when one item is too much for that.

    An item adds at most `left * right`, or, where they are known, `left` times the greatest of
    its `sizes` `(count, n)`, of which absolute values are taken.
    """
    if sizes is None:
        longest = EXACT_SUM // (left * right)
        return (even_spans(count, -(-count // longest)) or [(0, 0)]) if longest else None
    totals = np.zeros((count + 1, sizes.shape[1]))
    np.cumsum(np.abs(sizes), axis=0, out=totals[1:])
    spans: Spans = []
    start = 0
    while start < count:
        reached = (totals[start + 1 :] - totals[start]).max(axis=1, initial=0) * left
        stop = start + int(np.searchsorted(reached, EXACT_SUM, side="right"))
        if stop == start:
            return None
        spans.append((start, stop))
        start = stop
    return spans or [(0, 0)]
