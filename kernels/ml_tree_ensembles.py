"""TreeEnsemble 5, TreeEnsembleClassifier 1/3/5 and TreeEnsembleRegressor 1/3/5.

Attributes `…_as_tensor` (3+) take the place of those without the suffix and may be float64;
thresholds and features are compared, and votes added up, in the wider type of the two.
`nodes_hitrates` is a hint about speed and has no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from foldline.kernels.ml_scores import (
    ML,
    class_labels,
    feature_rows,
    transformed,
    two_labels,
    two_scores,
)
from foldline.kernels.ml_trees import (
    LEAF,
    MEMBER,
    Forest,
    aggregated,
    forest_of_nodes,
    leaves_of,
    votes_of,
)
from foldline.kernels.precision import widened, widening_maker
from foldline.kernels.registry import Array, Operand, maker

_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


@maker("TreeEnsemble", domain=ML, grade="reference", exact=True)
@widening_maker
def tree_ensemble(
    x: Operand,
    *,
    aggregate_function: int = 1,
    leaf_targetids: Sequence[int],
    leaf_weights: Array,
    membership_values: Array | None = None,
    n_targets: int | None = None,
    nodes_falseleafs: Sequence[int],
    nodes_falsenodeids: Sequence[int],
    nodes_featureids: Sequence[int],
    nodes_hitrates: Array | None = None,
    nodes_missing_value_tracks_true: Sequence[int] | None = None,
    nodes_modes: Array,
    nodes_splits: Array,
    nodes_trueleafs: Sequence[int],
    nodes_truenodeids: Sequence[int],
    post_transform: int = 0,
    tree_roots: Sequence[int],
) -> Callable[..., Array]:
    """TreeEnsemble 5: `(N, n_targets)` in the dtype of the features `(N, F)`.

    Nodes and leaves are numbered apart: a branch leads to a leaf where `nodes_trueleafs` (or
    `nodes_falseleafs`) says so. `membership_values` lists the values of each BRANCH_MEMBER node,
    in the order of the nodes, each list ended by NaN. Float16 is computed in float32.

    Raises ValueError when the lists of members are not as many as such nodes.
    """
    nodes, leaves = len(nodes_modes), len(leaf_weights)
    splits = widened(nodes_splits).copy()
    member_nodes = np.flatnonzero(nodes_modes == MEMBER)
    members = _members(membership_values, len(member_nodes))
    splits[member_nodes] = np.arange(len(member_nodes))
    missing = np.array(nodes_missing_value_tracks_true or [0] * nodes, np.bool_)

    def children(ids: Sequence[int], leafs: Sequence[int]) -> Array:
        return _with_leaves(np.where(leafs, np.array(ids) + nodes, ids), leaves)

    forest = Forest(
        _with_leaves(nodes_featureids, leaves),
        np.concatenate([nodes_modes, np.full(leaves, LEAF)]).astype(np.uint8),
        np.concatenate([splits, np.zeros(leaves, splits.dtype)]),
        children(nodes_truenodeids, nodes_trueleafs),
        children(nodes_falsenodeids, nodes_falseleafs),
        np.concatenate([missing, np.zeros(leaves, np.bool_)]),
        np.arange(nodes + leaves, dtype=np.intp) - nodes,
        np.array(tree_roots, np.intp),
        members,
    )
    weights = widened(leaf_weights)
    targets = n_targets if n_targets is not None else max(leaf_targetids, default=0) + 1
    aggregate = _AGGREGATES[aggregate_function]
    entries = zip(range(leaves), leaf_targetids, weights.tolist(), strict=True)
    votes = votes_of(leaves, targets, entries, aggregate, weights.dtype)

    def run(x: Array) -> Array:
        scores, _ = aggregated(leaves_of(forest, feature_rows(x)), votes, targets, aggregate)
        return transformed(scores, _TRANSFORMS[post_transform]).astype(x.dtype, copy=False)

    return run


@maker("TreeEnsembleRegressor", domain=ML, grade="reference", exact=True)
def tree_ensemble_regressor(
    x: Operand,
    *,
    aggregate_function: str = "SUM",
    base_values: Sequence[float] | None = None,
    base_values_as_tensor: Array | None = None,
    n_targets: int | None = None,
    nodes_falsenodeids: Sequence[int] = (),
    nodes_featureids: Sequence[int] = (),
    nodes_hitrates: Sequence[float] | None = None,
    nodes_hitrates_as_tensor: Array | None = None,
    nodes_missing_value_tracks_true: Sequence[int] | None = None,
    nodes_modes: Sequence[str] = (),
    nodes_nodeids: Sequence[int] = (),
    nodes_treeids: Sequence[int] = (),
    nodes_truenodeids: Sequence[int] = (),
    nodes_values: Sequence[float] | None = None,
    nodes_values_as_tensor: Array | None = None,
    post_transform: str = "NONE",
    target_ids: Sequence[int] = (),
    target_nodeids: Sequence[int] = (),
    target_treeids: Sequence[int] = (),
    target_weights: Sequence[float] | None = None,
    target_weights_as_tensor: Array | None = None,
) -> Callable[..., Array]:
    """TreeEnsembleRegressor 1/3/5: float32 `(N, n_targets)` of rows of features.

    The votes of the leaves are joined by `aggregate_function`, then `base_values` are added.
    """
    forest, leaf_of = forest_of_nodes(
        nodes_treeids,
        nodes_nodeids,
        nodes_featureids,
        nodes_modes,
        _floats(nodes_values, nodes_values_as_tensor),
        nodes_truenodeids,
        nodes_falsenodeids,
        nodes_missing_value_tracks_true,
    )
    weights = _floats(target_weights, target_weights_as_tensor)
    targets = n_targets if n_targets is not None else max(target_ids, default=0) + 1
    entries = _entries(leaf_of, target_treeids, target_nodeids, target_ids, weights)
    votes = votes_of(len(leaf_of), targets, entries, aggregate_function, weights.dtype)
    base = _checked(_floats(base_values, base_values_as_tensor), targets)

    def run(x: Array) -> Array:
        leaves = leaves_of(forest, feature_rows(x))
        scores = aggregated(leaves, votes, targets, aggregate_function)[0] + base
        return transformed(scores, post_transform).astype(np.float32, copy=False)

    return run


@maker("TreeEnsembleClassifier", domain=ML, grade="reference", exact=True)
def tree_ensemble_classifier(
    x: Operand,
    *,
    base_values: Sequence[float] | None = None,
    base_values_as_tensor: Array | None = None,
    class_ids: Sequence[int] = (),
    class_nodeids: Sequence[int] = (),
    class_treeids: Sequence[int] = (),
    class_weights: Sequence[float] | None = None,
    class_weights_as_tensor: Array | None = None,
    classlabels_int64s: Sequence[int] | None = None,
    classlabels_strings: Sequence[str] | None = None,
    nodes_falsenodeids: Sequence[int] = (),
    nodes_featureids: Sequence[int] = (),
    nodes_hitrates: Sequence[float] | None = None,
    nodes_hitrates_as_tensor: Array | None = None,
    nodes_missing_value_tracks_true: Sequence[int] | None = None,
    nodes_modes: Sequence[str] = (),
    nodes_nodeids: Sequence[int] = (),
    nodes_treeids: Sequence[int] = (),
    nodes_truenodeids: Sequence[int] = (),
    nodes_values: Sequence[float] | None = None,
    nodes_values_as_tensor: Array | None = None,
    post_transform: str = "NONE",
) -> Callable[..., tuple[Array, Array]]:
    """TreeEnsembleClassifier 1/3/5: labels `(N)` and float32 scores `(N, E)` of rows of features.

    Scores are sums of votes plus `base_values`; the label is that of the greatest before
    `post_transform`, among classes that got a vote. With two labels, but votes for one class and
    at most one base value, that score s alone decides: above 0.5 if no vote is negative, else
    above 0. Votes for the first class then give both scores, (1 - s, s) or (-s, s). A model of
    one label decides between 0 and 1.
    """
    labels = class_labels(classlabels_int64s, classlabels_strings)
    forest, leaf_of = forest_of_nodes(
        nodes_treeids,
        nodes_nodeids,
        nodes_featureids,
        nodes_modes,
        _floats(nodes_values, nodes_values_as_tensor),
        nodes_truenodeids,
        nodes_falsenodeids,
        nodes_missing_value_tracks_true,
    )
    weights = _floats(class_weights, class_weights_as_tensor)
    entries = _entries(leaf_of, class_treeids, class_nodeids, class_ids, weights)
    votes = votes_of(len(leaf_of), len(labels), entries, "SUM", weights.dtype)
    base = _floats(base_values, base_values_as_tensor)
    voted_for = set(class_ids)
    only_class = voted_for.pop() if len(voted_for) == 1 and base.size < 2 else None
    one_score = only_class is not None and len(labels) <= 2
    all_scored = base.size > 0
    base = _checked(base, 1 if one_score else len(labels))
    threshold = 0.5 if len(labels) == 2 and (weights >= 0).all() else 0.0

    def run(x: Array) -> tuple[Array, Array]:
        leaves = leaves_of(forest, feature_rows(x))
        scores, voted = aggregated(leaves, votes, len(labels), "SUM")
        if one_score:
            scores[:, only_class] += base[0]
            score = scores[:, only_class]
            chosen = two_labels(labels)[(score > threshold).astype(np.intp)]
        else:
            scores = scores + base
            chosen = labels[np.where(voted | all_scored, scores, -np.inf).argmax(axis=1)]
        if one_score and only_class == 0 and len(labels) == 2:
            scores = two_scores(scores[:, 0], post_transform, mirrored=threshold == 0)
        else:
            scores = transformed(scores, post_transform)
        return chosen, scores.astype(np.float32, copy=False)

    return run


def _floats(values: Sequence[float] | None, tensor: Array | None) -> Array:
    return np.array(values or (), np.float32) if tensor is None else tensor.reshape(-1)


def _checked(base: Array, count: int) -> Array:
    """Base values, zero for none; ValueError when there are not as many as scores."""
    if base.size not in (0, count):
        raise ValueError(f"{base.size} base values for {count} scores")
    return base if base.size else np.zeros(1, np.float32)


def _entries(
    leaf_of: dict[tuple[int, int], int],
    treeids: Sequence[int],
    nodeids: Sequence[int],
    targets: Sequence[int],
    weights: Array,
) -> Iterable[tuple[int, int, float]]:
    """Votes as (leaf, target, weight); those of a node that is no leaf never count."""
    names = zip(treeids, nodeids, strict=True)
    for name, target, weight in zip(names, targets, weights.tolist(), strict=True):
        if name in leaf_of:
            yield leaf_of[name], target, weight


def _with_leaves(values: Any, leaves: int) -> Array:
    return np.concatenate([np.asarray(values, np.intp), np.zeros(leaves, np.intp)])


def _members(values: Array | None, nodes: int) -> Array | None:
    """One row of values for each MEMBER node, filled up with NaN."""
    flat = np.empty(0, np.float32) if values is None else widened(values)
    ends = np.flatnonzero(np.isnan(flat))
    if len(ends) != nodes:
        raise ValueError(f"{len(ends)} lists of membership values for {nodes} BRANCH_MEMBER nodes")
    lists = np.split(flat, ends + 1)[:nodes]
    table = np.full((nodes, max(map(len, lists), default=0)), np.nan, flat.dtype)
    for row, found in zip(table, lists, strict=True):
        row[: len(found)] = found
    return table
