"""What is done to finished parts of a convolution's result: an activation is applied.

A convolution calls `finish(part)` once for each part of its result, when that is finished, on the
thread that computed it. Parts do not overlap, hang on shapes and dtypes alone, and are written in
place. The activation is the operator's own kernel, whose loops give an element the same bits
wherever it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from foldline.kernels.channels_last import is_channels_last, pixels
from foldline.kernels.epilogue import activation_of
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


def add_bias(part: Array, bias: Array) -> None:
    """Add one element a column to a matrix, on many short rows at once."""
    columns = part.shape[1]
    if columns < NARROW and part.size >= LEAST_BIASED and part.flags.c_contiguous:
        together = -(-2 * NARROW // columns)
        whole = len(part) // together * together
        many = part[:whole].reshape(-1, together * columns)
        np.add(many, np.concatenate((bias,) * together), many)
        part = part[whole:]
    np.add(part, bias, part)


def done(part: Array) -> None:
    """Leave a part as it is."""


def finisher(activation: str, params: Sequence[float], dtype: np.dtype[np.generic]) -> Finish:
    """What applies an activation in place. ValueError for one that is not known."""
    if not activation:
        return done
    apply = activation_of(activation, params, dtype)

    def finish(part: Array) -> None:
        if part.nbytes <= CHUNK_BYTES or part.ndim < 2:
            before = part if apply.inplace else part.copy()
            if apply.inplace or part.flags.c_contiguous:
                apply.run(before, out=part)
            else:
                # Many steps in short rows cost more than one copy: half as much again for Gelu.
                np.copyto(part, apply.run(before, out=np.empty_like(before)))
        elif len(part) == 1:
            finish(part[0])
        else:
            row_bytes = part.nbytes // len(part)
            step = max(1, CHUNK_BYTES // row_bytes)
            for start in range(0, len(part), step):
                finish(part[start : start + step])

    return finish


def finish_all(result: Array, finish: Finish, added: Array | None = None) -> None:
    """Finish a result that lies in one piece, some elements at a time.

    `added`, of the shape of the result, is added before. Which one of two NaNs such a sum is hangs
    on where NumPy's vectors begin, as in any Add.
    """
    if finish is done and added is None:
        return
    if is_channels_last(result):
        result, added = pixels(result), None if added is None else pixels(added)
    flat = result.reshape(-1)
    other = None if added is None else np.ascontiguousarray(added).reshape(-1)

    def span(index: int) -> None:
        place = slice(index * SPAN_ELEMENTS, (index + 1) * SPAN_ELEMENTS)
        if other is not None:
            np.add(flat[place], other[place], out=flat[place])
        finish(flat[place])

    parallel_for(-(-flat.size // SPAN_ELEMENTS), span)
