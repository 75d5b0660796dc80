import numpy as np
import pytest
from onnx import TensorProto

import foldline.kernels.ml_linear  # noqa: F401
from foldline.kernels.registry import compute, find_kernel
from tests.kernels.one_node import ML, assert_as_onnxruntime, own_results

X = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
TRANSFORMS = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"]
ROWS = {
    "coefficients": [0.3, 0.1, 0.2, -0.1, -0.2, 0.3, 0.4, 0.0, -0.3],
    "intercepts": [0.0, 0.1, 0.4],
}


def classifier(x, **options):
    return own_results("LinearClassifier", 1, [x], options, domain=ML)


def regressor(x, **options):
    return own_results("LinearRegressor", 1, [x], options, domain=ML)[0]


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("multinomial", [0, 1])
def test_classes_as_onnxruntime(transform, multinomial):
    options = ROWS | {"classlabels_strings": ["a", "b", "c"], "post_transform": transform}
    options["multi_class"] = multinomial  # says how it was trained
    types = (TensorProto.STRING, TensorProto.FLOAT)
    assert_as_onnxruntime("LinearClassifier", 1, [X], options, domain=ML, outputs=types)


@pytest.mark.parametrize("transform", TRANSFORMS[:-1])  # of which the runtime makes garbage
def test_two_classes_with_one_score_as_onnxruntime(transform):
    options = {"coefficients": [0.3, 0.1, 0.2], "intercepts": [0.1], "classlabels_ints": [5, 7]}
    options["post_transform"] = transform
    types = (TensorProto.INT64, TensorProto.FLOAT)
    assert_as_onnxruntime("LinearClassifier", 1, [X], options, domain=ML, outputs=types)


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.int64])
def test_other_features_as_onnxruntime(dtype):
    options = ROWS | {"classlabels_ints": [5, 7, 9]}
    types = (TensorProto.INT64, TensorProto.FLOAT)
    x = (X * 5).astype(dtype)
    assert_as_onnxruntime("LinearClassifier", 1, [x], options, domain=ML, outputs=types)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("targets", [1, 3])
def test_regression_as_onnxruntime(transform, targets):
    options = {"coefficients": ROWS["coefficients"][: 3 * targets], "targets": targets}
    options |= {"intercepts": ROWS["intercepts"][:targets], "post_transform": transform}
    types = (TensorProto.FLOAT,)
    assert_as_onnxruntime("LinearRegressor", 1, [X], options, domain=ML, outputs=types)


def test_one_label_and_no_intercepts():
    x = np.array([[1, 2], [-1, 0]], np.int64)
    labels, scores = classifier(x, coefficients=[1.0, 0.5], classlabels_ints=[4])
    assert labels.tolist() == [1, 0]
    assert scores.tolist() == [[2], [-1]]
    labels, scores = classifier(x, coefficients=[1.0, 0.5], classlabels_strings=["no", "yes"])
    assert labels.tolist() == ["yes", "no"]
    assert scores.tolist() == [[-1, 2], [2, -1]]


def test_a_vector_is_one_row_and_no_rows_are_none():
    assert regressor(X[0], coefficients=[1.0, 1.0, 1.0])[0, 0] == pytest.approx(X[0].sum())
    labels, scores = classifier(X[:0], classlabels_ints=[1, 2, 3], **ROWS)
    assert labels.shape == (0,)
    assert scores.shape == (0, 3)


def test_double_features_are_computed_in_double():
    x = np.array([[1, 1e-9]])
    result = regressor(x, coefficients=[1.0, 1.0], intercepts=[-1.0])
    assert result.dtype == np.float32
    assert result[0, 0] == pytest.approx(1e-9)


def test_coefficients_must_fit():
    with pytest.raises(ValueError, match="4 coefficients for 1 x 3"):
        regressor(X, coefficients=[1.0] * 4)
    with pytest.raises(ValueError, match="4 coefficients"):
        classifier(X, coefficients=[1.0] * 4, classlabels_ints=[1, 2])


def test_surplus_coefficients_have_no_effect_as_in_onnxruntime():
    options = ROWS | {"coefficients": [*ROWS["coefficients"], 9.0, 9.0, 9.0]}
    options["classlabels_ints"] = [5, 7, 9]
    types = (TensorProto.INT64, TensorProto.FLOAT)
    assert_as_onnxruntime("LinearClassifier", 1, [X], options, domain=ML, outputs=types)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("count", [0, 1, 6])
def test_the_fast_kernels_are_the_reference_but_for_rounding(transform, dtype, count):
    x = (X[:count] * 40).astype(dtype)
    labels = {"classlabels_ints": (5, 6, 7), "post_transform": transform}
    for op_type, options in (
        ("LinearClassifier", ROWS | labels),
        ("LinearRegressor", ROWS | {"targets": 3, "post_transform": transform}),
    ):
        if op_type == "LinearClassifier" and not count:
            continue
        fast, expected = (
            compute(find_kernel(ML, op_type, 1, [grade]), [x], **options)
            for grade in ("fast", "reference")
        )
        if op_type == "LinearClassifier":
            np.testing.assert_array_equal(fast[0], expected[0])
            fast, expected = fast[1], expected[1]
        assert fast.dtype == expected.dtype
        np.testing.assert_allclose(fast, expected, rtol=2e-5, atol=2e-7)
