"""What is done to finished parts of a convolution's result: an activation is applied.

A convolution calls `finish(part)` once for each part of its result, when that is finished, on the
thread that computed it. Parts do not overlap, hang on shapes and dtypes alone, and are written in
place. The activation is the operator's own kernel, whose loops give an element the same bits
wherever it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

from foldline.kernels.channels_last import is_channels_last, pixels
from foldline.kernels.epilogue import Activation, activation_of, activation_of_halves, in_place
from foldline.kernels.half import onto_halves
from foldline.kernels.parallel import parallel_for
from foldline.kernels.registry import Array

Finish: TypeAlias = Callable[[Array], None]

SPAN_ELEMENTS = 64 << 10
"""Of a result that is finished as a whole: what is done at once."""
CHUNK_BYTES = 256 << 10
"""So much of a part goes through all steps of an activation at a time, to stay in cache."""


NARROW = 128
"""Rows of fewer columns are too short for an addition each: that takes 2 to 3 times as long."""
LEAST_BIASED = 8 << 10
"""Elements that are worth the views."""
WIDE = 8 << 10
"""Columns from which on NumPy does not copy the bias to a buffer row by row: a third less time."""
LEAST_WIDE = 48 << 10
"""Elements that are worth a bias of so many columns."""


def add_bias(part: Array, bias: Array) -> None:
    """Add one element a column to a matrix, on many rows at once."""
    columns = part.shape[1]
    if part.flags.c_contiguous and (
        part.size >= LEAST_WIDE or (columns < NARROW and part.size >= LEAST_BIASED)
    ):
        together = -(-(WIDE if part.size >= LEAST_WIDE else 2 * NARROW) // columns)
        whole = len(part) // together * together
        wide = np.empty((together, columns), part.dtype)
        np.copyto(wide, bias)
        many = part[:whole].reshape(-1, together * columns)
        np.add(many, wide.reshape(-1), many)
        part = part[whole:]
    np.add(part, bias, part)


def done(part: Array) -> None:
    """Leave a part as it is."""


def finisher(activation: str, params: Sequence[float], dtype: np.dtype[np.generic]) -> Finish:
    """What applies an activation in place. ValueError for one that is not known."""
    if not activation:
        return done
    straight = in_place(activation, params, dtype)
    return _in_chunks(straight or _one_part(activation_of(activation, params, dtype)))


def round_part(part: Array) -> None:
    """Round to float16 what is held in float32."""
    onto_halves(part, part)


def halves_finisher(activation: str, params: Sequence[float]) -> Finish:
    """What rounds to float16 what is held in float32, and applies an activation to that."""
    apply = _in_chunks(_one_part(activation_of_halves(activation, params)))

    def finish(part: Array) -> None:
        round_part(part)
        apply(part)

    return finish


def _in_chunks(applied: Callable[[Array], object]) -> Finish:
    """What applies an activation to some of a part at a time."""

    def finish(part: Array) -> None:
        if part.nbytes <= CHUNK_BYTES or part.ndim < 2:
            applied(part)
        elif len(part) == 1:
            finish(part[0])
        else:
            row_bytes = part.nbytes // len(part)
            step = max(1, CHUNK_BYTES // row_bytes)
            for start in range(0, len(part), step):
                applied(part[start : start + step])

    return finish


def _one_part(apply: Activation) -> Callable[[Array], object]:
    def applied(part: Array) -> None:
        before = part if apply.inplace else part.copy()
        if apply.inplace or part.flags.c_contiguous:
            apply.run(before, out=part)
        else:
            # Many steps in short rows cost more than one copy: half as much again for Gelu.
            np.copyto(part, apply.run(before, out=np.empty_like(before)))

    return applied


def finish_all(result: Array, finish: Finish, added: Array | None = None) -> None:
    """Finish a result that lies in one piece, some elements at a time.

    `added`, of the shape of the result, is added before. Which one of two NaNs such a sum is hangs
    on where NumPy's vectors begin, as in any Add.
    """
    bound_finish(result, finish, added)()


def bound_finish(result: Array, finish: Finish, added: Array | None) -> Callable[[], object]:
    """What does the same to arrays that will not move."""
    if finish is done and added is None:
        return _nothing
    if is_channels_last(result):
        result, added = pixels(result), None if added is None else pixels(added)
    flat = result.reshape(-1)
    other = None if added is None else np.ascontiguousarray(added).reshape(-1)
    places = [slice(n, n + SPAN_ELEMENTS) for n in range(0, flat.size, SPAN_ELEMENTS)]
    spans = [(flat[place], None if other is None else other[place]) for place in places]

    def span(index: int) -> None:
        part, terms = spans[index]
        if terms is not None:
            np.add(part, terms, part)
        finish(part)

    return partial(span, 0) if len(spans) == 1 else partial(parallel_for, len(spans), span)


def _nothing() -> None:
    """There is nothing to finish."""
