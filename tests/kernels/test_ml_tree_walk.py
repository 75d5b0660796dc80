"""Larger forests: the walk in tiles against the reference, bit for bit."""

import numpy as np
import pytest

import foldline.kernels.ml_tree_walk
from foldline.kernels.ml_tree_walk import walker
from foldline.kernels.ml_trees import aggregated, forest_of_nodes, leaves_of, votes_of
from foldline.kernels.parallel import use_threads
from foldline.kernels.registry import Operand, find_kernel

MODES = [f"BRANCH_{name}" for name in ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ")]
FEATURES = 5


def _forest(random, modes=("BRANCH_LEQ",), trees=12, depth=6, missing=False, dtype=np.float32):
    """Trees of random shapes, and how many leaves they have."""
    nodes = []

    def grow(tree, left, count):
        here, count = count, count + 1
        nodes.append([tree, here, 0, "LEAF", 0.0, 0, 0])
        at = len(nodes) - 1
        if left and (left == depth or random.random() < 0.9):
            below, count = count, grow(tree, left - 1, count)
            other, count = count, grow(tree, left - 1, count)
            feature, mode = int(random.integers(FEATURES)), str(random.choice(modes))
            nodes[at] = [tree, here, feature, mode, random.integers(-4, 5) / 4, below, other]
        return count

    for tree in range(trees):
        grow(tree, depth, 0)
    tree, node, feature, mode, value, true, false = zip(*nodes, strict=True)
    tracks = random.integers(0, 2, len(nodes)).tolist() if missing else None
    values = np.array(value, dtype)
    return forest_of_nodes(tree, node, feature, mode, values, true, false, tracks)


def _votes(random, leaves, targets, each, aggregate="SUM", dtype=np.float32):
    entries = [
        (leaf, int(target), float(random.standard_normal() * 10.0 ** random.integers(-3, 4)))
        for leaf in range(leaves)
        for target in random.choice(targets, each, replace=False)
    ]
    return votes_of(leaves, targets, entries, aggregate, np.dtype(dtype))


def _rows(random, count, dtype=np.float32):
    x = (random.integers(-6, 7, (count, FEATURES)) / 4).astype(dtype)
    special = np.array([np.nan, np.inf, -np.inf, -0.0], dtype)
    return np.where(random.random(x.shape) < 0.1, random.choice(special, x.shape), x)


def _check(forest, votes, targets, x, aggregate="SUM"):
    score = walker(forest, votes, targets, aggregate, x.shape[1])
    assert score is not None
    kept = x.copy()
    scores, voted = score(x)
    wanted, wanted_voted = aggregated(leaves_of(forest, x), votes, targets, aggregate)
    assert (scores.dtype, scores.shape) == (wanted.dtype, wanted.shape)
    assert scores.tobytes() == wanted.tobytes()
    assert voted.tolist() == wanted_voted.tolist()
    assert x.tobytes() == kept.tobytes()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("rows", [0, 1, 16, 300])
def test_every_mode_with_missing_values(mode, missing, rows):
    random = np.random.default_rng(1)
    forest, leaf_of = _forest(random, (mode,), missing=missing)
    _check(forest, _votes(random, len(leaf_of), 1, 1), 1, _rows(random, rows))


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE"])
@pytest.mark.parametrize(("targets", "each"), [(1, 1), (4, 4), (4, 2), (40, 1)])
@pytest.mark.parametrize("rows", [1, 3, 50])
@pytest.mark.parametrize("tile", [1, 7, 64, 1 << 13])
def test_votes_are_added_in_the_order_of_the_trees(
    monkeypatch, aggregate, targets, each, rows, tile
):
    monkeypatch.setattr(foldline.kernels.ml_tree_walk, "TILE", tile)
    random = np.random.default_rng(2)
    forest, leaf_of = _forest(random, depth=4)
    votes = _votes(random, len(leaf_of), targets, each, aggregate)
    _check(forest, votes, targets, _rows(random, rows), aggregate)


@pytest.mark.parametrize("x_dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtypes_of_features_and_thresholds(x_dtype, dtype):
    random = np.random.default_rng(3)
    forest, leaf_of = _forest(random, dtype=dtype)
    votes = _votes(random, len(leaf_of), 2, 1, dtype=dtype)
    x = np.asfortranarray(_rows(random, 20, x_dtype))
    _check(forest, votes, 2, x)
    _check(forest, votes, 2, np.nextafter(x, np.inf, dtype=x_dtype))


def test_leaves_without_a_vote_and_votes_of_minus_zero():
    random = np.random.default_rng(4)
    forest, leaf_of = _forest(random, trees=2, depth=1)
    votes = votes_of(len(leaf_of), 2, [(0, 0, -0.0), (2, 0, -0.0)], "SUM", np.dtype(np.float32))
    _check(forest, votes, 2, _rows(random, 40))


def test_a_forest_of_single_leaves():
    leaf = forest_of_nodes((0, 1), (0, 0), (9, 9), ("LEAF",) * 2, np.zeros(2), (0, 0), (0, 0), None)
    votes = votes_of(2, 1, [(0, 0, 1.5), (1, 0, 2.0)], "SUM", np.dtype(np.float32))
    _check(leaf[0], votes, 1, np.zeros((3, 1), np.float32))


def test_what_is_rare_is_left_to_the_reference():
    random = np.random.default_rng(5)
    forest, leaf_of = _forest(random)
    votes = _votes(random, len(leaf_of), 1, 1)
    assert walker(forest, votes, 1, "MIN", FEATURES) is None
    assert walker(forest, votes, 1, "SUM", int(forest.feature.max())) is None
    mixed, leaf_of = _forest(random, MODES[:2])
    assert walker(mixed, _votes(random, len(leaf_of), 1, 1), 1, "SUM", FEATURES) is None


@pytest.mark.parametrize(("levels", "is_walked"), [(32, True), (33, False)])
def test_deep_trees_are_left_to_the_reference(levels, is_walked):
    ids = [*range(2 * levels + 1)]
    modes = ["BRANCH_LEQ" if n % 2 == 0 and n < 2 * levels else "LEAF" for n in ids]
    forest, leaf_of = forest_of_nodes(
        [0] * len(ids),
        ids,
        [0] * len(ids),
        modes,
        np.array([*map(float, ids)], np.float32),
        [n + 1 for n in ids],
        [n + 2 for n in ids],
        None,
    )
    votes = votes_of(
        len(leaf_of), 1, [(n, 0, float(n)) for n in leaf_of.values()], "SUM", np.dtype(np.float32)
    )
    assert (walker(forest, votes, 1, "SUM", 1) is not None) == is_walked
    if is_walked:
        _check(forest, votes, 1, np.arange(80, dtype=np.float32)[:, None])


def test_nodes_in_a_circle_are_left_to_the_reference():
    forest, _ = forest_of_nodes(
        (0, 0, 0),
        (0, 1, 2),
        (0, 0, 0),
        ("BRANCH_LEQ", "BRANCH_LEQ", "LEAF"),
        np.zeros(3, np.float32),
        (1, 1, 0),
        (2, 2, 0),
        None,
    )
    votes = votes_of(1, 1, [(0, 0, 1.0)], "SUM", np.dtype(np.float32))
    assert walker(forest, votes, 1, "SUM", 1) is None


def test_threads_do_not_change_a_bit():
    random = np.random.default_rng(6)
    forest, leaf_of = _forest(random)
    votes = _votes(random, len(leaf_of), 3, 3)
    score = walker(forest, votes, 3, "SUM", FEATURES)
    x = _rows(random, 20000)
    expected, _ = score(x)
    with use_threads(3):
        assert score(x)[0].tobytes() == expected.tobytes()


@pytest.mark.parametrize("op_type", ["TreeEnsembleClassifier", "TreeEnsembleRegressor"])
@pytest.mark.parametrize("vector", [False, True])
def test_operators_of_many_trees_give_the_bits_of_the_reference(op_type, vector):
    random = np.random.default_rng(7)
    inner = 2**5 - 1
    nodes = [(tree, node) for tree in range(20) for node in range(2 * inner + 1)]
    leaves = [name for name in nodes if name[1] >= inner]
    kind = "class" if op_type == "TreeEnsembleClassifier" else "target"
    attributes = {
        "nodes_treeids": [tree for tree, _ in nodes],
        "nodes_nodeids": [node for _, node in nodes],
        "nodes_featureids": random.integers(FEATURES, size=len(nodes)).tolist(),
        "nodes_modes": ["LEAF" if node >= inner else "BRANCH_LT" for _, node in nodes],
        "nodes_values": random.standard_normal(len(nodes)).astype(np.float32).tolist(),
        "nodes_truenodeids": [2 * node + 1 if node < inner else 0 for _, node in nodes],
        "nodes_falsenodeids": [2 * node + 2 if node < inner else 0 for _, node in nodes],
        f"{kind}_treeids": [tree for tree, _ in leaves],
        f"{kind}_nodeids": [node for _, node in leaves],
        f"{kind}_ids": random.integers(3, size=len(leaves)).tolist(),
        f"{kind}_weights": random.standard_normal(len(leaves)).astype(np.float32).tolist(),
        "post_transform": "SOFTMAX",
    }
    attributes |= {"classlabels_int64s": [4, 5, 6]} if kind == "class" else {"n_targets": 3}
    x = random.standard_normal(FEATURES if vector else (40, FEATURES)).astype(np.float32)
    fast, reference = (
        find_kernel("ai.onnx.ml", op_type, 3, [grade]).function(
            Operand(x.shape, x.dtype), **attributes
        )
        for grade in ("fast", "reference")
    )
    assert "fast" in fast.__qualname__
    results, expected = fast(x), reference(x)
    pairs = [(results, expected)] if kind == "target" else zip(results, expected, strict=True)
    for result, wanted in pairs:
        assert result.dtype == wanted.dtype
        assert result.tobytes() == wanted.tobytes()
