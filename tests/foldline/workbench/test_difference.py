"""Two modules compared node by node, and what became of the nodes that are gone."""

from __future__ import annotations

import onnx
import pytest
from xdsl.dialects.builtin import ModuleOp

import foldline
from foldline.importer import import_model
from foldline.workbench.difference import Difference, difference
from foldline.workbench.nodes import nodes_of

TEXT = """
<ir_version: 10, opset_import: ["" : 20]>
g (float[N, 4] x) => (float[N, 4] y)
<float[4] b = {1, 2, 3, 4}>
{
    two = Constant <value_float = 2.0> ()
    [negate] c = Neg(b)
    [same] s = Identity(x)
    [add] a = Add(s, c)
    [relu] y = Relu(a)
    [unread] u = Sin(x)
}
"""


def module_of(text: str) -> ModuleOp:
    return import_model(onnx.parser.parse_model(text))


def compared(before: str, after: str) -> Difference:
    return difference(module_of(before), module_of(after))


def fates(found: Difference) -> dict[str, str]:
    return {removed.node.label: removed.fate for removed in found.removed}


def test_equal_modules_have_no_difference() -> None:
    found = compared(TEXT, TEXT)
    assert not found
    assert found.same == len(nodes_of(module_of(TEXT)))
    assert list(found.lines()) == []


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("Relu(a)", "Relu(s)", "inputs 0: a -> s"),
        ("Neg(b)", "Neg(two)", "inputs 0: b -> two"),
        ("value_float = 2.0", "value_float = 3.0", "value: float32 2.0 -> float32 3.0"),
        ("{1, 2, 3, 4}", "{1, 2, 3, 5}", "value: float32[4] [1.0, 2.0, 3.0, 4.0] -> "),
    ],
)
def test_a_changed_node_says_what_is_different(old: str, new: str, what: str) -> None:
    found = compared(TEXT, TEXT.replace(old, new))
    (changed,) = found.changed
    assert changed.what[0].startswith(what)
    assert not found.added
    assert not found.removed
    assert list(found.lines()) == [f"~ {changed.after}    [{changed.what[0]}]"]


def test_an_attribute_that_changed_or_came() -> None:
    before = TEXT.replace("Relu(a)", "LeakyRelu <alpha = 0.5> (a)")
    (changed,) = compared(before, before.replace("0.5", "0.25")).changed
    assert changed.what == ("alpha: 0.5 -> 0.25",)
    (changed,) = compared(before, before.replace("<alpha = 0.5> ", "")).changed
    assert changed.what == ("alpha: 0.5 -> absent",)


def test_a_renamed_value_is_the_same_where_it_is_made_of_the_same() -> None:
    after = TEXT.replace(" s ", " t ").replace("(s, c)", "(t, c)").replace("[same] ", "")
    found = compared(TEXT, after)
    assert not found.removed
    assert not found.added
    assert not found.changed


def test_what_became_of_nodes_that_a_compile_removed() -> None:
    before = import_model(onnx.parser.parse_model(TEXT))
    after = foldline.compile(onnx.parser.parse_model(TEXT), options={"oo.level": "O3"})
    found = difference(before, after.module)
    assert fates(found) == {
        "b": "folded into 'c'",
        "two": "unused",
        "negate": "folded into 'c'",
        "same": "bypassed: Add 'add' reads 'x'",
        "unread": "unused",
    }
    moved = {changed.after.op_type: changed.after.graph for changed in found.changed}
    assert moved == {"Add": "relu.body", "Relu": "relu.body"}
    assert [node.op_type for node in found.added if not node.is_constant] == [
        "foldline.ElementWise"
    ]


def test_a_long_chain_that_is_gone_needs_no_recursion() -> None:
    lines = "\n".join(f"v{i + 1} = Sin(v{i})" for i in range(3000))
    text = f"""<ir_version: 10, opset_import: ["" : 20]>
    g (float[2] v0) => (float[2] y) {{ {lines} y = Neg(v0) }}"""
    short = """<ir_version: 10, opset_import: ["" : 20]>
    g (float[2] v0) => (float[2] y) { y = Neg(v0) }"""
    found = compared(text, short)
    assert len(found.removed) == 3000
    assert {removed.fate for removed in found.removed} == {"unused"}


def test_bodies_are_compared_too() -> None:
    text = """<ir_version: 10, opset_import: ["" : 20]>
    g (bool c, float[2] x) => (float[2] y) {
        [choice] y = If (c) <
            then_branch = t () => (float[2] p) { [inner] p = Neg(x) },
            else_branch = e () => (float[2] q) { [other] q = Sin(x) }>
    }"""
    found = compared(text, text.replace("Neg", "Abs"))
    (removed,), (added,) = found.removed, found.added
    assert (removed.node.graph, removed.fate) == ("choice.then_branch", "part of Abs 'inner'")
    assert (added.graph, added.op_type) == ("choice.then_branch", "Abs")
    assert next(found.lines()).startswith("- [choice.then_branch] inner: p")
