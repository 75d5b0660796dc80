from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from onnx import numpy_helper
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

from foldline.dialects.onnx.tensor import (
    Array,
    SideFile,
    SparseTensorAttr,
    Spelling,
    Tensor,
    TensorAttr,
    data_bytes,
    from_data_bytes,
    side_file,
    splat,
)
from foldline.dialects.onnx.tensor_proto import read_tensor
from foldline.dialects.onnx.text import ResidualAttr
from foldline.support.dtypes import ELEMENT_TYPES, ElementType
from tests.dialects.ir import TEXTS, attribute_text, context, reparsed

SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
STRINGS = SHAPES.flatmap(lambda shape: hnp.arrays(np.object_, shape, elements=TEXTS))
NUMBERS = SHAPES.flatmap(
    lambda shape: st.sampled_from(
        ["float32", "float64", "float16", "int64", "uint8", "bool", "complex64"]
    ).flatmap(lambda name: hnp.arrays(name, shape))
)
SPELLINGS = st.sampled_from(["raw", "typed", "none", "external"])


def same_bits(one: Array, other: Array) -> bool:
    return (
        one.dtype == other.dtype
        and one.shape == other.shape
        and data_bytes(one) == data_bytes(other)
    )


def sample(row: ElementType) -> Array:
    if row.name == "string":
        return np.array([["a", "ö,\n"], ["", "\udcff"]], object)
    return np.arange(4).astype(row.numpy).reshape(2, 2)


@given(st.one_of(NUMBERS, STRINGS), SPELLINGS)
def test_tensors_survive_print_and_parse(array: Array, spelling: Spelling) -> None:
    attribute = TensorAttr.of(array, spelling)
    back = reparsed(attribute)
    assert isinstance(back, TensorAttr)
    assert same_bits(back.array, array)
    assert back.data.spelling == spelling
    assert back == attribute


@pytest.mark.parametrize("row", ELEMENT_TYPES, ids=lambda row: row.name)
def test_every_element_type_survives_print_and_parse(row: ElementType) -> None:
    array = sample(row)
    for attribute in (TensorAttr.of(array), TensorAttr.of(np.broadcast_to(array[0, 1], (3, 2)))):
        if row.name == "string" and attribute.array.dtype != object:
            attribute = TensorAttr.of(splat("ö,\n", (3, 2), object))
        back = reparsed(attribute)
        assert isinstance(back, TensorAttr)
        assert same_bits(back.array, attribute.array)
        assert back.data.is_splat == attribute.data.is_splat


@pytest.mark.parametrize(
    "bits", [0x7FC00000, 0x7FC00001, 0xFFC00000, 0x80000000, 0x00000001, 0x7F800000]
)
def test_odd_floats_keep_their_bits(bits: int) -> None:
    array = np.array([bits], np.uint32).view(np.float32)
    back = reparsed(TensorAttr.of(array))
    assert isinstance(back, TensorAttr)
    assert back.array.view(np.uint32).tolist() == [bits]


def test_equality_is_that_of_bytes() -> None:
    zero, negative = np.array([0.0]), np.array([-0.0])
    nan = np.array([np.nan])
    assert Tensor(nan) == Tensor(nan.copy())
    assert Tensor(zero) != Tensor(negative)
    assert Tensor(np.zeros((1, 2))) != Tensor(np.zeros((2, 1)))
    assert Tensor(np.zeros(2, np.int32)) != Tensor(np.zeros(2, np.float32))
    assert Tensor(splat(1.0, (2, 2), np.float32)) == Tensor(np.ones((2, 2), np.float32))
    assert Tensor(splat(1.0, (9,), np.float32)) != Tensor(splat(2.0, (9,), np.float32))
    assert Tensor(np.array(["a"], object)) != Tensor(np.array(["b"], object))


def test_equal_tensors_have_one_hash_and_spelling_has_no_part() -> None:
    one, other = TensorAttr.of(np.ones(3), "raw"), TensorAttr.of(np.ones(3), "typed")
    assert one == other
    assert hash(one) == hash(other)


def test_tensors_are_read_only_and_callers_keep_theirs() -> None:
    array = np.ones(3)
    tensor = Tensor(array)
    assert not tensor.array.flags.writeable
    assert array.flags.writeable
    assert np.shares_memory(tensor.array, array)
    with pytest.raises(ValueError, match="read-only"):
        tensor.array[0] = 2


def test_a_splat_costs_one_element() -> None:
    tensor = Tensor(splat(0.5, (10_000, 10_000), np.float32))
    assert tensor.is_splat
    assert tensor.stored_bytes == 4
    text = attribute_text(TensorAttr(tensor))
    assert text == '#onnx.tensor<"float", [10000, 10000], splat, "0000003f">'


@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 0)])
def test_tensors_of_at_most_one_element_are_no_splats(shape: tuple[int, ...]) -> None:
    tensor = Tensor(splat(1, shape, np.int64))
    assert not tensor.is_splat
    assert reparsed(TensorAttr(tensor)) == TensorAttr(tensor)


@given(STRINGS)
def test_strings_as_bytes_come_back(array: Array) -> None:
    assert from_data_bytes(data_bytes(array), array.dtype, array.shape).tolist() == array.tolist()


def test_large_tensors_stand_in_the_side_file() -> None:
    large, small = TensorAttr.of(np.arange(100)), TensorAttr.of(np.arange(3))
    with side_file(SideFile()) as side:
        assert attribute_text(large) == '#onnx.tensor<"t0">'
        assert attribute_text(large) == '#onnx.tensor<"t0">'
        assert '"int64"' in attribute_text(small)
        assert reparsed(large) == large
        assert list(side.tensors) == ["t0"]
    assert attribute_text(large).startswith('#onnx.tensor<"int64", [100]')


def test_a_key_without_side_file_is_an_error() -> None:
    with side_file(SideFile()):
        text = attribute_text(TensorAttr.of(np.arange(100)))
    with pytest.raises(ParseError, match="no tensor 't0' in the side file"):
        Parser(context(), text).parse_attribute()


@pytest.mark.parametrize("row", ELEMENT_TYPES, ids=lambda row: row.name)
def test_side_files_are_saved_and_loaded(row: ElementType, tmp_path: Path) -> None:
    array = sample(row)
    side = SideFile()
    key = side.add(Tensor(array, "external"))
    splat_key = side.add(Tensor(np.broadcast_to(array[:1, :1], (5, 5))))
    side.save(str(tmp_path / "tensors"))
    back = SideFile.load(str(tmp_path / "tensors"))
    assert same_bits(back.tensors[key].array, array)
    assert back.tensors[key].spelling == "external"
    assert back.tensors[splat_key].is_splat
    assert same_bits(back.tensors[splat_key].array, side.tensors[splat_key].array)


def test_sparse_tensors_survive_print_and_parse() -> None:
    sparse = SparseTensorAttr(TensorAttr.of(np.eye(2)), ResidualAttr(b"\x00\xff"))
    assert reparsed(sparse) == sparse


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.int64, np.bool_])
def test_raw_data_is_read_in_the_dtype_itself(dtype: type[np.generic]) -> None:
    """In a copy of it, kernels took ways for types that NumPy does not compute."""
    proto = numpy_helper.from_array(np.array([0, 1]).astype(dtype), "x")
    assert proto.HasField("raw_data")
    assert read_tensor(proto, "x").array.dtype.isbuiltin == 1
