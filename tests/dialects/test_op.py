from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from xdsl.dialects.builtin import (
    DenseArrayBase,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    f32,
    i64,
)
from xdsl.ir import Attribute
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

from foldline.dialects.onnx import OPERATORS
from foldline.dialects.onnx.attributes import Names, NamesAttr, Reference, ReferenceAttr
from foldline.dialects.onnx.control import IfOp
from foldline.dialects.onnx.math import ClipOp
from foldline.dialects.onnx.nn import ConvOp
from foldline.dialects.onnx.op import (
    OnnxOp,
    describe,
    node_name,
    operation_name,
    opset_versions,
    plain_value,
    result_names,
)
from foldline.dialects.onnx.plain import attribute_of
from foldline.dialects.onnx.schema import AttributeSchema, declare, operators, signature
from foldline.dialects.onnx.structure import CustomOp, main_graph
from foldline.dialects.onnx.tensor import TensorAttr
from foldline.dialects.onnx.text import TextAttr, TextsAttr
from foldline.dialects.onnx.types import UNKNOWN
from tests.dialects.ir import attribute_text, context, graph, parse, reparsed, text_of

CLIP = graph(
    """%n = onnx.none() : !onnx.absent
    %y = onnx.Clip(%x, %n, %x) {onnx.names = #onnx.names<"clip" : "y">} : tensor<2xf32>
    %z = onnx.Clip(%x) {onnx.names = #onnx.names<_ : "z">} : tensor<2xf32>""",
    arguments="%x: tensor<2xf32>",
    inputs='"x"',
)


def ops(module: ModuleOp) -> list[OnnxOp]:
    return [op for op in main_graph(module).body.block.ops if isinstance(op, OnnxOp)]


def test_operands_are_found_by_position() -> None:
    clip, short = ops(CLIP)
    assert isinstance(clip, ClipOp)
    assert isinstance(short, ClipOp)
    argument = main_graph(CLIP).body.block.args[0]
    assert clip.X is argument
    assert clip.minimum is None
    assert clip.maximum is argument
    assert short.maximum is None
    assert clip.operand(7) is None


def test_names_and_descriptions() -> None:
    clip, short = ops(CLIP)
    assert node_name(clip) == "clip"
    assert node_name(short) is None
    assert describe(clip) == "onnx.Clip (node 'clip')"
    assert describe(short) == "onnx.Clip (output 'z')"
    bare = ClipOp.create(result_types=[UNKNOWN])
    assert describe(bare) == "onnx.Clip"
    assert result_names(bare) == ("",)


def test_the_version_is_that_of_the_nearest_imports() -> None:
    op = ops(CLIP)[0]
    assert op.since == 13
    assert opset_versions(op) == {"": 17}
    detached = ClipOp.create(result_types=[UNKNOWN])
    assert opset_versions(detached) == {}
    with pytest.raises(LookupError, match="not in the operator sets imported"):
        _ = detached.since


@pytest.mark.parametrize(("opset", "low"), [(6, -3.4028234663852886e38), (1, None), (13, None)])
def test_defaults_are_those_of_the_version(opset: int, low: float | None) -> None:
    module = graph(
        "%y = onnx.Clip(%x) : tensor<2xf32>", "%x: tensor<2xf32>", '"x"', opsets=f'"" : {opset}'
    )
    op = ops(module)[0]
    assert op.value_of("min") == low
    assert op.attribute_values().get("min") == low


def test_given_attributes_win_over_defaults() -> None:
    module = graph(
        "%y = onnx.Conv(%x, %x) {group = 2 : i64} : !onnx.unknown", "%x: !onnx.unknown", '"x"'
    )
    op = ops(module)[0]
    assert isinstance(op, ConvOp)
    assert op.int_of("group") == 2
    assert op.ints_of("pads") is None
    assert op.attribute_values() == {"group": 2, "auto_pad": "NOTSET"}


VALUES: list[tuple[Attribute, object]] = [
    (IntegerAttr(-3, i64), -3),
    (FloatAttr(0.5, f32), 0.5),
    (TextAttr("ö"), "ö"),
    (TextsAttr(("a", "")), ("a", "")),
    (DenseArrayBase.from_list(i64, [1, -2]), (1, -2)),
    (DenseArrayBase.from_list(i64, []), ()),
    (DenseArrayBase.from_list(f32, [0.5]), (0.5,)),
    (UNKNOWN, UNKNOWN),
]


@pytest.mark.parametrize(("attribute", "plain"), VALUES)
def test_plain_values(attribute: Attribute, plain: object) -> None:
    assert plain_value(attribute) == plain
    assert reparsed(attribute) == attribute


def test_tensors_are_arrays_and_references_have_no_value() -> None:
    assert plain_value(TensorAttr.of(np.arange(2))) is not None
    with pytest.raises(TypeError, match="no plain value"):
        plain_value(ReferenceAttr(Reference("alpha", 1)))


@pytest.mark.parametrize(
    ("kind", "value"),
    [(2, 3), (7, (1, 2)), (1, 0.25), (6, (0.5, -1.0)), (3, "a"), (8, ("a", "b"))],
)
def test_plain_values_make_attributes(kind: int, value: object) -> None:
    assert plain_value(attribute_of(kind, value)) == value


def test_floats_are_rounded_to_float32() -> None:
    assert plain_value(attribute_of(1, 0.1)) == float(np.float32(0.1))


def test_a_graph_has_no_plain_form() -> None:
    with pytest.raises(TypeError, match="kind 5"):
        attribute_of(5, None)


@example(1000001.0)
@example(float("-inf"))
@example(2.0**-149)
@given(st.floats(width=32))
def test_float_attributes_survive_print_and_parse(value: float) -> None:
    back = reparsed(FloatAttr(value, f32))
    assert isinstance(back, FloatAttr)
    found = back.value.data
    assert math.isnan(found) if math.isnan(value) else found == value
    assert math.copysign(1, found) == math.copysign(1, value) or math.isnan(value)


@example([1000001.0, 0.1, 16777217.0])
@example([float("inf"), float("nan"), -0.0, 1e-45])
@given(st.lists(st.floats(width=32), max_size=3))
def test_float_lists_survive_print_and_parse(values: list[float]) -> None:
    attribute = DenseArrayBase.from_list(f32, values)
    op = OPERATORS["", "Upsample"].create(properties={"scales": attribute})
    custom = CustomOp.create(
        properties={
            "domain": TextAttr("my"),
            "op_type": TextAttr("Op"),
            "given": DictionaryAttr({"scales": attribute}),
        }
    )
    for each in (op, custom):
        back = Parser(context(), text_of(each)).parse_op()
        assert back.properties == each.properties


def test_operands_have_to_be_defined_in_text() -> None:
    with pytest.raises(ParseError, match="read before it is defined"):
        graph("%y = onnx.Relu(%z) : !onnx.unknown")


@pytest.mark.parametrize("key", sorted(OPERATORS), ids=lambda key: f"{key[0]}:{key[1]}")
def test_every_operator_survives_print_and_parse(key: tuple[str, str]) -> None:
    cls = OPERATORS[key]
    names = NamesAttr(Names("n", ("y",)))
    op = cls.create(result_types=[UNKNOWN], attributes={"onnx.names": names})
    back = Parser(context(), text_of(op)).parse_op()
    assert type(back) is cls
    assert back.attributes == op.attributes
    assert (op.domain, op.op_type) == key
    assert cls.name == operation_name(*key)


def test_operations_of_other_domains_keep_their_family() -> None:
    assert operation_name("", "Add") == "onnx.Add"
    assert operation_name("ai.onnx.ml", "Scaler") == "onnx.ml.Scaler"


def test_bodies_are_named() -> None:
    module = graph(
        """%y = onnx.If(%c) {graph_names = #onnx.texts<"else_branch", "then_branch">} ({
          onnx.return(%c) {interface = #onnx.interface<"e", [], ["a"], []>}
        }, {
          onnx.return(%c) {interface = #onnx.interface<"t", [], ["b"], []>}
        }) : tensor<i1>""",
        "%c: tensor<i1>",
        '"c"',
    )
    op = ops(module)[0]
    assert isinstance(op, IfOp)
    assert op.region_names() == ("else_branch", "then_branch")
    assert op.then_block is op.regions[1].block
    assert op.else_block is op.regions[0].block
    assert op.onnx_attributes == {}
    assert text_of(parse(text_of(module))) == text_of(module)


def test_schemas_know_every_version() -> None:
    versions = [row.since for row in operators()["", "Clip"]]
    assert versions == sorted(versions)
    assert versions[:5] == [1, 6, 11, 12, 13]
    found = signature("", "Clip", 10)
    assert found is not None
    assert found.since == 6
    assert found.attributes["min"] == AttributeSchema("min", 1, False, -3.4028234663852886e38)
    assert signature("", "Clip", 0) is None
    assert signature("", "Clipp", 17) is None


def test_variadic_parameters_repeat() -> None:
    concat = signature("", "Concat", 17)
    assert concat is not None
    assert concat.input_at(5) == concat.inputs[0]
    add = signature("", "Add", 17)
    assert add is not None
    assert add.input_at(2) is None


def test_known_operators_cannot_be_declared() -> None:
    with pytest.raises(ValueError, match="Clip of domain '' is declared twice"):
        declare([operators()["", "Clip"][0]])


def test_text_of_an_attribute_dictionary_is_stable() -> None:
    assert attribute_text(TextAttr("a")) == '#onnx.text<"a">'
