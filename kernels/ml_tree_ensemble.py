"""TreeEnsemble 5: nodes and leaves in lists of their own.

Thresholds and features are compared, and votes added up, in the wider type of the two.
`nodes_hitrates` is a hint about speed and has no effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from foldline.kernels.ml_ensemble import Ensemble, ensemble_kernel
from foldline.kernels.ml_scores import transformed
from foldline.kernels.ml_trees import LEAF, MEMBER, Forest, votes_of
from foldline.kernels.precision import widened
from foldline.kernels.registry import Array, Operand

_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


@ensemble_kernel("TreeEnsemble")
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
) -> Ensemble:
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

    transform = _TRANSFORMS[post_transform]

    def answer(scores: Array, voted: Array) -> Array:
        return transformed(scores, transform).astype(x.dtype, copy=False)

    return Ensemble(forest, votes, targets, aggregate, answer)


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
