from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute

from foldline.dialects.onnx.attributes import (
    Interface,
    InterfaceAttr,
    Names,
    NamesAttr,
    OpsetsAttr,
    Reference,
    ReferenceAttr,
    ValueInfo,
    canonical_domain,
)
from foldline.dialects.onnx.text import MetadataAttr, ResidualAttr, TextAttr, TextsAttr
from foldline.dialects.onnx.types import UNKNOWN, tensor_type
from tests.dialects.ir import TEXTS, attribute_text, reparsed

LISTS = st.lists(TEXTS, max_size=3).map(tuple)
OPTIONAL = st.one_of(st.none(), TEXTS)
PAIRS = st.lists(st.tuples(TEXTS, TEXTS), max_size=3).map(tuple)
TYPES = st.sampled_from([None, UNKNOWN, tensor_type(f32, ("ö", 3, None)), tensor_type(f32, None)])
INFOS = st.builds(
    ValueInfo,
    TEXTS,
    TYPES,
    OPTIONAL,
    st.one_of(st.none(), PAIRS),
    st.binary(max_size=4),
    st.booleans(),
)
INFO_LISTS = st.lists(INFOS, max_size=2).map(tuple)
ATTRIBUTES = st.one_of(
    st.builds(TextAttr, TEXTS),
    st.builds(TextsAttr, LISTS),
    st.builds(ResidualAttr, st.binary()),
    st.builds(lambda node, values: NamesAttr(Names(node, values)), OPTIONAL, LISTS),
    st.builds(MetadataAttr, PAIRS),
    st.builds(
        OpsetsAttr, st.lists(st.tuples(OPTIONAL, st.integers(0, 2**40)), max_size=3).map(tuple)
    ),
    st.builds(lambda name, kind: ReferenceAttr(Reference(name, kind)), TEXTS, st.integers(0, 14)),
)


@given(ATTRIBUTES)
def test_attributes_survive_print_and_parse(attribute: Attribute) -> None:
    assert reparsed(attribute) == attribute


@given(
    st.builds(
        Interface,
        OPTIONAL,
        INFO_LISTS,
        INFO_LISTS,
        INFO_LISTS,
        OPTIONAL,
        st.one_of(st.none(), PAIRS),
        st.binary(max_size=4),
    )
)
def test_interfaces_survive_print_and_parse(interface: Interface) -> None:
    assert reparsed(InterfaceAttr(interface)) == InterfaceAttr(interface)


def test_names_read_well() -> None:
    assert attribute_text(NamesAttr(Names("n", ("a", "")))) == '#onnx.names<"n" : "a", "">'
    assert attribute_text(NamesAttr(Names(None))) == "#onnx.names<_>"


def test_an_absent_name_is_not_an_empty_one() -> None:
    assert NamesAttr(Names(None)) != NamesAttr(Names(""))
    assert OpsetsAttr(((None, 1),)) != OpsetsAttr((("", 1),))


def test_the_highest_of_duplicate_imports_binds() -> None:
    opsets = OpsetsAttr((("", 9), ("ai.onnx", 13), (None, 11), ("x", 1)))
    assert opsets.versions == {"": 13, "x": 1}
    assert canonical_domain("ai.onnx.ml") == "ai.onnx.ml"


def test_versions_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        OpsetsAttr((("", 9),)).versions[""] = 1  # type: ignore[index]


def test_constants_of_old_models_are_no_arguments() -> None:
    interface = Interface("g", (ValueInfo("x"), ValueInfo("w", is_constant=True)))
    assert [info.name for info in interface.argument_infos()] == ["x"]


def test_a_new_type_drops_the_leftovers_of_the_old_one() -> None:
    info = ValueInfo("x", UNKNOWN, doc="d", residual=b"\x01")
    changed = info.with_type(tensor_type(f32, (1,)))
    assert changed == ValueInfo("x", tensor_type(f32, (1,)), doc="d")
