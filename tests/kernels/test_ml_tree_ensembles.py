"""Random forests against ONNX Runtime, and what it does not have by hand."""

import itertools

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper

import foldline.kernels.ml_tree_ensembles  # noqa: F401
from tests.kernels.one_node import ML, assert_as_onnxruntime, onnxruntime_results, own_results

LEQ = ["BRANCH_LEQ"]
MODES = [f"BRANCH_{name}" for name in ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ")]
TRANSFORMS = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"]
NODES = ("treeids", "nodeids", "modes", "featureids", "values", "truenodeids", "falsenodeids")


def features(missing=False):
    rng = np.random.default_rng(9)
    x = rng.normal(size=(30, 4)).astype(np.float32)
    x[:10] = np.rint(x[:10])
    if missing:
        x[rng.random(x.shape) < 0.2] = np.nan
    return x


def grow(rng, nodes, votes, depth, modes, draw_votes):
    """Append a random subtree to `nodes` and its votes to `votes`; the id of its root."""
    here = len(nodes)
    nodes.append(("LEAF", 0, 0.0, 0, 0))
    if not depth or rng.random() < 0.2:
        votes += [(here, target, weight) for target, weight in draw_votes()]
        return here
    mode = modes[rng.integers(len(modes))]
    split = float(np.float32(rng.integers(-2, 3) if "EQ" in mode else rng.normal()))
    true, false = (grow(rng, nodes, votes, depth - 1, modes, draw_votes) for _ in range(2))
    nodes[here] = (mode, int(rng.integers(4)), split, true, false)
    return here


def forest(kind, *, targets=(0,), each=1, modes=LEQ, scale=None, missing=False, seed=3, trees=6):
    """Attributes of a random ensemble; `each` votes a leaf, none negative with `scale`."""
    rng = np.random.default_rng(seed)

    def draw_votes():
        chosen = rng.choice(targets, min(each, len(targets)), replace=False)
        weights = rng.normal(size=len(chosen)) if scale is None else rng.random(len(chosen)) * scale
        return [(int(t), float(np.float32(w))) for t, w in zip(chosen, weights, strict=True)]

    rows, ballots = [], []
    for tree in range(trees):
        nodes, votes = [], []
        grow(rng, nodes, votes, 4, modes, draw_votes)
        rows += [(tree, at, *node) for at, node in enumerate(nodes)]
        ballots += [(tree, *vote) for vote in votes]
    columns = zip(*rows, strict=True)
    options = {f"nodes_{name}": list(column) for name, column in zip(NODES, columns, strict=True)}
    names = ("treeids", "nodeids", "ids", "weights")
    for name, column in zip(names, zip(*ballots, strict=True), strict=True):
        options[f"{kind}_{name}"] = list(column)
    if missing:
        options["nodes_missing_value_tracks_true"] = rng.integers(0, 2, len(rows)).tolist()
    return options


def check_regressor(options, x=None):
    x = features() if x is None else x
    types = (TensorProto.FLOAT,)
    assert_as_onnxruntime("TreeEnsembleRegressor", 1, [x], options, domain=ML, outputs=types)


def check_classifier(options, labels=TensorProto.INT64, x=None):
    types = (labels, TensorProto.FLOAT)
    inputs = [features() if x is None else x]
    assert_as_onnxruntime("TreeEnsembleClassifier", 1, inputs, options, domain=ML, outputs=types)


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("modes", [LEQ, MODES])
def test_regressors(aggregate, targets, modes):
    options = forest("target", targets=range(targets), each=targets, modes=modes)
    options |= {"n_targets": targets, "aggregate_function": aggregate}
    check_regressor(options)
    check_regressor(options | {"base_values": [0.5, -1.25, 3.0][:targets]})


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("tracks", [False, True])
def test_regressors_with_missing_values(mode, tracks):
    options = forest("target", modes=[mode], missing=tracks) | {"n_targets": 1}
    check_regressor(options, features(missing=True))


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("targets", [1, 3])
def test_transforms_of_regressors(transform, targets):
    options = forest("target", targets=range(targets), each=2)
    check_regressor(options | {"n_targets": targets, "post_transform": transform})


def test_double_features():
    check_regressor(forest("target") | {"n_targets": 1}, features().astype(np.float64))


def test_integer_features_and_votes_at_inner_nodes():
    options = forest("target") | {"n_targets": 1}
    x = (features() * 3).astype(np.int64)
    expected = own_results("TreeEnsembleRegressor", 3, [x.astype(np.float32)], options, domain=ML)
    inner = options["nodes_modes"].index("BRANCH_LEQ")
    for name, value in (("treeids", 0), ("nodeids", inner), ("ids", 0), ("weights", 99.0)):
        options[f"target_{name}"] = [*options[f"target_{name}"], value]
    actual = own_results("TreeEnsembleRegressor", 3, [x], options, domain=ML)
    assert np.array_equal(actual[0], expected[0])


def test_tensor_attributes_are_double():
    options = forest("target") | {"n_targets": 1}
    plain = own_results("TreeEnsembleRegressor", 3, [features()], options, domain=ML)[0]
    tensors = {
        f"{name}_as_tensor": numpy_helper.from_array(np.array(options.pop(name)) + shift)
        for name, shift in (("nodes_values", 0), ("target_weights", 2**-30))
    }
    result = own_results("TreeEnsembleRegressor", 3, [features()], options | tensors, domain=ML)[0]
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, plain, atol=1e-5)
    tensors["base_values_as_tensor"] = numpy_helper.from_array(np.array([1e9]))
    big = own_results("TreeEnsembleRegressor", 3, [features()], options | tensors, domain=ML)[0]
    assert (big == 1e9).all()


@pytest.mark.parametrize(
    ("op_type", "kind", "results"),
    [
        ("TreeEnsembleClassifier", "class", (TensorProto.INT64, TensorProto.FLOAT)),
        ("TreeEnsembleRegressor", "target", (TensorProto.FLOAT,)),
    ],
)
@pytest.mark.parametrize("tracks", [False, True])
@pytest.mark.parametrize("as_tensors", [False, True])
def test_lists_and_tensors_as_onnxruntime(op_type, kind, results, tracks, as_tensors):
    options = forest(kind, targets=range(3), each=2, missing=tracks)
    numbers = {name: options.pop(name) for name in ("nodes_values", f"{kind}_weights")}
    numbers["base_values"] = [0.5, 0.25, 1.0]
    numbers["nodes_hitrates"] = [1.0] * len(options["nodes_modes"])
    if as_tensors:
        numbers = {
            f"{name}_as_tensor": numpy_helper.from_array(np.array(values))
            for name, values in numbers.items()
        }
    options |= numbers | (
        {"classlabels_int64s": [7, 8, 9]} if kind == "class" else {"n_targets": 3}
    )
    # The runtime takes tensors of double for features of double only.
    x = features(missing=True).astype(np.float64 if as_tensors else np.float32)
    assert_as_onnxruntime(op_type, 3, [x], options, domain=ML, outputs=results)


@pytest.mark.parametrize("mode", MODES)
def test_classifiers_with_missing_values(mode):
    options = forest("class", targets=range(3), each=2, modes=[mode], missing=True)
    options["classlabels_int64s"] = [7, 8, 9]
    check_classifier(options, x=features(missing=True))


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("each", [1, 3])
@pytest.mark.parametrize("base", [[], [0.25, -0.5, 1.0]])
def test_three_classes(transform, each, base):
    options = forest("class", targets=range(3), each=each) | {"post_transform": transform}
    options |= {"classlabels_strings": ["a", "b", "c"]} | ({"base_values": base} if base else {})
    check_classifier(options, TensorProto.STRING)


@pytest.mark.parametrize(
    ("transform", "scale", "base", "labels"),
    [
        *itertools.product(TRANSFORMS[:4], [None, 0.2], [[], [0.125]], [[7, 9]]),
        *itertools.product(TRANSFORMS, [None, 0.2], [[]], [[1], [7]]),
    ],
)
def test_two_classes_by_one_score(transform, scale, base, labels):
    options = forest("class", scale=scale) | {"post_transform": transform}
    options |= {"classlabels_int64s": labels} | ({"base_values": base} if base else {})
    check_classifier(options)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_votes_for_the_second_class_only(transform):
    options = forest("class", targets=(1,)) | {"post_transform": transform}
    check_classifier(options | {"classlabels_int64s": [7, 9]})


def test_two_classes_with_votes_of_their_own():
    # Here the runtime returns 1 or 0 whatever the labels are; the specification wants the top one.
    options = forest("class", targets=(0, 1), each=2, scale=0.3)
    options["classlabels_strings"] = ["low", "high"]
    labels, scores = own_results("TreeEnsembleClassifier", 3, [features()], options, domain=ML)
    assert set(labels) == {"low", "high"}
    assert labels.tolist() == ["high" if b > a else "low" for a, b in scores]


def test_base_values_must_fit():
    options = forest("class", targets=range(3)) | {"classlabels_int64s": [1, 2, 3]}
    with pytest.raises(ValueError, match="2 base values for 3"):
        own_results(
            "TreeEnsembleClassifier",
            3,
            [features()],
            options | {"base_values": [1.0, 2.0]},
            domain=ML,
        )


def ensemble(dtype=np.float32, **changes):
    """Feature 0 in {1, 3} -> 10, else feature 1 <= 0.5 -> 20 else 30; and a tree of one leaf."""
    tensor = numpy_helper.from_array
    options = {
        "n_targets": 2,
        "nodes_featureids": [0, 1, 0],
        "nodes_modes": tensor(np.array([6, 0, 0], np.uint8)),
        "nodes_splits": tensor(np.array([0, 0.5, 0], dtype)),
        "nodes_truenodeids": [0, 1, 3],
        "nodes_trueleafs": [1, 1, 1],
        "nodes_falsenodeids": [1, 2, 3],
        "nodes_falseleafs": [0, 1, 1],
        "leaf_targetids": [0, 0, 1, 1],
        "leaf_weights": tensor(np.array([10, 20, 30, 1], dtype)),
        "membership_values": tensor(np.array([1, 3, np.nan], dtype)),
        "tree_roots": [0, 2],
    }
    return options | changes


X = [[1, 0], [3, 1], [2, 0], [2, 1], [np.nan, 1]]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_members_and_single_leaves(dtype):
    result = own_results("TreeEnsemble", 5, [np.array(X, dtype)], ensemble(dtype), domain=ML)[0]
    assert result.dtype == dtype
    assert result.tolist() == [[10, 1], [10, 1], [20, 1], [0, 31], [0, 31]]


@pytest.mark.parametrize(
    ("aggregate", "last"), [(0, [0, 15.5]), (1, [0, 31]), (2, [0, 1]), (3, [0, 30])]
)
def test_aggregates_and_missing_members(aggregate, last):
    x = [np.array(X, np.float32)]
    options = ensemble(aggregate_function=aggregate)
    assert own_results("TreeEnsemble", 5, x, options, domain=ML)[0][-2].tolist() == last
    tracked = options | {"nodes_missing_value_tracks_true": [1, 0, 0]}
    weight = [5, 0.5] if aggregate == 0 else [10, 1]
    assert own_results("TreeEnsemble", 5, x, tracked, domain=ML)[0][-1].tolist() == weight


def check_ensemble(x, options):
    types = (TensorProto.FLOAT,)
    assert_as_onnxruntime("TreeEnsemble", 5, [np.float32(x)], options, domain=ML, outputs=types)


@pytest.mark.parametrize("mode", range(7))
@pytest.mark.parametrize("tracks", [0, 1])
def test_mode_codes_as_onnxruntime(mode, tracks):
    members = [1, 3, np.nan] + [0.5, 2, np.nan] * (mode == 6)
    options = ensemble(
        nodes_modes=numpy_helper.from_array(np.array([6, mode, 0], np.uint8)),
        membership_values=numpy_helper.from_array(np.array(members, np.float32)),
        nodes_missing_value_tracks_true=[0, tracks, 0],
    )
    check_ensemble([[1, 0], [0.5, 1], [0, 0.5], [np.nan, 0.5], [3, np.nan], [0, np.nan]], options)


@pytest.mark.parametrize("code", range(4))
def test_aggregate_codes_as_onnxruntime(code):
    check_ensemble(X[:-1], ensemble(aggregate_function=code))


@pytest.mark.parametrize(
    ("code", "name"),
    [(0, "NONE"), (1, "SOFTMAX"), (2, "LOGISTIC"), (3, "SOFTMAX_ZERO"), (4, "PROBIT")],
)
def test_transform_codes_mean_what_the_names_do(code, name):
    # The runtime takes 1 for LOGISTIC and 2 for SOFTMAX, against the schema.
    weights = numpy_helper.from_array(np.array([0.1, 0.2, 0.3, 0.25], np.float32))
    x, plain = [np.array(X, np.float32)], ensemble(leaf_weights=weights)
    scores = own_results("TreeEnsemble", 5, x, plain, domain=ML)[0]
    actual = own_results("TreeEnsemble", 5, x, plain | {"post_transform": code}, domain=ML)[0]
    expected = onnxruntime_results(
        "LinearRegressor",
        1,
        [scores],
        {"coefficients": [1.0, 0.0, 0.0, 1.0], "targets": 2, "post_transform": name},
        domain=ML,
        outputs=(TensorProto.FLOAT,),
    )
    np.testing.assert_allclose(actual, expected[0], rtol=1e-5)


def test_hit_rates_have_no_effect():
    rates = numpy_helper.from_array(np.array([9, 1, 0], np.float32))
    x = [np.array(X, np.float32)]
    plain = own_results("TreeEnsemble", 5, x, ensemble(), domain=ML)[0]
    rated = own_results("TreeEnsemble", 5, x, ensemble(nodes_hitrates=rates), domain=ML)[0]
    assert rated.tolist() == plain.tolist()


def test_lists_of_members_must_be_as_many_as_nodes():
    wrong = numpy_helper.from_array(np.array([1, 3], np.float32))
    with pytest.raises(ValueError, match="0 lists of membership values for 1"):
        own_results(
            "TreeEnsemble",
            5,
            [np.array(X, np.float32)],
            ensemble(membership_values=wrong),
            domain=ML,
        )
