import numpy as np
import pytest
from onnx import TensorProto, numpy_helper

import foldline.kernels.ml_labels  # noqa: F401
from tests.kernels.one_node import ML, assert_as_onnxruntime, own_results

WORDS = np.array([["b", "a"], ["z", ""]], object)


def encode(op_type, x, version=4, **options):
    return own_results(op_type, version, [x], options, domain=ML)[0]


def test_first_version_goes_both_ways():
    classes = {"classes_strings": ["a", "b"]}
    result = encode("LabelEncoder", WORDS, 1, **classes)
    assert result.dtype == np.int64
    assert result.tolist() == [[1, 0], [-1, -1]]
    back = encode("LabelEncoder", np.array([1, 2, -1]), 1, default_string="?", **classes)
    assert back.dtype == object
    assert back.tolist() == ["b", "?", "?"]


@pytest.mark.parametrize(
    ("version", "lists"),
    [
        (1, {"classes_strings": ["a", "b"]}),
        (2, {"keys_strings": ["a", "b"], "values_int64s": [3, 4]}),
        (4, {"keys_strings": ["a", "b"], "values_int64s": [3, 4]}),
    ],
)
def test_default_integers_as_onnxruntime(version, lists):
    options, types = lists | {"default_int64": 42}, (TensorProto.INT64,)
    assert_as_onnxruntime("LabelEncoder", version, [WORDS], options, domain=ML, outputs=types)


@pytest.mark.parametrize("version", [2, 4])
@pytest.mark.parametrize(
    ("keys", "x"),
    [
        ({"keys_strings": ["a", "b"]}, np.array(["b", "c", "a"], object)),
        ({"keys_int64s": [5, -5]}, np.array([-5, 0, 5])),
        ({"keys_floats": [0.5, float("nan")]}, np.array([np.nan, 1, 0.5], np.float32)),
    ],
)
@pytest.mark.parametrize(
    ("values", "expected", "dtype"),
    [
        ({"values_strings": ["x", "y"], "default_string": "?"}, ["y", "?", "x"], object),
        ({"values_int64s": [7, 8]}, [8, -1, 7], np.int64),
        ({"values_floats": [0.5, 1.5], "default_float": 9.0}, [1.5, 9, 0.5], np.float32),
    ],
)
def test_all_kinds_of_keys_and_values(version, keys, x, values, expected, dtype):
    result = encode("LabelEncoder", x, version, **keys, **values)
    assert result.dtype == dtype
    assert result.tolist() == expected
    scalar = encode("LabelEncoder", x[:1].reshape(()), version, **keys, **values)
    assert isinstance(scalar, np.ndarray)
    assert scalar.dtype == dtype
    assert encode("LabelEncoder", x[:0], version, **keys, **values).shape == (0,)


def test_the_default_of_floats_is_minus_zero():
    result = encode("LabelEncoder", np.array([3]), keys_int64s=[1], values_floats=[1.0])
    assert result.tolist() == [0]
    assert np.signbit(result).tolist() == [True]


@pytest.mark.parametrize("dtype", [np.float64, np.int16, np.int32])
def test_tensors(dtype):
    options = {
        "keys_tensor": numpy_helper.from_array(np.array([1, 2, 1], dtype)),
        "values_tensor": numpy_helper.from_array(np.array([10, 20, 30], dtype)),
        "default_tensor": numpy_helper.from_array(np.array([42], dtype)),
    }
    result = encode("LabelEncoder", np.array([1, 2, 3], dtype), **options)
    assert result.dtype == dtype
    assert result.tolist() == [30, 20, 42]  # of a key that occurs twice the last counts


def test_repeated_keys_of_every_kind():
    nan = float("nan")
    x = np.array([np.nan, 0, -0.0], np.float32)
    repeated = {"keys_floats": [nan, 0.0, -0.0, nan], "values_int64s": [1, 2, 3, 4]}
    assert encode("LabelEncoder", x, **repeated).tolist() == [4, 3, 3]
    words = {"keys_strings": ["a", "a"], "values_int64s": [1, 2]}
    assert encode("LabelEncoder", WORDS, **words).tolist() == [[-1, 2], [-1, -1]]


def test_lists_must_fit():
    for lists in ({}, {"keys_int64s": [1], "keys_floats": [1.0], "values_int64s": [1]}):
        with pytest.raises(ValueError, match="lists of keys"):
            encode("LabelEncoder", np.array([1]), **lists)
    with pytest.raises(ValueError, match="1 keys but 2 values"):
        encode("LabelEncoder", np.array([1]), keys_int64s=[1], values_int64s=[1, 2])


CATEGORIES = {"cats_strings": ["a", "b", "a"], "cats_int64s": [1, 2, 3]}


def test_category_mapper_as_onnxruntime():
    number, word = (TensorProto.INT64,), (TensorProto.STRING,)
    numbers = [np.array([1, 2, 9])]
    assert_as_onnxruntime("CategoryMapper", 1, [WORDS], CATEGORIES, domain=ML, outputs=number)
    assert_as_onnxruntime("CategoryMapper", 1, numbers, CATEGORIES, domain=ML, outputs=word)
    assert encode("CategoryMapper", WORDS, **CATEGORIES).tolist() == [[2, 3], [-1, -1]]


def test_defaults_of_the_category_mapper_as_onnxruntime():
    options = CATEGORIES | {"default_int64": 77, "default_string": "none"}
    number, word = (TensorProto.INT64,), (TensorProto.STRING,)
    numbers = [np.array([1, 2, 9])]
    assert_as_onnxruntime("CategoryMapper", 1, [WORDS], options, domain=ML, outputs=number)
    assert_as_onnxruntime("CategoryMapper", 1, numbers, options, domain=ML, outputs=word)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_one_hot_as_onnxruntime(dtype):
    x = np.array([[1.9, -2], [0.5, 7]], dtype)
    options = {"cats_int64s": [0, 1, -2]}
    types = (TensorProto.FLOAT,)
    assert_as_onnxruntime("OneHotEncoder", 1, [x], options, domain=ML, outputs=types)


def test_one_hot():
    result = encode("OneHotEncoder", WORDS, cats_strings=["a", "b"])
    assert result.dtype == np.float32
    assert result.tolist() == [[[0, 1], [1, 0]], [[0, 0], [0, 0]]]
    assert encode("OneHotEncoder", np.array(3, np.int32), cats_int64s=[3]).tolist() == [1]
    with pytest.raises(ValueError, match="'z' is no known category"):
        encode("OneHotEncoder", WORDS, cats_strings=["a", "b"], zeros=0)
    known = encode("OneHotEncoder", WORDS[:1], cats_strings=["a", "b"], zeros=0)
    assert known.sum() == 2
