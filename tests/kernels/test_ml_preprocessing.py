import numpy as np
import pytest
from onnx import TensorProto

from foldline.kernels.ml_preprocessing import (
    array_feature_extractor,
    binarizer,
    feature_vectorizer,
    imputer,
    normalizer,
    scaler,
)
from foldline.kernels.registry import compute, find_kernel
from tests.kernels.one_node import ML, assert_as_onnxruntime

X = np.array([[1, -2, 3], [0, 0, 0], [-1, -5, -2]], np.float32)


def check(op_type, inputs, options, code=TensorProto.FLOAT):
    assert_as_onnxruntime(op_type, 1, inputs, options, domain=ML, outputs=(code,))


@pytest.mark.parametrize("x", [X, X[0], X.reshape(3, 1, 3), X.astype(np.int64)])
def test_extractor_as_onnxruntime(x):
    code = TensorProto.INT64 if x.dtype == np.int64 else TensorProto.FLOAT
    check("ArrayFeatureExtractor", [x, np.array([[2, 0]])], {}, code)


def test_extractor():
    words = np.array(["a", "b", "c"], object)
    assert array_feature_extractor(words, np.array([2, 2])).tolist() == [["c", "c"]]
    for wrong in (-1, 3):
        with pytest.raises(IndexError, match=f"index {wrong} is not among the 3 features"):
            array_feature_extractor(X, np.array([0, wrong]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_binarizer(dtype):
    result = binarizer(X.astype(dtype), threshold=0.5)
    assert result.dtype == dtype
    assert result.tolist() == [[1, 0, 1], [0, 0, 0], [0, 0, 0]]
    assert binarizer(np.array(3, dtype), threshold=3.0).tolist() == 0


def test_binarizer_of_special_values():
    x = np.array([np.nan, np.inf, -np.inf, -0.0], np.float32)
    assert binarizer(x).tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize(
    ("inputs", "sizes"), [([X, X[:, :1]], [2, 2]), ([X[0], X[1]], [3, 3]), ([X, X], [3, 3])]
)
def test_vectorizer_as_onnxruntime(inputs, sizes):
    check("FeatureVectorizer", inputs, {"inputdimensions": sizes})


def test_vectorizer():
    result = feature_vectorizer(np.array([[1], [2]]), np.array([[3, 4], [5, 6]]))
    assert result.dtype == np.float32
    assert result.tolist() == [[1, 3, 4], [2, 5, 6]]
    with pytest.raises(ValueError, match="1 inputdimensions, 2 inputs"):
        feature_vectorizer(X, X, inputdimensions=(3,))


@pytest.mark.parametrize("values", [[5.0], [5.0, 6.0, 7.0]])
@pytest.mark.parametrize("replaced", [0.0, float("nan")])
def test_imputer_as_onnxruntime(values, replaced):
    x = np.where(X == -2, np.float32(np.nan), X)
    check("Imputer", [x], {"imputed_value_floats": values, "replaced_value_float": replaced})


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_imputer_of_integers(dtype):
    x = np.array([[0, 9], [9, 1]], dtype)
    result = imputer(x, imputed_value_int64s=(7, 8), replaced_value_int64=9)
    assert result.dtype == dtype
    assert result.tolist() == [[0, 8], [7, 1]]
    assert x[0, 1] == 9
    with pytest.raises(ValueError, match="imputed_value_int64s"):
        imputer(x, imputed_value_floats=(1.0,))


def test_imputer_of_double_keeps_the_other_elements():
    x = np.array([0.1, 0.0])
    assert imputer(x, imputed_value_floats=(0.5,)).tolist() == [0.1, 0.5]


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
@pytest.mark.parametrize("x", [X, X[0], X.astype(np.int64), X.astype(np.float64)])
def test_normalizer_as_onnxruntime(norm, x):
    check("Normalizer", [x], {"norm": norm})


def test_normalizer():
    assert normalizer(X).tolist()[1:] == [[0, 0, 0], [1, 5, 2]]
    assert normalizer(np.zeros((2, 0), np.float32)).shape == (2, 0)
    with pytest.raises(ValueError, match="'L3'"):
        normalizer(X, norm="L3")


@pytest.mark.parametrize("x", [X, X.astype(np.int64), X.astype(np.float64)])
@pytest.mark.parametrize("count", [1, 3])
def test_scaler_as_onnxruntime(x, count):
    check("Scaler", [x], {"offset": [1.0, 0.5, 0.0][:count], "scale": [2.0, 0.1, 3.0][:count]})


def test_scaler_without_attributes_is_a_cast():
    result = scaler(np.array([[2**24 + 1, 3]]))
    assert result.dtype == np.float32
    assert result.tolist() == [[2**24, 3]]
    precise = scaler(np.array([1 + 2**-40]), offset=(1.0,), scale=(2.0,))
    assert precise.tolist() == [2**-39]


def _by_grade(op_type, x, attributes, grade):
    kernel = find_kernel(ML, op_type, 1, [grade])
    return compute(kernel, [x], **attributes)


ROWS = np.array(
    [[1.5, -2, 0], [0, 0, 0], [-1, -3, -2], [np.inf, 1, 2], [1, np.nan, 2], [1e-30, 0, -1e-30]],
    np.float32,
)


@pytest.mark.parametrize("norm", ["L1", "L2", "MAX"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("shape", [(6, 3), (2, 3, 3), (18,), (3,), (0, 3), (4, 0), (18, 1), (2, 9)])
def test_the_fast_normalizer_is_the_reference_but_for_rounding(norm, dtype, shape):
    with np.errstate(invalid="ignore"):
        x = np.resize(ROWS, shape).astype(dtype)
    fast = _by_grade("Normalizer", x, {"norm": norm}, "fast")
    expected = _by_grade("Normalizer", x, {"norm": norm}, "reference")
    assert fast.dtype == expected.dtype
    np.testing.assert_allclose(fast, expected, rtol=3e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("scale", [[0.1, 3.0, -7.0], [0.25], None])
@pytest.mark.parametrize("into", [False, True])
def test_the_fast_scaler_has_the_values_of_the_reference(dtype, scale, into):
    with np.errstate(invalid="ignore"):
        x = ROWS.astype(dtype)
    attributes = {"offset": [0.1, -0.3, 5.0], "scale": scale}
    expected = _by_grade("Scaler", x, attributes, "reference")
    out = np.full(x.shape, 9, np.float32) if into else None
    if into:
        attributes["out"] = out
    fast = _by_grade("Scaler", x, attributes, "fast")
    assert out is None or fast is out
    assert fast.dtype == np.float32
    np.testing.assert_array_equal(fast, expected)
