"""Operators that give the same elements another shape: views, and the shape itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from foldline.kernels.arguments import ints
from foldline.kernels.registry import Array, kernel


@kernel("Reshape", until=5, view=True, exact=True)
def reshape_by_attribute(
    data: Array,
    *,
    shape: Sequence[int] | None = None,
    consumed_inputs: Sequence[int] | None = None,
) -> Array:
    """Reshape 1: the target shape is an attribute; without it the result is a scalar."""
    return data.reshape(_target_shape(data.shape, () if shape is None else shape, False))


@kernel("Reshape", since=5, view=True, exact=True)
def reshape(data: Array, shape: Array, *, allowzero: int = 0) -> Array:
    """Reshape 5+: any dtype; -1 is inferred, 0 copies the dimension unless `allowzero`.

    Raises ValueError when the number of elements differs, IndexError when a copied dimension
    does not exist.
    """
    return data.reshape(_target_shape(data.shape, ints(shape), bool(allowzero)))


@kernel("Flatten", view=True, exact=True)
def flatten(data: Array, *, axis: int = 1) -> Array:
    """Flatten 1+: a matrix whose rows run over the axes before `axis`, columns over the rest."""
    return data.reshape(math.prod(data.shape[:axis]), math.prod(data.shape[axis:]))


@kernel("Squeeze", until=13, view=True, exact=True)
def squeeze_by_attribute(data: Array, *, axes: Sequence[int] | None = None) -> Array:
    """Squeeze 1–12: drop `axes`, which must have size 1, or every axis of size 1."""
    return data.squeeze(None if axes is None else tuple(axes))


@kernel("Squeeze", since=13, view=True, exact=True)
def squeeze(data: Array, axes: Array | None = None) -> Array:
    """Squeeze 13+: as before with `axes` an input; an empty one drops nothing."""
    return data.squeeze(None if axes is None else ints(axes))


@kernel("Unsqueeze", until=13, view=True, exact=True)
def unsqueeze_by_attribute(data: Array, *, axes: Sequence[int]) -> Array:
    """Unsqueeze 1–12: insert axes of size 1 at the positions `axes` of the result."""
    return _with_axes(data, tuple(axes))


@kernel("Unsqueeze", since=13, view=True, exact=True)
def unsqueeze(data: Array, axes: Array) -> Array:
    """Unsqueeze 13+: as before with `axes` an input; a repeated axis raises ValueError."""
    return _with_axes(data, ints(axes))


@kernel("Transpose", view=True, exact=True)
def transpose(data: Array, *, perm: Sequence[int] | None = None) -> Array:
    """Transpose 1+: axis i of the result is axis `perm[i]` of `data`; default reverses them."""
    return data.transpose(perm)


@kernel("Expand", view=True, exact=True)
def expand(data: Array, shape: Array) -> Array:
    """Expand 8+: broadcast `data` and `shape` against each other; the result is read-only."""
    return np.broadcast_to(data, np.broadcast_shapes(data.shape, ints(shape)))


@kernel("Shape", exact=True)
def shape_of(data: Array, *, start: int = 0, end: int | None = None) -> Array:
    """Shape 1+: int64 vector of the dimensions; `start` and `end` slice it as in Python."""
    return np.array(data.shape[start:end], np.int64)


@kernel("Size", exact=True)
def size_of(data: Array) -> Array:
    """Size 1+: int64 scalar, the number of elements."""
    return np.array(data.size, np.int64)


def _with_axes(data: Array, axes: tuple[int, ...]) -> Array:
    """`np.expand_dims` in a sixth of its time."""
    return data.reshape(_shape_with(data.shape, axes))


@lru_cache(maxsize=1024)
def _shape_with(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    rank = len(shape) + len(axes)
    places = {normalize_axis_index(axis, rank) for axis in axes}
    if len(places) < len(axes):
        raise ValueError(f"repeated axis in {axes}")
    sizes = iter(shape)
    return tuple(1 if place in places else next(sizes) for place in range(rank))


def _target_shape(
    shape: tuple[int, ...], wanted: Sequence[int], zero_is_size: bool
) -> tuple[int, ...]:
    """`wanted` without its 0 and -1.

    The dimensions copied by a 0 are left out when -1 is inferred, so that a batch of size zero
    can be flattened: (0, 4, 5) to [0, -1] is (0, 20).
    """
    copied = [] if zero_is_size else [axis for axis, size in enumerate(wanted) if size == 0]
    target = list(wanted)
    for axis in copied:
        target[axis] = shape[axis]
    if -1 in target and 0 in shape:
        unknown = target.index(-1)
        elements = math.prod(size for axis, size in enumerate(shape) if axis not in copied)
        known = math.prod(
            size for axis, size in enumerate(target) if axis not in copied and axis != unknown
        )
        if known and elements % known == 0:
            target[unknown] = elements // known
    return tuple(target)
