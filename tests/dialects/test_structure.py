from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block

from foldline.dialects.onnx.attributes import OpsetsAttr
from foldline.dialects.onnx.structure import (
    CallOp,
    CustomOp,
    GraphOp,
    NoneOp,
    function_symbol,
    functions,
    interface,
    is_graph_output,
    main_graph,
    terminator,
)
from foldline.dialects.onnx.types import ABSENT
from tests.dialects.ir import graph

FUNCTION = """onnx.function() {sym_name = "local::f", domain = #onnx.text<"local">,
  op_type = #onnx.text<"f">, opsets = #onnx.opsets<"" : 17>, parameters = #onnx.texts<"alpha">,
  defaults = {}} ({
  ^bb0(%u: !onnx.unknown):
    %v = onnx.LeakyRelu(%u) {alpha = #onnx.reference<"alpha", 1>} : !onnx.unknown
    onnx.return(%v) {interface = #onnx.interface<_, ["u"], ["v"], []>}
  })"""
MODULE = graph(
    """%a = onnx.call(%x) {callee = @"local::f", given = {alpha = 1.0 : f32}} : tensor<2xf32>
    %b = onnx.custom(%a) {domain = #onnx.text<"my">, op_type = #onnx.text<"Op">,
      given = {size = 2 : i64}} : !onnx.unknown""",
    "%x: tensor<2xf32>",
    '"x"',
    '"b"',
    "%b",
    '"" : 17, "my" : 1',
    FUNCTION,
)


def test_graph_and_functions_are_found() -> None:
    assert isinstance(main_graph(MODULE), GraphOp)
    assert [f.op_type.data for f in functions(MODULE)] == ["f"]
    with pytest.raises(LookupError, match=r"no onnx\.graph"):
        main_graph(ModuleOp([]))


def test_the_interface_stands_at_the_end() -> None:
    block = main_graph(MODULE).body.block
    assert interface(block).name == "g"
    assert terminator(block) is block.last_op
    with pytest.raises(LookupError, match=r"onnx\.return"):
        terminator(Block([NoneOp.new()]))


def test_calls_find_their_function() -> None:
    call = next(op for op in MODULE.walk() if isinstance(op, CallOp))
    assert (call.domain, call.op_type) == ("local", "f")
    assert call.attribute_values() == {"alpha": 1.0}
    assert call.function is functions(MODULE)[0]


def test_custom_nodes_keep_what_they_are() -> None:
    custom = next(op for op in MODULE.walk() if isinstance(op, CustomOp))
    assert (custom.domain, custom.op_type) == ("my", "Op")
    assert custom.attribute_values() == {"size": 2}
    assert is_graph_output(custom.results[0])
    assert not is_graph_output(main_graph(MODULE).body.block.args[0])


def test_none_is_the_absent_value() -> None:
    assert NoneOp.new().value.type == ABSENT


@pytest.mark.parametrize(
    ("parts", "symbol"),
    [
        (("local", "f", ""), "local::f"),
        (("local", "f", "v2"), "local::f::v2"),
        (("größe", "a::b", ""), "gr%C3%B6%C3%9Fe::a%3A%3Ab"),
    ],
)
def test_symbols_are_ascii_and_unambiguous(parts: tuple[str, str, str], symbol: str) -> None:
    assert function_symbol(*parts).data == symbol


def test_graphs_are_made_without_parsing() -> None:
    op = GraphOp.create(properties={"opsets": OpsetsAttr((("", 17),))}, regions=[])
    assert op.opsets.versions == {"": 17}
