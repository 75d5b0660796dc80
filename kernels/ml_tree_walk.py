"""Forests walked for speed: every pair of row and tree goes one level down at a time, in tiles.

A leaf leads back to itself, so no pair is ever left out, and a level is a few calls on contiguous
memory. A tile is some trees by some rows: all trees where rows are few, where calls cost most; one
tree where they are many, so that its nodes stay in cache. The votes are added tree by tree in the
order of the trees, which gives the bits of `ml_trees.aggregated`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from foldline.kernels.ml_trees import COMPARISONS, LEAF, Forest, Indices, Votes
from foldline.kernels.parallel import parallel_for
from foldline.kernels.registry import Array
from foldline.kernels.windows import even_spans

Scores = tuple[Array, npt.NDArray[np.bool_]]
"""`(N, targets)`: the sums, and which got a vote."""

TILE = 1 << 13
"""Most (row, tree) pairs at a time: what a level reads and writes of them is 200 KiB."""
WIDE = 128
"""From so many scores on, a call for each tree takes less time than running sums of all."""
MOST_DEPTH = 32
"""Deeper trees are mostly lopsided: most pairs would wait at a leaf for the last."""
MOST_VOTES = 1 << 22
"""So large at most is the table of what each node adds to each target."""


@dataclass(frozen=True)
class _Nodes:
    """The nodes, two entries each, the second for what is true."""

    roots: Indices
    """Places of the first entries, like all that is called a place."""
    depth: int
    feature: Indices
    threshold: Array
    child: Indices
    """Where each branch leads to, as a place."""
    missing_true: npt.NDArray[np.bool_] | None
    compare: Callable[..., Any]
    weight: Array
    """`(places, targets)`"""
    voted: npt.NDArray[np.bool_] | None
    """`(places, targets)`; None where all leaves vote for all."""


def walker(
    forest: Forest, votes: Votes, targets: int, aggregate: str, features: int
) -> Callable[[Array], Scores] | None:
    """What computes the scores of rows of features; None where the reference has to."""
    nodes = _nodes(forest, votes, targets, features) if aggregate in ("SUM", "AVERAGE") else None
    if nodes is None:
        return None

    def run(rows: Array) -> Scores:
        values = rows.astype(np.result_type(rows, nodes.threshold), copy=False)
        values = np.ascontiguousarray(values)
        scores = np.zeros((len(rows), targets), nodes.weight.dtype)
        voted = np.full(scores.shape, nodes.voted is None and len(nodes.roots) > 0)
        spans = even_spans(len(rows), -(-len(rows) // TILE))

        def some_rows(index: int) -> None:
            part = slice(*spans[index])
            _add_votes(nodes, values[part], scores[part], voted[part])

        parallel_for(len(spans), some_rows)
        if aggregate == "AVERAGE":
            scores /= scores.dtype.type(max(len(nodes.roots), 1))
        return scores, voted

    return run


def _add_votes(nodes: _Nodes, values: Array, scores: Array, voted: Array) -> None:
    trees = max(TILE // len(scores), 1)
    for first in range(0, len(nodes.roots), trees):
        leaf = _leaves(nodes, nodes.roots[first : first + trees], values)
        _add_in_order(nodes.weight.take(leaf, 0), scores)
        if nodes.voted is not None:
            np.logical_or(voted, nodes.voted.take(leaf, 0).any(axis=0), voted)


def _add_in_order(votes: Array, scores: Array) -> None:
    """Add `votes`, `(trees, rows, targets)`, to the scores, one tree after the other."""
    if scores.size >= WIDE:
        for each in votes:
            np.add(scores, each, scores)
    elif len(votes):
        np.add(scores, votes[0], votes[0])
        np.copyto(scores, np.add.accumulate(votes, axis=0)[-1])


def _leaves(nodes: _Nodes, roots: Indices, values: Array) -> Indices:
    """`(trees, rows)`: the place each row ends at."""
    count, features = values.shape
    flat = values.reshape(-1)
    shape = len(roots), count
    place = np.empty(shape, np.intp)
    place[:] = roots[:, np.newaxis]
    starts = np.arange(count, dtype=np.intp) * features
    where, value = np.empty(shape, np.intp), np.empty(shape, values.dtype)
    threshold, goes_true = np.empty(shape, nodes.threshold.dtype), np.empty(shape, np.bool_)
    # All places are valid, and "clip" writes without a copy in between.
    for _ in range(nodes.depth):
        nodes.feature.take(place, out=where, mode="clip")
        if count > 1:
            np.add(where, starts, where)
        flat.take(where, out=value, mode="clip")
        nodes.threshold.take(place, out=threshold, mode="clip")
        nodes.compare(value, threshold, goes_true)
        if nodes.missing_true is not None:
            is_missing = np.isnan(value)
            np.logical_and(is_missing, nodes.missing_true.take(place), is_missing)
            np.logical_or(goes_true, is_missing, goes_true)
        np.add(place, goes_true, where)
        nodes.child.take(where, out=place, mode="clip")
    return place


def _nodes(forest: Forest, votes: Votes, targets: int, features: int) -> _Nodes | None:
    branches = forest.mode != LEAF
    depth = _depth(forest, branches)
    seen = forest.feature[branches]
    if (
        len(forest.comparisons) > 1
        or any(code >= len(COMPARISONS) for code in forest.comparisons)
        or depth is None
        or 2 * len(branches) * targets > MOST_VOTES
        or (seen.size and not 0 <= seen.min() <= seen.max() < features)
    ):
        return None
    code = forest.comparisons[0] if forest.comparisons else 0
    itself = np.arange(len(branches), dtype=np.intp)
    ways = [np.where(branches, way, itself) for way in (forest.false_child, forest.true_child)]
    missing = np.repeat(forest.missing_true & branches, 2)
    weight, voted = _tables(forest, votes, targets, branches)
    leaves = np.repeat(~branches, 2)
    return _Nodes(
        2 * forest.roots,
        depth,
        np.repeat(np.where(branches, forest.feature, 0), 2),
        np.repeat(forest.threshold, 2),
        2 * np.stack(ways, 1).reshape(-1),
        missing if missing.any() else None,
        COMPARISONS[code][1],
        weight,
        None if voted[leaves].all() else voted,
    )


def _depth(forest: Forest, branches: npt.NDArray[np.bool_]) -> int | None:
    """Levels of branches; None for too many, also where the nodes are no trees."""
    at = forest.roots
    for depth in range(MOST_DEPTH + 1):
        at = np.unique(at[branches[at]])
        if not len(at):
            return depth
        at = np.concatenate([forest.true_child[at], forest.false_child[at]])
    return None


def _tables(
    forest: Forest, votes: Votes, targets: int, branches: npt.NDArray[np.bool_]
) -> tuple[Array, npt.NDArray[np.bool_]]:
    """What the leaf at each place adds to each target, and whether it votes for it.

    Zero where it does not: to add that changes nothing, for a sum that starts with 0 is never -0.
    """
    weight = np.zeros((len(branches), targets + 1), votes.weight.dtype)
    voted = np.zeros(weight.shape, np.bool_)
    (at,) = np.nonzero(~branches)
    leaf = forest.leaf[at]
    weight[at[:, np.newaxis], votes.target[leaf]] = votes.weight[leaf]
    voted[at[:, np.newaxis], votes.target[leaf]] = True
    return (
        np.ascontiguousarray(np.repeat(weight[:, :targets], 2, axis=0)),
        np.ascontiguousarray(np.repeat(voted[:, :targets], 2, axis=0)),
    )
