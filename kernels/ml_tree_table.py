"""Small ensembles of trees as one table: what they answer hangs on which thresholds are passed.

    thresholds of a feature, in order     cut its axis into cells
    the cells of all features             a grid, for each of which the answer is known beforehand

A run compares every feature with its thresholds, turns what came true into the number of the cell
by one product, and looks the answer up. Nothing is computed anew, so the bits are those of the
ensemble itself.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from foldline.kernels.ml_trees import COMPARISONS, LEAF, Forest
from foldline.kernels.registry import Array, Operand
from foldline.kernels.ufuncs import NATIVE_FLOATS

MOST_CELLS = 1 << 12
"""The table is made with the plan, by running the ensemble on every cell: some milliseconds."""
MOST_COMPARISONS = 1 << 16
"""So many at most for one run: beyond, walking the trees has less to do."""

_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT")
"""Those for which it counts only how many thresholds are passed; NaN passes none."""


def tabulated(forest: Forest, run: Callable[..., Any], x: Operand) -> Callable[[Array], Any] | None:
    """A closure that looks up what `run` answers; None where the grid is too large.

    `run` takes rows of features like `x` and answers each row by itself.
    """
    grid = _grid(forest, x)
    if grid is None:
        return None
    columns, thresholds, compare = grid
    cells = math.prod(len(passed) + 1 for passed in thresholds)
    rows, count = x.shape[0], sum(map(len, thresholds))
    if cells > MOST_CELLS or not 0 < rows * count <= MOST_COMPARISONS:
        return None
    cases = np.zeros((cells, x.shape[1]), x.dtype)
    axes = [_cases(passed, compare, x.dtype) for passed in thresholds]
    cases[:, columns] = [*itertools.product(*axes)]
    answers = run(cases)
    # The cells of the last feature follow each other. float32 counts them exactly.
    steps = np.cumprod([1, *(len(passed) + 1 for passed in thresholds[:0:-1])])[::-1]
    sizes = [len(passed) for passed in thresholds]
    weights = np.repeat(steps, sizes).astype(np.float32)
    feature = np.repeat(np.array(columns, np.intp), sizes)
    # As many as there are rows: a comparison that broadcasts takes three times as long.
    bounds = np.tile(np.concatenate(thresholds)[:, np.newaxis], (1, rows))

    def cell_of(x: Array) -> Array:
        # A feature at a time: for 300 rows in six tenths of the time of a row at a time.
        return weights.dot(compare(x.T.take(feature, 0), bounds)).astype(np.intp)

    if isinstance(answers, tuple):
        first, second = cast("tuple[Array, Array]", answers)

        def look_up_both(x: Array) -> tuple[Array, Array]:
            cell = cell_of(x)
            # Of a vector, an index takes half the time of `take`; of a matrix, four times.
            return first[cell], second.take(cell, 0)

        return look_up_both
    return lambda x: answers.take(cell_of(x), 0)


def _grid(forest: Forest, x: Operand) -> tuple[list[int], list[Array], Any] | None:
    """The features that are asked for, the thresholds of each, and how to compare; or None."""
    if len(x.shape) != 2 or x.dtype not in NATIVE_FLOATS:
        return None
    branches = forest.mode != LEAF
    if len(forest.comparisons) != 1 or forest.missing_true[branches].any():
        return None
    (code,) = forest.comparisons
    feature = forest.feature[branches]
    if code >= len(COMPARISONS) or COMPARISONS[code][0] not in _MODES:
        return None
    columns = np.unique(feature).tolist()
    if columns[0] < 0 or columns[-1] >= x.shape[1]:
        return None
    thresholds = [np.unique(forest.threshold[branches][feature == c]) for c in columns]
    return columns, thresholds, COMPARISONS[code][1]


def _cases(thresholds: Array, compare: Callable[..., Any], dtype: np.dtype[Any]) -> Sequence[Any]:
    """For each number of thresholds passed, a value that passes so many; NaN where none does."""
    found = np.full(len(thresholds) + 1, np.nan, dtype)
    for value in (*thresholds.astype(dtype), dtype.type(np.inf), dtype.type(-np.inf)):
        found[int(np.count_nonzero(compare(value, thresholds)))] = value
    return found.tolist()
