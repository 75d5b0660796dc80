import itertools
import statistics

import numpy as np
import pytest
from onnx import TensorProto

import foldline.kernels.ml_svm
from foldline.kernels.registry import GRADES, compute, find_kernel
from tests.kernels.one_node import ML, assert_as_onnxruntime, own_results

X = np.random.default_rng(0).normal(size=(30, 3)).astype(np.float32)
KERNELS = ["LINEAR", "POLY", "RBF", "SIGMOID"]
TRANSFORMS = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"]
CLASSES = (TensorProto.INT64, TensorProto.FLOAT)


def draw(rng, count):
    return [float(v) for v in rng.normal(size=count).astype(np.float32)]


def machine(classes, kernel, *, probabilities, seed=1):
    rng = np.random.default_rng(seed)
    per_class = [2, 3, 1, 2][:classes]
    pairs = classes * (classes - 1) // 2
    options = {
        "coefficients": draw(rng, (classes - 1) * sum(per_class)),
        "kernel_params": [0.3, 0.1, 2.0],
        "kernel_type": kernel,
        "rho": draw(rng, pairs),
        "support_vectors": draw(rng, 3 * sum(per_class)),
        "vectors_per_class": per_class,
        "classlabels_ints": list(range(10, 10 + classes)),
    }
    if probabilities:
        options["prob_a"] = [-abs(v) for v in draw(rng, pairs)]
        options["prob_b"] = draw(rng, pairs)
    return options


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("probabilities", [False, True])
def test_machines_as_onnxruntime(kernel, classes, probabilities):
    options = machine(classes, kernel, probabilities=probabilities)
    check = {"domain": ML, "outputs": CLASSES, "tolerance": 2e-4}
    assert_as_onnxruntime("SVMClassifier", 1, [X], options, **check)


@pytest.mark.parametrize(
    ("transform", "classes", "probabilities"),
    [
        case
        for case in itertools.product(TRANSFORMS, [2, 3], [False, True])
        if case != ("PROBIT", 2, False)  # of which the runtime makes garbage
    ],
)
def test_transforms_as_onnxruntime(transform, classes, probabilities):
    options = machine(classes, "RBF", probabilities=probabilities) | {"post_transform": transform}
    check = {"domain": ML, "outputs": CLASSES, "tolerance": 2e-4}
    assert_as_onnxruntime("SVMClassifier", 1, [X], options, **check)


@pytest.mark.parametrize("classes", [1, 2, 3])
@pytest.mark.parametrize("positive", [False, True])
def test_linear_machines_as_onnxruntime(classes, positive):
    weights = draw(np.random.default_rng(classes), 3 * classes)
    options = {
        "coefficients": [abs(v) for v in weights] if positive else weights,
        "kernel_params": [0.0, 0.0, 0.0],
        "rho": [0.1],
        "classlabels_ints": list(range(10, 10 + classes)),
    }
    check = {"domain": ML, "outputs": CLASSES}
    assert_as_onnxruntime("SVMClassifier", 1, [X], options, **check)


def regression(kernel):
    rng = np.random.default_rng(3)
    return {
        "coefficients": draw(rng, 4),
        "kernel_params": [0.3, 0.1, 3.0],
        "kernel_type": kernel,
        "n_supports": 4,
        "rho": [0.2],
        "support_vectors": draw(rng, 12),
    }


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("one_class", [0, 1])
def test_regression_as_onnxruntime(kernel, one_class):
    options = regression(kernel) | {"one_class": one_class}
    check = {"domain": ML, "outputs": (TensorProto.FLOAT,)}
    assert_as_onnxruntime("SVMRegressor", 1, [X], options, **check)


@pytest.mark.parametrize("transform", TRANSFORMS[:-1])
def test_regression_has_one_score_which_transforms_leave_as_in_onnxruntime(transform):
    options = regression("RBF") | {"post_transform": transform}
    check = {"domain": ML, "outputs": (TensorProto.FLOAT,)}
    assert_as_onnxruntime("SVMRegressor", 1, [X], options, **check)


def test_probits_of_a_regression():
    # The runtime leaves them out, here and nowhere else.
    options = regression("RBF")
    scores = own_results("SVMRegressor", 1, [X], options, domain=ML)[0]
    chances = scores[(scores > 0) & (scores < 1)]
    assert len(chances) > 10
    options["post_transform"] = "PROBIT"
    result = own_results("SVMRegressor", 1, [X], options, domain=ML)[0]
    exact = [statistics.NormalDist().inv_cdf(float(p)) for p in chances]
    np.testing.assert_allclose(result[(scores > 0) & (scores < 1)], exact, atol=6e-3)


def test_linear_regression():
    x = np.array([[1, 2, 3], [0, 0, -1]], np.int64)
    options = {"coefficients": [1.0, 0.5, 2.0], "rho": [0.25]}
    result = own_results("SVMRegressor", 1, [x], options, domain=ML)[0]
    assert result.dtype == np.float32
    assert result.tolist() == [[8.25], [-1.75]]


def test_strings_and_other_features():
    options = machine(3, "LINEAR", probabilities=False)
    numbers = own_results("SVMClassifier", 1, [X], options, domain=ML)
    del options["classlabels_ints"]
    options["classlabels_strings"] = ["a", "b", "c"]
    labels, scores = own_results("SVMClassifier", 1, [X.astype(np.float64)], options, domain=ML)
    assert labels.tolist() == ["abc"[label - 10] for label in numbers[0]]
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, numbers[1], rtol=1e-5, atol=1e-5)


def test_blocks_of_distances(monkeypatch):
    options = machine(2, "RBF", probabilities=False)
    whole = own_results("SVMClassifier", 1, [X], options, domain=ML)
    monkeypatch.setattr(foldline.kernels.ml_svm, "_BLOCK", 32)
    parts = own_results("SVMClassifier", 1, [X], options, domain=ML)
    assert np.array_equal(whole[1], parts[1])
    assert own_results("SVMClassifier", 1, [X[:0]], options, domain=ML)[1].shape == (0, 2)


def test_unknown_kernel():
    options = machine(2, "COSINE", probabilities=False)
    with pytest.raises(ValueError, match="COSINE"):
        own_results("SVMClassifier", 1, [X], options, domain=ML)


def exact_and_fast(op_type, x, options):
    entries = [find_kernel(ML, op_type, 1, GRADES[mode]) for mode in ("exact", "fast")]
    return [compute(entry, [x], **options) for entry in entries]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("probabilities", [False, True])
def test_exact_mode_is_near(kernel, dtype, probabilities):
    for classes in (2, 4):
        options = machine(classes, kernel, probabilities=probabilities)
        (label, found), (expected, scores) = exact_and_fast(
            "SVMClassifier", X.astype(dtype), options
        )
        np.testing.assert_array_equal(label, expected)
        assert found.dtype == scores.dtype == np.float32
        np.testing.assert_allclose(found, scores, rtol=1e-4, atol=1e-5)
    found, expected = exact_and_fast("SVMRegressor", X.astype(dtype), regression(kernel))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kernel", [*KERNELS, "none"])
def test_rows_stand_alone_in_exact_mode_and_have_the_one_nan(kernel):
    """No product of BLAS, whose bits hang on the other rows."""
    options = {"coefficients": [1.5, -2.0, 0.3] * 3, "rho": [0.1], "classlabels_ints": [1, 2, 3]}
    if kernel != "none":
        options = machine(3, kernel, probabilities=False)
    x = X.copy()
    x.view(np.uint32)[4, 1] = 0xFFC00001
    _, whole = exact_and_fast("SVMClassifier", x, options)[0]
    assert whole[np.isnan(whole)].view(np.uint32).tolist() == [0x7FC00000] * 3
    for row in range(len(x)):
        _, part = exact_and_fast("SVMClassifier", x[row : row + 1], options)[0]
        assert part.tobytes() == whole[row : row + 1].tobytes()
