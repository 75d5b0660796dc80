import numpy as np
import pytest
from onnx import TensorProto, TypeProto

from foldline.kernels.ml_maps import cast_map, dict_vectorizer, zip_map
from tests.kernels.one_node import ML, onnxruntime_results

CODES = {
    "TO_FLOAT": TensorProto.FLOAT,
    "TO_INT64": TensorProto.INT64,
    "TO_STRING": TensorProto.STRING,
}


@pytest.mark.parametrize("cast_to", CODES)
@pytest.mark.parametrize("map_form", ["DENSE", "SPARSE"])
def test_cast_as_onnxruntime(cast_to, map_form):
    given = {2: 1.5, 0: -2.75}
    options = {"cast_to": cast_to, "map_form": map_form, "max_map": 4}
    expected = onnxruntime_results(
        "CastMap",
        1,
        [given],
        options,
        domain=ML,
        outputs=(CODES[cast_to],),
        map_types=(TensorProto.INT64, TensorProto.FLOAT),
    )
    result = cast_map(given, **options)
    assert result.dtype == expected[0].dtype
    assert result.tolist() == expected[0].tolist()


def test_cast_of_strings_and_of_nothing():
    words = {1: "7", 0: "2.5"}
    assert cast_map(words).tolist() == [[2.5, 7]]
    assert cast_map(words, cast_to="TO_STRING").tolist() == [["2.5", "7"]]
    assert cast_map({}).shape == (1, 0)
    assert cast_map({}, map_form="SPARSE", max_map=2).tolist() == [[0, 0]]
    with pytest.raises(ValueError, match=r"2\.5"):
        cast_map(words, cast_to="TO_INT64")


@pytest.mark.parametrize("key", [-1, 3])
def test_sparse_keys_must_be_in_range(key):
    with pytest.raises(ValueError, match="not within 0 to 2"):
        cast_map({key: 1.0, 1: 2.0}, map_form="SPARSE", max_map=3)


def test_dictionaries_as_onnxruntime():
    given = {"c": 8.0, "a": 4.0, "unknown": 1.0}
    expected = onnxruntime_results(
        "DictVectorizer",
        1,
        [given],
        {"string_vocabulary": ["a", "b", "c"]},
        domain=ML,
        outputs=(TensorProto.FLOAT,),
        map_types=(TensorProto.STRING, TensorProto.FLOAT),
    )
    result = dict_vectorizer(given, string_vocabulary=("a", "b", "c"))
    assert result.dtype == np.float32
    assert result.tolist() == expected[0].tolist() == [[4, 0, 8]]


@pytest.mark.parametrize(
    ("given", "dtype", "expected"),
    [
        ({1: "x"}, object, [["", "x"]]),
        ({1: 5}, np.int64, [[0, 5]]),
        ({1: np.float64(0.1)}, np.float64, [[0, 0.1]]),
        ({}, np.float32, [[0, 0]]),
    ],
)
def test_dictionaries_of_other_values(given, dtype, expected):
    result = dict_vectorizer(given, int64_vocabulary=(0, 1))
    assert result.dtype == dtype
    assert result.tolist() == expected


def test_a_known_output_type_goes_before_the_values():
    known = [np.dtype(np.float64)]
    result = dict_vectorizer({"a": 0.1}, string_vocabulary=("a",), output_dtypes=known)
    assert result.dtype == np.float64
    assert result.tolist() == [[0.1]]
    unknown = dict_vectorizer({"a": 0.1}, string_vocabulary=("a",), output_dtypes=[None])
    assert unknown.dtype == np.float32


@pytest.mark.parametrize("shape", [(2, 2), (2,), (0, 2)])
def test_zip_as_onnxruntime(shape):
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) / 3
    kind = TypeProto()
    kind.sequence_type.elem_type.map_type.key_type = TensorProto.STRING
    value = kind.sequence_type.elem_type.map_type.value_type
    value.tensor_type.elem_type = TensorProto.FLOAT
    options = {"classlabels_strings": ["a", "b"]}
    expected = onnxruntime_results("ZipMap", 1, [x], options, domain=ML, outputs=(kind,))
    assert zip_map(x, **options) == expected[0]


def test_zip_keys_are_as_many_as_columns():
    x = np.array([[0.25, 0.75]], np.float32)
    assert zip_map(x, classlabels_int64s=(3, 4)) == [{3: 0.25, 4: 0.75}]
    with pytest.raises(ValueError, match="3 labels for 2 columns"):
        zip_map(x, classlabels_int64s=(3, 4, 5))
