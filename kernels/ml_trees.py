"""Ensembles of decision trees as tables, and how all samples walk all trees at once.

attributes -> `Forest` (nodes, roots) and `Votes` (what leaves say)
rows of features -> the leaf of each row in each tree, level by level -> votes added up
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from foldline.kernels.registry import Array

Indices = npt.NDArray[np.intp]

COMPARISONS: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("BRANCH_LEQ", np.less_equal),
    ("BRANCH_LT", np.less),
    ("BRANCH_GTE", np.greater_equal),
    ("BRANCH_GT", np.greater),
    ("BRANCH_EQ", np.equal),
    ("BRANCH_NEQ", np.not_equal),
)
"""Node modes with a threshold; the position is the code of TreeEnsemble's `nodes_modes`."""
MEMBER = len(COMPARISONS)
LEAF = MEMBER + 1

_BLOCK = 1 << 18
"""Most (row, tree) pairs walked at a time."""


@dataclass(frozen=True)
class Forest:
    """The nodes of all trees; the arrays have one entry for each node."""

    feature: Indices
    mode: npt.NDArray[np.uint8]
    """Index into COMPARISONS, MEMBER or LEAF."""
    threshold: Array
    true_child: Indices
    false_child: Indices
    missing_true: npt.NDArray[np.bool_]
    """Whether NaN takes the true branch whatever the comparison says."""
    leaf: Indices
    """Number of the leaf in `Votes`."""
    roots: Indices
    members: Array | None = None
    """For MEMBER nodes, row `threshold`: the values to be found, filled up with NaN."""

    @functools.cached_property
    def comparisons(self) -> tuple[int, ...]:
        """The modes that occur, leaves aside."""
        return tuple(code for code in np.unique(self.mode).tolist() if code != LEAF)


@dataclass(frozen=True)
class Votes:
    """What each leaf adds, `(leaves, most votes of a leaf)`; empty places go to a target more."""

    target: Indices
    weight: Array


def votes_of(
    leaves: int,
    targets: int,
    entries: Iterable[tuple[int, int, float]],
    aggregate: str,
    dtype: np.dtype[Any],
) -> Votes:
    """Votes from (leaf, target, weight); two of one leaf for one target become one.

    `aggregate` is SUM, AVERAGE, MIN or MAX. Raises ValueError for another and for a target that
    does not exist.
    """
    if aggregate not in _JOIN:
        raise ValueError(f"aggregate_function is {aggregate!r}, expected one of {[*_JOIN]}")
    merged: list[dict[int, float]] = [{} for _ in range(leaves)]
    join = _JOIN[aggregate]
    for leaf, target, weight in entries:
        if not 0 <= target < targets:
            raise ValueError(f"a leaf votes for {target}, but there are {targets}")
        votes = merged[leaf]
        if target in votes:
            weight = join(dtype.type(votes[target]), dtype.type(weight)).item()
        votes[target] = weight
    most = max(map(len, merged), default=0)
    table = Votes(np.full((leaves, most), targets, np.intp), np.zeros((leaves, most), dtype))
    for row, votes in enumerate(merged):
        table.target[row, : len(votes)] = [*votes]
        table.weight[row, : len(votes)] = [*votes.values()]
    return table


def leaves_of(forest: Forest, rows: Array) -> Indices:
    """`(N, trees)`: the number of the leaf each row of features ends at.

    A step moves every pair (row, tree) that is not at a leaf yet one level down. Raises ValueError
    when one does not get to a leaf, for then the nodes are no trees.
    """
    values = rows.astype(np.result_type(rows, forest.threshold), copy=False)
    node = np.tile(forest.roots, (len(rows), 1))
    step = max(_BLOCK // max(len(forest.roots), 1), 1)
    for start in range(0, len(rows), step):
        _walk(forest, values[start : start + step], node[start : start + step])
    return forest.leaf[node]


def _walk(forest: Forest, values: Array, node: Indices) -> None:
    flat = node.reshape(-1)
    active = np.flatnonzero(forest.mode[flat] != LEAF)
    for _ in range(len(forest.mode)):
        if not len(active):
            return
        at = flat[active]
        value = values[active // node.shape[1], forest.feature[at]]
        goes_true = _compare(forest, at, value)
        goes_true |= forest.missing_true[at] & np.isnan(value)
        flat[active] = np.where(goes_true, forest.true_child[at], forest.false_child[at])
        active = active[forest.mode[flat[active]] != LEAF]
    if len(active):
        raise ValueError("the nodes are no trees: a branch leads back to a node above it")


def _compare(forest: Forest, at: Indices, value: Array) -> npt.NDArray[np.bool_]:
    mode, threshold = forest.mode[at], forest.threshold[at]
    result = np.zeros(len(at), np.bool_)
    for code in forest.comparisons:
        here = slice(None) if len(forest.comparisons) == 1 else mode == code
        if code == MEMBER:
            assert forest.members is not None
            candidates = forest.members[threshold[here].astype(np.intp)]
            result[here] = (candidates == value[here, np.newaxis]).any(axis=1)
        else:
            result[here] = COMPARISONS[code][1](value[here], threshold[here])
    return result


def aggregated(
    leaves: Indices, votes: Votes, targets: int, aggregate: str
) -> tuple[Array, npt.NDArray[np.bool_]]:
    """`(N, targets)`: votes of all trees joined in the order of trees, and which got any.

    What gets no vote is 0.
    """
    rows = np.arange(len(leaves), dtype=np.intp)[:, np.newaxis]
    start = 0 if _JOIN[aggregate] is np.add else np.nan
    scores = np.full((len(leaves), targets + 1), start, votes.weight.dtype)
    voted = np.zeros(scores.shape, np.bool_)
    for leaf in leaves.T:
        place = rows, votes.target[leaf]
        scores[place] = _JOIN[aggregate](scores[place], votes.weight[leaf])
        voted[place] = True
    scores, voted = scores[:, :targets], voted[:, :targets]
    scores[~voted] = 0
    if aggregate == "AVERAGE":
        scores /= scores.dtype.type(max(leaves.shape[1], 1))
    return scores, voted


_JOIN: dict[str, np.ufunc] = {
    "SUM": np.add,
    "AVERAGE": np.add,
    "MIN": np.fmin,  # ignores NaN, which stands for no vote yet
    "MAX": np.fmax,
}


def forest_of_nodes(
    treeids: Sequence[int],
    nodeids: Sequence[int],
    featureids: Sequence[int],
    modes: Sequence[str],
    values: Array,
    truenodeids: Sequence[int],
    falsenodeids: Sequence[int],
    missing_true: Sequence[int] | None,
) -> tuple[Forest, dict[tuple[int, int], int]]:
    """A forest of nodes named by (tree, node), and the number of each leaf by its name.

    The root of a tree is its node that is no other node's child. Raises ValueError for a node
    named twice, an unknown mode, or a child that does not exist.
    """
    names = list(zip(treeids, nodeids, strict=True))
    place = {name: at for at, name in enumerate(names)}
    if len(place) != len(names):
        raise ValueError("a node of a tree occurs twice")
    codes = {name: code for code, (name, _) in enumerate(COMPARISONS)} | {"LEAF": LEAF}
    if not codes.keys() >= set(modes):
        raise ValueError(f"nodes_modes are {sorted(set(modes))}, expected some of {[*codes]}")
    mode = np.array([codes[name] for name in modes], np.uint8)
    is_leaf = mode == LEAF

    def children(ids: Sequence[int]) -> Indices:
        wanted = [(tree, child) for (tree, _), child in zip(names, ids, strict=True)]
        found = np.array([place.get(name, -1) for name in wanted], np.intp)
        if (found[~is_leaf] < 0).any():
            raise ValueError("a branch leads to a node that does not exist")
        return np.where(is_leaf, -1, found)

    true_child, false_child = children(truenodeids), children(falsenodeids)
    below = np.concatenate([true_child, false_child])
    leaf_nodes = np.flatnonzero(is_leaf)
    leaf = np.full(len(names), -1, np.intp)
    leaf[leaf_nodes] = np.arange(len(leaf_nodes))
    forest = Forest(
        np.array(featureids, np.intp),
        mode,
        values,
        true_child,
        false_child,
        np.array(missing_true or [0] * len(names), np.bool_),
        leaf,
        np.setdiff1d(np.arange(len(names), dtype=np.intp), below),
    )
    return forest, {names[node]: int(leaf[node]) for node in leaf_nodes}
