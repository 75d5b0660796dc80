from __future__ import annotations

from typing import Any

import onnx
import pytest
from onnx import AttributeProto
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema
from xdsl.parser import Parser

from foldline.dialects import operator_class
from foldline.dialects.com_microsoft import OPERATORS
from foldline.dialects.com_microsoft.signatures import EARLIER, SIGNATURES
from foldline.dialects.onnx.schema import Parameter, Signature, declare, operators, signature
from foldline.dialects.onnx.types import UNKNOWN
from foldline.dialects.onnx.verifier import verify_model
from foldline.support.errors import InvalidModel
from tests.dialects.ir import context, graph, text_of

SCHEMAS: dict[tuple[str, str], Any] = {
    (schema.domain, schema.name): schema
    for schema in sorted(get_all_operator_schema(), key=lambda schema: schema.since_version)
}
FIRST: dict[tuple[str, str], Any] = {
    (schema.domain, schema.name): schema
    for schema in get_all_operator_schema()
    if schema.since_version == 1
}
EACH = pytest.mark.parametrize("row", SIGNATURES, ids=lambda row: row.op_type)


def described(schema: Any, parameters: Any) -> list[Parameter]:
    types = {t.type_param_str: t.allowed_type_strs for t in schema.type_constraints}
    return [
        Parameter(
            p.name,
            frozenset(types.get(p.typeStr, (p.typeStr,))),
            p.typeStr,
            str(p.option).endswith("Optional"),
            str(p.option).endswith("Variadic"),
            p.isHomogeneous,
        )
        for p in parameters
    ]


@pytest.mark.parametrize("row", SIGNATURES + EARLIER, ids=lambda row: row.op_type)
def test_a_row_agrees_with_onnx_runtime(row: Signature) -> None:
    schema = (FIRST if row in EARLIER else SCHEMAS)[row.domain, row.op_type]
    assert row.since == schema.since_version
    assert list(row.inputs) == described(schema, schema.inputs)
    assert list(row.outputs) == described(schema, schema.outputs)
    assert (row.min_inputs, row.max_inputs) == (schema.min_input, schema.max_input)
    assert (row.min_outputs, row.max_outputs) == (schema.min_output, schema.max_output)


@EACH
def test_attributes_agree_with_onnx_runtime(row: Signature) -> None:
    schema = SCHEMAS[row.domain, row.op_type]
    assert set(row.attributes) == set(schema.attributes)
    for name, attribute in row.attributes.items():
        expected = schema.attributes[name]
        kind = str(expected.type).rpartition(".")[2]
        assert attribute.kind == AttributeProto.AttributeType.Value(kind)
        assert attribute.is_required == expected.required
        default = None
        if expected._default_value:
            proto = AttributeProto.FromString(expected._default_value)
            default = onnx.helper.get_attribute_value(proto) if proto.name else None
        if isinstance(default, bytes):
            default = default.decode()
        assert attribute.default == default


@EACH
def test_operators_are_found_and_survive_print_and_parse(row: Signature) -> None:
    cls = operator_class(row.domain, row.op_type)
    assert cls is OPERATORS[row.domain, row.op_type]
    assert cls.name == f"com_microsoft.{row.op_type}"
    assert operators()[row.domain, row.op_type] == (row,)
    assert signature(row.domain, row.op_type, 17) is row
    op = cls.create(result_types=[UNKNOWN])
    assert type(Parser(context(), text_of(op)).parse_op()) is cls


def test_a_node_resolves_to_an_earlier_version_only_where_onnx_has_none() -> None:
    (early,) = EARLIER
    assert signature("", early.op_type, 16) is early
    later = signature("", early.op_type, 17)
    assert later is not None
    assert later.since == 17
    with pytest.raises(ValueError, match="LayerNormalization of domain '' is declared twice"):
        declare([early])


FUSED = """%y = com_microsoft.FusedMatMul(%x, %x) {{{}}} : tensor<2x2xf32>
%z = com_microsoft.SimplifiedLayerNormalization(%y, %x) : tensor<2x2xf32>"""


def test_they_are_verified_like_any_operator() -> None:
    opsets = '"" : 17, "com.microsoft" : 1'
    x = "%x: tensor<2x2xf32>"
    verify_model(graph(FUSED.format("alpha = 0.5 : f32"), x, '"x"', opsets=opsets))
    with pytest.raises(InvalidModel, match="has no attribute 'beta'"):
        verify_model(graph(FUSED.format("beta = 0.5 : f32"), x, '"x"', opsets=opsets))
    with pytest.raises(InvalidModel, match=r"operator set 'com\.microsoft' is not imported"):
        verify_model(graph(FUSED.format(""), x, '"x"'))


def test_defaults_are_applied() -> None:
    module = graph(
        FUSED.format("alpha = 0.5 : f32"),
        "%x: tensor<2x2xf32>",
        '"x"',
        opsets='"" : 17, "com.microsoft" : 1',
    )
    fused = next(op for op in module.walk() if op.name == "com_microsoft.FusedMatMul")
    assert isinstance(fused, OPERATORS["com.microsoft", "FusedMatMul"])
    assert fused.attribute_values() == {
        "alpha": 0.5,
        "transA": 0,
        "transB": 0,
        "transBatchA": 0,
        "transBatchB": 0,
    }
