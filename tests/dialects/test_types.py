from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import builtin
from xdsl.ir import Attribute

from foldline.dialects.onnx.types import (
    ABSENT,
    STRING,
    UNKNOWN,
    DimsAttr,
    MapType,
    OptionalType,
    SequenceType,
    SparseTensorType,
    dims_of,
    element_attribute,
    element_of,
    element_type,
    rank,
    static_shape,
    tensor_type,
    tensor_type_of,
    with_dims,
)
from foldline.support.dtypes import ELEMENT_TYPES, ElementType
from tests.dialects.ir import TEXTS, attribute_text, reparsed

DIMS = st.lists(st.one_of(st.integers(0, 2**40), TEXTS, st.none(), st.integers(-9, -1)), max_size=4)
ELEMENTS = st.sampled_from([element_attribute(row) for row in ELEMENT_TYPES])
TENSORS = st.builds(
    lambda element, dims: tensor_type(element, None if dims is None else tuple(dims)),
    ELEMENTS,
    st.one_of(DIMS, st.none()),
)
TYPES = st.recursive(
    st.one_of(TENSORS, st.sampled_from([UNKNOWN, ABSENT])),
    lambda inner: st.one_of(
        st.builds(SequenceType, inner),
        st.builds(OptionalType, inner),
        st.builds(MapType, ELEMENTS, inner),
        st.builds(SparseTensorType, TENSORS),
    ),
    max_leaves=3,
)


@given(TYPES)
def test_types_survive_print_and_parse(type_: Attribute) -> None:
    assert reparsed(type_) == type_


@pytest.mark.parametrize("row", ELEMENT_TYPES, ids=lambda row: row.name)
def test_element_types_have_one_attribute_each(row: ElementType) -> None:
    attribute = element_attribute(row)
    assert element_of(attribute) is row
    assert sum(element_attribute(other) == attribute for other in ELEMENT_TYPES) == 1


def test_what_is_no_element_type_has_none() -> None:
    assert element_of(builtin.IndexType()) is None
    assert element_of(builtin.IntegerType(7)) is None


@given(DIMS)
def test_dims_come_back(dims: list[int | str | None]) -> None:
    type_ = tensor_type(builtin.f32, tuple(dims))
    assert dims_of(type_) == tuple(dims)
    assert rank(type_) == len(dims)


def test_tensor_types_are_interned() -> None:
    assert tensor_type(builtin.f32, (2, "N")) is tensor_type(builtin.f32, (2, "N"))


def test_only_named_dimensions_need_an_encoding() -> None:
    assert attribute_text(tensor_type(builtin.f32, (2, None))) == "tensor<2x?xf32>"
    named = tensor_type(builtin.f32, (2, None, "N"))
    assert attribute_text(named) == 'tensor<2x?x?xf32, #onnx.dims<_, _, "N">>'
    assert tensor_type(builtin.f32, ("N",)) != tensor_type(builtin.f32, ("M",))
    assert attribute_text(DimsAttr((-1, None))) == "#onnx.dims<-1, _>"


def test_shape_questions() -> None:
    assert static_shape(tensor_type(builtin.f32, (2, 0))) == (2, 0)
    assert static_shape(tensor_type(builtin.f32, ())) == ()
    assert static_shape(tensor_type(builtin.f32, (2, "N"))) is None
    assert static_shape(tensor_type(builtin.f32, None)) is None
    assert dims_of(tensor_type(builtin.f32, None)) is None
    assert rank(UNKNOWN) is None
    assert element_type(tensor_type(STRING, None)) == STRING
    assert element_type(SequenceType(UNKNOWN)) is None


def test_type_of_an_array() -> None:
    assert tensor_type_of(np.zeros((2, 3), np.uint8)) == tensor_type(
        builtin.IntegerType(8, builtin.Signedness.UNSIGNED), (2, 3)
    )
    assert tensor_type_of(np.array(["a"], object)) == tensor_type(STRING, (1,))


def test_with_dims_keeps_the_element_type() -> None:
    assert with_dims(tensor_type(builtin.f16, (1,)), [None, 3]) == tensor_type(
        builtin.f16, (None, 3)
    )
    assert with_dims(tensor_type(builtin.f16, (1,)), None) == tensor_type(builtin.f16, None)
    with pytest.raises(ValueError, match="no tensor type"):
        with_dims(UNKNOWN, [1])
