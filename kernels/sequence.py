"""Operators on sequences (Python lists of arrays) and optionals (a value or None).

A list is never changed once made; operators that return one share its arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from foldline.kernels.arguments import ints
from foldline.kernels.registry import Array, kernel
from foldline.kernels.slicing import split_along


@kernel("SequenceEmpty", exact=True)
def sequence_empty(*, dtype: int | None = None) -> list[Array]:
    """SequenceEmpty 11: no elements; `dtype` is a fact of the type only."""
    return []


@kernel("SequenceConstruct", exact=True)
def sequence_construct(*inputs: Array) -> list[Array]:
    """SequenceConstruct 11: copies of the inputs, in order."""
    return [tensor.copy() for tensor in inputs]


@kernel("SequenceAt", view=True, exact=True)
def sequence_at(sequence: list[Array], position: Array) -> Array:
    """SequenceAt 11: the element at `position` in [-n, n - 1], else IndexError."""
    return sequence[_position(position, len(sequence), len(sequence) - 1)]


@kernel("SequenceInsert", view=True, exact=True)
def sequence_insert(
    sequence: list[Array], tensor: Array, position: Array | None = None
) -> list[Array]:
    """SequenceInsert 11: with a copy of `tensor` before `position` in [-n, n], default n."""
    n = len(sequence)
    at = n if position is None else _position(position, n, n)
    return [*sequence[:at], tensor.copy(), *sequence[at:]]


@kernel("SequenceErase", view=True, exact=True)
def sequence_erase(sequence: list[Array], position: Array | None = None) -> list[Array]:
    """SequenceErase 11: without the element at `position`, by default the last one."""
    n = len(sequence)
    at = _position(np.array(-1) if position is None else position, n, n - 1)
    return sequence[:at] + sequence[at + 1 :]


@kernel("SequenceLength", exact=True)
def sequence_length(sequence: list[Array]) -> Array:
    """SequenceLength 11: int64 scalar, the number of elements."""
    return np.array(len(sequence), np.int64)


@kernel("ConcatFromSequence", exact=True)
def concat_from_sequence(
    sequence: list[Array], *, axis: int, new_axis: int = 0, out: Array | None = None
) -> Array:
    """ConcatFromSequence 11: the elements joined along `axis`, a new one if `new_axis`."""
    return (np.stack if new_axis else np.concatenate)(sequence, axis, out=out)


@kernel("SplitToSequence", view=True, exact=True)
def split_to_sequence(
    data: Array, split: Array | None = None, *, axis: int = 0, keepdims: int = 1
) -> list[Array]:
    """SplitToSequence 11+: consecutive parts of `axis`.

    `split` is a scalar, the size of all parts but the last, or a vector of sizes. Without it
    the parts have size 1, and `keepdims=0` drops the axis.
    """
    size = data.shape[axis]
    if split is not None and split.ndim:
        return list(split_along(data, axis, ints(split), size))
    part = 1 if split is None else int(split.item())
    lengths = [min(part, size - start) for start in range(0, size, part)]
    parts = split_along(data, axis, lengths, len(lengths)) if lengths else ()
    if split is None and not keepdims:
        return [one.squeeze(axis) for one in parts]
    return list(parts)


@kernel("Optional", view=True, exact=True)
def optional(value: Any = None, *, type: Any = None) -> Any:
    """Optional 15+: the tensor or sequence, or None, which is an empty optional."""
    return value


@kernel("OptionalGetElement", view=True, exact=True)
def optional_get_element(value: Any) -> Any:
    """OptionalGetElement 15+: what the optional holds; ValueError when it is empty."""
    if value is None:
        raise ValueError("OptionalGetElement: the optional is empty")
    return value


@kernel("OptionalHasElement", exact=True)
def optional_has_element(value: Any = None) -> Array:
    """OptionalHasElement 15+: bool scalar, false for an empty or absent optional."""
    return np.array(value is not None)


def _position(position: Array, length: int, last: int) -> int:
    at = int(position.item())
    if not -length <= at <= last:
        raise IndexError(f"position {at} is out of bounds for a sequence of {length}")
    return at + length if at < 0 else at
