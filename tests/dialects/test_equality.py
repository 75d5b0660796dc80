from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.fold import keep, mark_inserted
from foldline.dialects.onnx.attributes import Names, NamesAttr
from foldline.dialects.onnx.equality import are_equal, difference, is_discardable
from foldline.dialects.onnx.structure import main_graph
from foldline.dialects.onnx.text import TextAttr
from tests.dialects.ir import graph

BASE = """%w = onnx.initializer() {value = #onnx.tensor<"float", [1], "0000803f">} : tensor<1xf32>
%a = onnx.Add(%x, %w) : tensor<2xf32>
%y = onnx.If(%c) {graph_names = #onnx.texts<"else_branch", "then_branch">} ({
  %p = onnx.Relu(%a) {onnx.names = #onnx.names<"n" : "p">} : tensor<2xf32>
  onnx.return(%p) {interface = #onnx.interface<"e", [], ["p"], []>}
}, {
  onnx.return(%a) {interface = #onnx.interface<"t", [], ["q"], []>}
}) : tensor<2xf32>"""


def module(text: str = BASE, opsets: str = '"" : 17') -> ModuleOp:
    arguments = "%x: tensor<2xf32>, %c: tensor<i1>"
    return graph(text, arguments, '"x", "c"', '"y"', "%y", opsets)


def test_a_copy_is_equal() -> None:
    assert difference(module(), module()) is None
    assert are_equal(module(), module().clone())


def test_names_and_facts_have_no_part() -> None:
    other = module()
    for op in other.walk():
        op.attributes["onnx.names"] = NamesAttr(Names("other", ("names",)))
        keep(op)
        mark_inserted(op)
    assert are_equal(module(), other)
    assert is_discardable("fold.known")
    assert not is_discardable("onnx.doc")


def test_other_attributes_count() -> None:
    other = module()
    main_graph(other).attributes["onnx.doc"] = TextAttr("d")
    found = difference(module(), other)
    assert found is not None
    assert found.endswith("onnx.graph: attributes [] against ['onnx.doc']")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("onnx.Add(%x, %w)", "onnx.Add(%w, %x)", "onnx.Add: operand 0 is another value"),
        ("onnx.Add(", "onnx.Mul(", "onnx.Add against onnx.Mul"),
        ("onnx.Add(%x, %w)", "onnx.Add(%x)", "onnx.Add: 2 operands against 1"),
        (
            "onnx.Add(%x, %w) : tensor<2xf32>",
            "onnx.Add(%x, %w) : tensor<?xf32>",
            "onnx.Add: type 0 is tensor<2xf32> against tensor<?xf32>",
        ),
        ("0000803f", "00000040", "onnx.initializer: value is"),
        ("onnx.return(%a)", "onnx.return(%x)", "onnx.return: operand 0 is another value"),
        ('["q"]', '["r"]', "onnx.return: interface is"),
        (
            "%a = onnx.Add",
            "%b = onnx.Exp(%x) : tensor<2xf32>\n%a = onnx.Add",
            "onnx.Add against onnx.Exp",
        ),
    ],
)
def test_what_differs_is_named(old: str, new: str, expected: str) -> None:
    assert old in BASE
    found = difference(module(), module(BASE.replace(old, new)))
    assert found is not None
    assert expected in found
    assert not are_equal(module(), module(BASE.replace(old, new)))


def test_imports_count() -> None:
    found = difference(module(), module(opsets='"" : 18'))
    assert found is not None
    assert "opsets" in found


def test_outer_values_have_to_be_the_same() -> None:
    one = graph(
        "%a = onnx.Exp(%x) : tensor<2xf32>\n%b = onnx.Exp(%x) : tensor<2xf32>"
        "\n%c = onnx.Exp(%b) : tensor<2xf32>",
        "%x: tensor<2xf32>",
        '"x"',
    )
    first, second, third, _ = main_graph(one).body.block.ops
    assert are_equal(first, second)
    assert difference(second, third) == "onnx.Exp: operand 0 is another value"
