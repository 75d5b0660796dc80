"""TreeEnsembleClassifier 1/3/5 and TreeEnsembleRegressor 1/3/5: leaves are nodes that say so.

Attributes `…_as_tensor` (3+) take the place of those without the suffix and may be float64;
thresholds and features are compared, and votes added up, in the wider type of the two.
`nodes_hitrates` is a hint about speed and has no effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from foldline.kernels.ml_ensemble import Ensemble, ensemble_kernel
from foldline.kernels.ml_scores import class_labels, transformed, two_labels, two_scores
from foldline.kernels.ml_trees import forest_of_nodes, votes_of
from foldline.kernels.registry import Array, Operand


@ensemble_kernel("TreeEnsembleRegressor")
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
) -> Ensemble:
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

    def answer(scores: Array, voted: Array) -> Array:
        return transformed(scores + base, post_transform).astype(np.float32, copy=False)

    return Ensemble(forest, votes, targets, aggregate_function, answer)


@ensemble_kernel("TreeEnsembleClassifier")
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
) -> Ensemble:
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

    def answer(scores: Array, voted: Array) -> tuple[Array, Array]:
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

    return Ensemble(forest, votes, len(labels), "SUM", answer)


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
