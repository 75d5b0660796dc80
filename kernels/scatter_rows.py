"""How ScatterElements and ScatterND with a `reduction` combine updates with what is there.

All ways here combine at a place in the order of the updates, one after another, so that they give
the same bits. NumPy's `ufunc.at` is fast for one axis and a plain index only, and takes 35 ns an
element for more; whole rows are combined 15 to 35 times faster as sums of matrices:

    places          2 0 2 2      rows by how often they are hit: 2 (three times), 0 (once)
    round 0         first update of 2, first of 0
    round 1, 2      second update of 2; third of 2
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from foldline.kernels.registry import Array

Places = npt.NDArray[np.intp]

LEAST_ROW = 16
"""Elements of a row that are worth rounds."""
LEAST_ROWS_A_ROUND = 4
"""Updates in a round on average: with fewer, the rounds cost more than `ufunc.at`."""


def combine_rows(result: Array, places: Places, updates: Array, ufunc: np.ufunc) -> None:
    """`result[place] = ufunc(result[place], update)` for each place and update, in order.

    `result` is C-contiguous `(rows, width)`, `places` `(count,)` without negative ones, `updates`
    `(count, width)`.
    """
    width = result.shape[1]
    if not updates.size:
        return
    order = np.argsort(places, kind="stable")
    by_place = places[order]
    starts = np.searchsorted(by_place, np.arange(len(result)))
    counts = np.searchsorted(by_place, np.arange(len(result)), side="right") - starts
    most = int(counts.max())
    if width < LEAST_ROW or most * LEAST_ROWS_A_ROUND > len(places):
        combine(result.reshape(-1), _elements(places, width), updates.reshape(-1), ufunc)
        return
    by_count = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    ranks = np.empty(len(result), np.intp)
    ranks[by_count] = np.arange(len(by_count))
    rounds = np.arange(len(places)) - starts[by_place]
    ordered = updates[order[np.lexsort((ranks[by_place], rounds))]]
    sums, start = result[by_count], 0
    for size in np.searchsorted(-counts[by_count], -np.arange(most)).tolist():
        part = sums[:size]
        ufunc(part, ordered[start : start + size], out=part)
        start += size
    result[by_count] = sums


def combine(result: Array, places: Places, updates: Array, ufunc: np.ufunc) -> None:
    """The same for vectors."""
    ufunc.at(result, places, updates)


def _elements(places: Places, width: int) -> Places:
    """Where the elements of rows are in the rows one after another."""
    return np.add.outer(places * width, np.arange(width, dtype=np.intp)).reshape(-1)
