"""Forests made by hand, walked level by level."""

import numpy as np
import pytest

import foldline.kernels.ml_trees
from foldline.kernels.ml_trees import aggregated, forest_of_nodes, leaves_of, votes_of

FLOAT32 = np.dtype(np.float32)
NAN = np.float32(np.nan)


def stump(mode="BRANCH_LEQ", threshold=1.0, missing=None, dtype=np.float32):
    """One node, leaf 0 for true, leaf 1 for false."""
    values = np.array([threshold, 0, 0], dtype)
    return forest_of_nodes(
        (0, 0, 0),
        (0, 1, 2),
        (0, 0, 0),
        (mode, "LEAF", "LEAF"),
        values,
        (1, 0, 0),
        (2, 0, 0),
        missing,
    )


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("BRANCH_LEQ", [1, 1, 0]),
        ("BRANCH_LT", [1, 0, 0]),
        ("BRANCH_GTE", [0, 1, 1]),
        ("BRANCH_GT", [0, 0, 1]),
        ("BRANCH_EQ", [0, 1, 0]),
        ("BRANCH_NEQ", [1, 0, 1]),
    ],
)
def test_comparisons(mode, expected):
    rows = np.array([[0], [1], [2]], np.float32)
    forest, _ = stump(mode)
    assert (leaves_of(forest, rows)[:, 0] == 0).tolist() == [bool(one) for one in expected]


@pytest.mark.parametrize(("missing", "leaf"), [(None, 1), ((0, 0, 0), 1), ((1, 0, 0), 0)])
def test_missing_values(missing, leaf):
    for mode in ("BRANCH_LEQ", "BRANCH_GTE", "BRANCH_EQ"):
        forest, _ = stump(mode, missing=missing)
        assert leaves_of(forest, np.array([[NAN]])).tolist() == [[leaf]]


def test_features_and_thresholds_are_compared_in_the_wider_type():
    close = np.array([[1 + 2**-40]])
    assert leaves_of(stump()[0], close).tolist() == [[1]]
    narrow = np.ones((1, 1), np.float32)
    assert leaves_of(stump(threshold=1 - 2**-40, dtype=np.float64)[0], narrow).tolist() == [[1]]


def chain(depth):
    """One tree that goes down to leaf k for a feature in (k - 1, k], given in reverse order."""
    nodes = [(k, "BRANCH_LEQ", k, 100 + k, k + 1) for k in range(depth)]
    nodes += [(100 + k, "LEAF", 0, 0, 0) for k in range(depth)] + [(depth, "LEAF", 0, 0, 0)]
    ids, modes, values, true, false = zip(*reversed(nodes), strict=True)
    count = len(nodes)
    table = np.array(values, np.float32)
    return forest_of_nodes((5,) * count, ids, (0,) * count, modes, table, true, false, None)


def test_deep_trees_in_any_order_of_nodes(monkeypatch):
    forest, leaf_of = chain(50)
    rows = np.arange(60, dtype=np.float32)[:, None]
    expected = [leaf_of[5, 100 + k] if k < 50 else leaf_of[5, 50] for k in range(60)]
    assert leaves_of(forest, rows)[:, 0].tolist() == expected
    monkeypatch.setattr(foldline.kernels.ml_trees, "_BLOCK", 7)
    assert leaves_of(forest, rows)[:, 0].tolist() == expected


def test_a_tree_may_be_one_leaf_and_there_may_be_no_rows():
    single = forest_of_nodes((3,), (0,), (0,), ("LEAF",), np.zeros(1, np.float32), (0,), (0,), None)
    assert leaves_of(single[0], np.zeros((2, 1), np.float32)).tolist() == [[0], [0]]
    assert leaves_of(stump()[0], np.zeros((0, 1), np.float32)).shape == (0, 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ids": (0, 1, 1)}, "occurs twice"),
        ({"modes": ("BRANCH_ODD", "LEAF", "LEAF")}, "BRANCH_ODD"),
        ({"true": (7, 0, 0)}, "does not exist"),
    ],
)
def test_nodes_that_are_no_trees(change, message):
    parts = {"ids": (0, 1, 2), "modes": ("BRANCH_LT", "LEAF", "LEAF"), "true": (1, 0, 0)} | change
    with pytest.raises(ValueError, match=message):
        forest_of_nodes(
            (0, 0, 0),
            parts["ids"],
            (0, 0, 0),
            parts["modes"],
            np.zeros(3, np.float32),
            parts["true"],
            (2, 0, 0),
            None,
        )


def test_a_cycle_is_found():
    modes = ("BRANCH_LT", "BRANCH_LT", "LEAF")
    forest, _ = forest_of_nodes(
        (0, 0, 0), (0, 1, 2), (0, 0, 0), modes, np.ones(3, np.float32), (1, 1, 0), (2, 2, 0), None
    )
    with pytest.raises(ValueError, match="leads back"):
        leaves_of(forest, np.zeros((1, 1), np.float32))


LEAVES = np.array([[0, 1], [1, 1]])
ENTRIES = [(0, 0, 4.0), (0, 2, -1.0), (1, 0, 2.0), (1, 0, 1.0)]


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        ("SUM", [[7, 0, -1], [6, 0, 0]]),
        ("AVERAGE", [[3.5, 0, -0.5], [3, 0, 0]]),
        ("MIN", [[1, 0, -1], [1, 0, 0]]),
        ("MAX", [[4, 0, -1], [2, 0, 0]]),
    ],
)
def test_votes(aggregate, expected):
    votes = votes_of(2, 3, ENTRIES, aggregate, FLOAT32)
    scores, voted = aggregated(LEAVES, votes, 3, aggregate)
    assert scores.dtype == np.float32
    assert scores.tolist() == expected
    assert voted.tolist() == [[True, False, True], [True, False, False]]


def test_votes_are_added_in_the_order_of_trees():
    votes = votes_of(3, 1, [(0, 0, 1e8), (1, 0, -1e8), (2, 0, 1.0)], "SUM", FLOAT32)
    leaves = np.array([[0, 1, 2], [0, 2, 1]])
    assert aggregated(leaves, votes, 1, "SUM")[0].tolist() == [[1], [0]]


def test_votes_that_are_refused():
    with pytest.raises(ValueError, match="votes for 3"):
        votes_of(2, 3, [(0, 3, 1.0)], "SUM", FLOAT32)
    with pytest.raises(ValueError, match="'MEDIAN'"):
        votes_of(2, 3, ENTRIES, "MEDIAN", FLOAT32)
