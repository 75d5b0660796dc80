import numpy as np
import pytest

import foldline.kernels.ml_tree_ensembles  # noqa: F401
from foldline.kernels.ml_tree_table import tabulated
from foldline.kernels.ml_trees import forest_of_nodes, leaves_of
from foldline.kernels.registry import Operand, find_kernel

ML = "ai.onnx.ml"
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0)


def _trees(random, trees, depth, features, thresholds, mode):
    """Attributes of complete trees, and (tree, node) of each leaf."""
    rows, leaves = [], []
    inner = 2**depth - 1
    for tree in range(trees):
        for node in range(2 ** (depth + 1) - 1):
            is_leaf = node >= inner
            if is_leaf:
                leaves.append((tree, node))
            rows.append(
                (
                    tree,
                    node,
                    int(random.integers(features)),
                    "LEAF" if is_leaf else mode,
                    0.0 if is_leaf else float(random.choice(thresholds)),
                    0 if is_leaf else 2 * node + 1,
                    0 if is_leaf else 2 * node + 2,
                )
            )
    names = ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids")
    columns = zip(*rows, strict=True)
    attributes = {f"nodes_{n}": c for n, c in zip(names, columns, strict=True)}
    return attributes, leaves


def _classifier(random, mode, classes=3, **shape):
    attributes, leaves = _trees(random, mode=mode, **shape)
    tree_ids, node_ids = zip(*leaves, strict=True)
    return attributes | {
        "class_treeids": tree_ids,
        "class_nodeids": node_ids,
        "class_ids": tuple(random.integers(classes, size=len(leaves)).tolist()),
        "class_weights": tuple(random.uniform(-1, 1, len(leaves)).astype(np.float32).tolist()),
        "classlabels_int64s": tuple(range(10, 10 + classes)),
        "post_transform": "SOFTMAX",
    }


def _made(op_type, grade, x, attributes):
    kernel = find_kernel(ML, op_type, 3, [grade])
    made = kernel.function(Operand(x.shape, x.dtype), **attributes)
    return made


def _rows(random, count, features, thresholds, dtype):
    """Around, at and beyond the thresholds, and what is special of floats."""
    values = np.concatenate(
        [thresholds, np.nextafter(thresholds, np.inf), np.nextafter(thresholds, -np.inf), SPECIAL]
    )
    return random.choice(values, (count, features)).astype(dtype)


@pytest.mark.parametrize("mode", ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_small_classifier_is_looked_up_with_the_bits_of_the_walk(mode, dtype):
    random = np.random.default_rng(1)
    thresholds = np.array([-1.5, 0.0, 0.25, 2.0], np.float32)
    attributes = _classifier(random, mode, trees=3, depth=3, features=3, thresholds=thresholds)
    x = _rows(random, 200, 4, thresholds, dtype)
    fast = _made("TreeEnsembleClassifier", "fast", x, attributes)
    assert fast.__module__ == "foldline.kernels.ml_tree_table"
    labels, scores = fast(x)
    expected_labels, expected_scores = _made("TreeEnsembleClassifier", "reference", x, attributes)(
        x
    )
    assert labels.dtype == np.int64
    assert len(set(labels.tolist())) == 3
    np.testing.assert_array_equal(labels, expected_labels)
    assert scores.dtype == np.float32
    assert scores.tobytes() == expected_scores.tobytes()


@pytest.mark.parametrize("rows", [1, 7])
def test_a_small_regressor_is_looked_up(rows):
    random = np.random.default_rng(2)
    thresholds = np.array([-np.inf, -1, 0.5, np.inf], np.float32)
    shape = {"trees": 2, "depth": 3, "features": 2, "thresholds": thresholds}
    attributes, leaves = _trees(random, mode="BRANCH_LEQ", **shape)
    tree_ids, node_ids = zip(*leaves, strict=True)
    attributes |= {
        "target_treeids": tree_ids,
        "target_nodeids": node_ids,
        "target_ids": (0,) * len(leaves),
        "target_weights": tuple(random.uniform(-1, 1, len(leaves)).tolist()),
        "n_targets": 1,
    }
    x = _rows(random, rows, 2, thresholds, np.float32)
    fast = _made("TreeEnsembleRegressor", "fast", x, attributes)
    expected = _made("TreeEnsembleRegressor", "reference", x, attributes)(x)
    assert fast.__module__ == "foldline.kernels.ml_tree_table"
    assert fast(x).shape == (rows, 1)
    assert fast(x).tobytes() == expected.tobytes()


def _forest(mode="BRANCH_LEQ", missing=None, features=(0, 1, 0), trees=1, thresholds=(1.0, 2.0)):
    random = np.random.default_rng(3)
    attributes, _ = _trees(random, trees, 3, len(features), thresholds, mode)
    nodes = len(attributes["nodes_modes"])
    forest, _ = forest_of_nodes(
        attributes["nodes_treeids"],
        attributes["nodes_nodeids"],
        attributes["nodes_featureids"],
        attributes["nodes_modes"],
        np.array(attributes["nodes_values"], np.float32),
        attributes["nodes_truenodeids"],
        attributes["nodes_falsenodeids"],
        None if missing is None else [missing] * nodes,
    )
    return forest


FLOATS = np.dtype(np.float32)


@pytest.mark.parametrize(
    ("forest", "x"),
    [
        (_forest(mode="BRANCH_EQ"), Operand((2, 3), FLOATS)),
        (_forest(missing=1), Operand((2, 3), FLOATS)),
        (_forest(), Operand((2, 3), np.dtype(np.int64))),
        (_forest(), Operand((3,), FLOATS)),
        (_forest(), Operand((0, 3), FLOATS)),
        (_forest(), Operand((2, 1), FLOATS)),
        (_forest(), Operand((1 << 16, 3), FLOATS)),
        (_forest(trees=40, thresholds=np.arange(999.0)), Operand((2, 3), FLOATS)),
    ],
    ids=["equal", "missing", "int64", "vector", "no rows", "few features", "many rows", "large"],
)
def test_what_is_no_small_grid_is_left_to_the_walk(forest, x):
    assert tabulated(forest, lambda rows: leaves_of(forest, rows), x) is None


def test_a_small_grid_is_not_left_to_the_walk():
    forest = _forest()
    look_up = tabulated(forest, lambda rows: leaves_of(forest, rows), Operand((2, 3), FLOATS))
    x = np.array([[1, 2, 3], [0, np.nan, -1]], np.float32)
    assert look_up is not None
    np.testing.assert_array_equal(look_up(x), leaves_of(forest, x))
