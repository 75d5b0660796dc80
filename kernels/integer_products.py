"""Exact sums of products of 8-bit integers, by float32 BLAS.

    (a - a_zero) @ (b - b_zero)  =  sum, over blocks of K, of float32 products

K is cut into blocks within which sums are exact, see `foldline.kernels.exact_blocks`; the blocks
are added as int32, which wraps as ONNX allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from foldline.kernels.conv import conv_step, conv_window
from foldline.kernels.epilogue import Apply
from foldline.kernels.exact_blocks import EXACT_SUM, exact_spans, largest, most_of
from foldline.kernels.narrow_strips import (
    NarrowProduct,
    NarrowStrips,
    narrow_strips,
    suits_narrow_strips,
)
from foldline.kernels.registry import Array, Operand, Step, aligned_bytes
from foldline.kernels.strips import StripProduct, Strips, suits_strips
from foldline.kernels.tiled_products import matrix_product
from foldline.kernels.windows import aligned_size, scratch_view

_ZERO = np.float32(0)


def centred(x: Array, zero: Array | None) -> Array:
    """`x - zero` as float32; both of 8 bits."""
    return centre(x, zero, np.empty(x.shape, np.float32))


def centre(x: Array, zero: Array | None, out: Array) -> Array:
    """`x - zero` in `out`, of floats; both of 8 bits."""
    np.copyto(out, x)
    if zero is not None and zero.any():
        np.subtract(out, zero.astype(out.dtype), out=out)
    return out


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
    return ExactMatMul(a, b, a_zero, b_zero).integers


class ExactMatMul:
    """The way to compute products of 8-bit integers of given shapes, see `exact_matmul`."""

    def __init__(self, a: Operand, b: Operand, a_zero: Operand | None, b_zero: Operand | None):
        k, n = a.shape[-1], b.shape[-1]
        self._is_flat = len(b.shape) == 2
        constant = None
        if b.value is not None and (b_zero is None or b_zero.value is not None):
            constant = b.value, None if b_zero is None else b_zero.value
        known = constant if self._is_flat else None
        sides = largest(a, a_zero), largest(b, b_zero)
        spans = exact_spans(k, *sides, *(known or ()))
        assert spans is not None, "two bytes multiply to less than EXACT_SUM"
        self._spans = spans
        self._rows, self._k, self._n = math.prod(a.shape[:-1]), k, n
        self._strips: Sequence[Array | Strips | NarrowStrips] | None = None
        self._kept: Array | None = None
        self._multiply: Callable[..., None] = matrix_product(self._rows, k, n)
        if known is not None and suits_narrow_strips(self._rows, k, n):
            self._strips = [narrow_strips(*known, *span) for span in spans]
            self._multiply = NarrowProduct(self._rows, k, n)
        elif known is not None and suits_strips(self._rows, k, n):
            kept = centred(*known)
            self._strips = [Strips(kept[slice(*span)]) for span in spans]
            self._multiply = StripProduct(self._rows, k, n)
        elif constant is not None:
            # At the start of a cache line, where a row times it takes less time.
            memory = aligned_bytes(4 * math.prod(b.shape)).view(np.float32)
            self._kept = centre(*constant, memory.reshape(b.shape))

    @property
    def factor(self) -> Array | None:
        """The whole constant right factor in float32, if it is held so and one product is exact."""
        return self._kept if self._is_flat and len(self._spans) == 1 else None

    def integers(self, a: Array, b: Array, a_zero: Array | None, b_zero: Array | None) -> Array:
        """The product as int32."""
        left = centred(a, row_zero(a_zero))
        return self._shaped(left, _sum(self._parts(left, b, b_zero)))

    def floats(
        self,
        left: Array,
        b: Array,
        b_zero: Array | None,
        apply: Apply | None = None,
        out: Array | None = None,
    ) -> Array:
        """The product as int32, rounded to float32; `left` is what `centred` makes of `a`.

        `apply` is called for tiles of it, as `foldline.kernels.epilogue` says.
        """
        if self._is_flat and len(self._spans) == 1:
            shape = self._rows, self._n
            into = np.empty(shape, np.float32) if out is None else out.reshape(shape)
            (right,) = self._rights(b, b_zero)
            self._multiply(left.reshape(self._rows, self._k), right, into, _positive(apply))
            return self._shaped(left, into)
        result = _sum(self._parts(left, b, b_zero)).astype(np.float32)
        flat = result.reshape(self._rows, -1) if self._is_flat else result.reshape(-1, self._n)
        if apply is not None and result.size:
            apply(flat, 0, 0, *flat.shape)
        return self._shaped(left, result)

    def _parts(self, left: Array, b: Array, b_zero: Array | None) -> Iterator[Array]:
        if not self._is_flat:
            right = self._right(b, b_zero)
            for start, stop in self._spans:
                yield np.asarray(np.matmul(left[..., start:stop], _rows(right, start, stop)))
            return
        left = left.reshape(self._rows, self._k)
        for (start, stop), right in zip(self._spans, self._rights(b, b_zero), strict=True):
            result = np.empty((self._rows, self._n), np.float32)
            self._multiply(left[:, start:stop], right, result)
            yield result

    def _rights(self, b: Array, b_zero: Array | None) -> Sequence[Array | Strips | NarrowStrips]:
        """The blocks of the right factor, as `_multiply` wants them."""
        if self._strips is not None:
            return self._strips
        right = self._right(b, b_zero)
        return [right[start:stop] for start, stop in self._spans]

    def _right(self, b: Array, b_zero: Array | None) -> Array:
        return self._kept if self._kept is not None else centred(b, b_zero)

    def _shaped(self, left: Array, result: Array) -> Array:
        return result.reshape(*left.shape[:-1], self._n) if self._is_flat else result


def _positive(apply: Apply | None) -> Apply:
    """`apply`, after a product of float32 has become one of integers, which have no -0."""

    def finish(tile: Array, row0: int, col0: int, rows: int, cols: int) -> None:
        np.add(tile, _ZERO, out=tile)
        if apply is not None:
            apply(tile, row0, col0, rows, cols)

    return finish


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
    headroom: int | None = None,
) -> Step:
    """The way to compute the int32 convolution of (x, w, x_zero, w_zero), padded with `x_zero`.

    With `headroom` it is float32, where every result stays exact with so much added to it: in
    `out`, which may be given for float32 results only, or in scratch.

    Blocks are of channels. Where they cannot be, that is for a long sum in several groups or
    under a huge window, one product in float64 is exact. ValueError when shapes do not fit.
    """
    if x.shape[1] != group * w.shape[1]:
        raise ValueError(f"x {x.shape} and w {w.shape} do not fit together with group={group}")
    kept = _constant(w, w_zero, len(w.shape))
    taps = math.prod(w.shape[2:])
    sizes = None if kept is None else np.abs(kept).reshape(*kept.shape[:2], taps).sum(axis=2).T
    sides = largest(x, x_zero), largest(w, w_zero) * taps
    spans = exact_spans(w.shape[1], *sides, sizes)
    as_float = headroom is not None and (most_of(w.shape[1], *sides, sizes) + headroom <= EXACT_SUM)
    dtype = np.dtype(np.float32)
    if spans is None or (group > 1 and len(spans) > 1):
        spans, dtype = [(0, w.shape[1])], np.dtype(np.float64)
        kept = None if kept is None else kept.astype(dtype)

    window = conv_window(x.shape, w.shape, kernel_shape, strides, dilations, pads, auto_pad)

    def step(start: int, stop: int) -> Step:
        return conv_step(
            Operand((x.shape[0], group * (stop - start), *x.shape[2:]), dtype),
            Operand((w.shape[0], stop - start, *w.shape[2:]), dtype),
            group,
            window,
            direct=True,
        )

    steps = [step(start, stop) for start, stop in spans]
    shape = (x.shape[0], w.shape[0], *window.output)
    inputs_at = aligned_size((max(step.scratch_bytes for step in steps),), 1)
    result_at = inputs_at + aligned_size(x.shape, dtype.itemsize)

    def run(
        x: Array,
        w: Array,
        x_zero: Array | None,
        w_zero: Array | None,
        scratch: Array,
        out: Array | None = None,
    ) -> Array:
        inputs = scratch_view(scratch, inputs_at, x.shape, dtype)
        result = scratch_view(scratch, result_at, shape, dtype) if out is None else out
        centre(x, x_zero, inputs)
        weights = kept
        if weights is None:
            weights = centred(w, map_zero(w_zero, w.ndim)).astype(dtype, copy=False)

        def part(step: Step, span: tuple[int, int]) -> Array:
            keywords = {"scratch": scratch} if step.scratch_bytes else {}
            if len(spans) == 1:
                return step.run(inputs, weights, out=result, **keywords)
            some = slice(*span)
            channels = np.ascontiguousarray(inputs[:, some])
            filters = np.ascontiguousarray(weights[:, some])
            return step.run(channels, filters, out=result, **keywords)

        parts = map(part, steps, spans)
        return next(parts) if as_float else _sum(parts)

    return Step(run, result_at + aligned_size(shape, dtype.itemsize))


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
