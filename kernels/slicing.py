"""Operators that cut a tensor into parts: Slice, Split, Compress."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from foldline.kernels.arguments import ints
from foldline.kernels.registry import Array, kernel


@kernel("Slice", until=10, view=True, exact=True)
def slice_by_attribute(
    data: Array,
    *,
    starts: Sequence[int],
    ends: Sequence[int],
    axes: Sequence[int] | None = None,
) -> Array:
    """Slice 1–9: `starts`, `ends` and `axes` are attributes, every step is 1."""
    return _sliced(data, starts, ends, axes, None)


@kernel("Slice", since=10, view=True, exact=True)
def slice_(
    data: Array,
    starts: Array,
    ends: Array,
    axes: Array | None = None,
    steps: Array | None = None,
) -> Array:
    """Slice 10+: any dtype; negative positions count from the end, all are clamped.

    Raises ValueError for a step of 0, AxisError for an axis that does not exist.
    """
    return _sliced(
        data,
        ints(starts),
        ints(ends),
        None if axes is None else ints(axes),
        None if steps is None else ints(steps),
    )


@kernel("Split", until=2, view=True, exact=True)
def split_1(
    data: Array,
    lengths: Array | None = None,
    /,
    *,
    axis: int | None = None,
    split: Sequence[int] | None = None,
    output_count: int,
) -> tuple[Array, ...]:
    """Split 1: lengths are an input, an attribute, or equal; `axis` defaults to 0."""
    given = split if lengths is None else ints(lengths)
    return split_along(data, 0 if axis is None else axis, given, output_count)


@kernel("Split", since=2, until=13, view=True, exact=True)
def split_by_attribute(
    data: Array, *, axis: int = 0, split: Sequence[int] | None = None, output_count: int
) -> tuple[Array, ...]:
    """Split 2–12: lengths are an attribute; without it all parts are equal."""
    return split_along(data, axis, split, output_count)


@kernel("Split", since=13, view=True, exact=True)
def split(
    data: Array,
    split: Array | None = None,
    *,
    axis: int = 0,
    num_outputs: int | None = None,
    output_count: int,
) -> tuple[Array, ...]:
    """Split 13+: lengths are an input; without it the parts are equal, the last one smaller.

    Raises ValueError when the lengths do not add up to the size of `axis`.
    """
    lengths = None if split is None else ints(split)
    return split_along(data, axis, lengths, num_outputs or output_count)


@kernel("Compress", exact=True)
def compress(data: Array, condition: Array, *, axis: int | None = None) -> Array:
    """Compress 9+: slices along `axis`, or elements in C order, where `condition` is true.

    A short `condition` drops the rest; IndexError when a true entry lies beyond the end.
    """
    return np.compress(condition, data, axis)


def split_along(
    data: Array, axis: int, lengths: Sequence[int] | None, count: int
) -> tuple[Array, ...]:
    """Views of consecutive parts of `axis`: of the `lengths` given, or `count` equal ones."""
    axis = normalize_axis_index(axis, data.ndim)
    size = data.shape[axis]
    if lengths is None:
        part = -(-size // count)
        edges = [min(i * part, size) for i in range(count + 1)]
    else:
        edges = list(accumulate(lengths, initial=0))
    if edges[-1] != size or min(lengths or (0,)) < 0:
        raise ValueError(
            f"cannot split axis {axis} of size {size} into parts of {tuple(lengths or ())}"
        )
    before = (slice(None),) * axis
    return tuple(data[(*before, slice(start, end))] for start, end in pairwise(edges))


def _sliced(
    data: Array,
    starts: Sequence[int],
    ends: Sequence[int],
    axes: Sequence[int] | None,
    steps: Sequence[int] | None,
) -> Array:
    window = [slice(None)] * data.ndim
    axes = range(len(starts)) if axes is None else axes
    steps = (1,) * len(starts) if steps is None else steps
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        axis = normalize_axis_index(axis, data.ndim)
        window[axis] = _clamped(start, end, step, data.shape[axis])
    return data[(*window, ...)]


def _clamped(start: int, end: int, step: int, size: int) -> slice:
    """ONNX's slice as Python's; they differ where a backward slice starts before the axis."""
    if step >= 0:
        return slice(start, end, step)
    start, end = (at + size if at < 0 else at for at in (start, end))
    start = min(max(start, 0), size - 1)
    return slice(start, end if end >= 0 else None, step)
