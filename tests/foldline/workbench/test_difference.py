"""Two modules compared node by node, and what became of the nodes that are gone."""

from __future__ import annotations

from time import process_time

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


def renamed(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with another name for every node and value."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    names: dict[str, str] = {}

    def new(name: str) -> str:
        return names.setdefault(name, f"q{len(names)}") if name else ""

    def rename(graph: onnx.GraphProto) -> None:
        for named in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
            named.name = new(named.name)
        for node in graph.node:
            node.name = new(f"node {node.name}") if node.name else ""
            node.input[:] = map(new, node.input)
            node.output[:] = map(new, node.output)
            for attribute in node.attribute:
                rename(attribute.g)

    rename(copy.graph)
    return copy


BODIES = """<ir_version: 10, opset_import: ["" : 20]>
g (bool c, float[2] x) => (float[2] y)
<float[2] w = {1, 2}>
{
    [before] b = Mul(x, w)
    [choice] z = If (c) <
        then_branch = t () => (float[2] p) { [inner] n = Neg(b) [last] p = Sin(n) },
        else_branch = e () => (float[2] q) { [other] q = Add(b, w) }>
    [after] y = Exp(z)
}"""


@pytest.mark.parametrize("text", [TEXT, BODIES])
def test_names_alone_are_no_difference(text: str) -> None:
    model = onnx.parser.parse_model(text)
    found = difference(import_model(model), import_model(renamed(model)))
    assert not found
    assert found.same > 5


@pytest.mark.parametrize("text", [BODIES, BODIES.replace("Exp(z)", "Sum(z, b, x)")])
def test_one_node_less_in_a_copy_of_other_names(text: str) -> None:
    """What comes before it hangs on the same, and on what comes behind hangs the same."""
    less = text.replace("[before] b = Mul(x, w)", "b = Identity(x)").replace("[before]", "")
    before = onnx.parser.parse_model(text)
    after = renamed(onnx.parser.parse_model(less))
    found = difference(import_model(before), import_model(after))
    assert [removed.node.label for removed in found.removed] == ["before"]
    assert [node.op_type for node in found.added] == ["Identity"]


def test_names_that_were_counted_anew() -> None:
    """Exporters number values: a node more, and each name is that of another node."""

    def numbered(count: int, skipped: int | None) -> str:
        operators = [("Sin", "Neg", "Exp")[i % 3] for i in range(count) if i != skipped]
        lines = (f"v{i + 1} = {name}(v{i})" for i, name in enumerate(operators))
        body, last = " ".join(lines), len(operators)
        return f"""<ir_version: 10, opset_import: ["" : 20]>
        g (float[2] v0) => (float[2] v{last}) {{ {body} }}"""

    found = compared(numbered(60, None), numbered(60, 30))
    (removed,) = found.removed
    assert (removed.node.op_type, removed.fate.split(" ")[0]) == ("Sin", "bypassed:")
    assert not found.added
    assert len(found.changed) == 1


def test_an_attribute_that_says_what_holds_anyway_is_no_difference() -> None:
    plain = """<ir_version: 10, opset_import: ["" : 20]>
    g (float[2,2] x) => (float[2,2] y) { y = Gemm(x, x) }"""
    explicit = plain.replace("Gemm", "Gemm <alpha = 1.0, transB = 0>")
    assert not compared(plain, explicit)
    (changed,) = compared(plain, explicit.replace("1.0", "2.0")).changed
    assert changed.what == ("alpha: absent -> 2.0",)


def test_an_equal_constant_in_its_place_is_the_same() -> None:
    text = """<ir_version: 10, opset_import: ["" : 20]>
    g (float[2] x) => (float[2] y) <float[2] a = {1, 2}, float[2] b = {1, 2}>
    { [first] s = Add(x, a) [second] y = Add(s, b) }"""
    found = compared(text, text.replace("Add(s, b)", "Add(s, a)"))
    assert not found.changed
    found = compared(text, text.replace("Add(s, b)", "Add(s, a)").replace("a = {1", "a = {3"))
    assert "inputs 1: b -> a" in [what for c in found.changed for what in c.what]


def test_a_node_of_other_weights_is_the_same_node() -> None:
    """As a file has it that another tool folded a normalisation in."""
    text = """<ir_version: 10, opset_import: ["" : 20]>
    g (float[1,1,4,4] x) => (float[1,1,2,2] y) <float[1,1,3,3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}>
    { [conv] c = Conv(x, w) [act] y = Relu(c) }"""
    after = text.replace("[conv] c", "v1").replace("(c)", "(v1)").replace("x, w", "x, v2")
    after = after.replace("w = {1,", "v2 = {0,")
    found = compared(text, after)
    assert [(c.before.name, c.what) for c in found.changed if not c.after.is_constant] == [
        ("conv", ("inputs 1: w -> v2",))
    ]


def test_without_constants() -> None:
    found = compared(TEXT, TEXT.replace("{1, 2, 3, 4}", "{1, 2, 3, 5}"))
    assert found
    assert not found.without_constants()
    assert found.summary() == "6 the same, 1 changed, 0 removed, 0 added"


def test_ten_thousand_nodes_take_no_quadratic_time() -> None:
    """Nodes that are all alike, of other names, one of them gone."""

    def chain(prefix: str, count: int) -> onnx.ModelProto:
        lines = "\n".join(f"{prefix}{i + 1} = Sin({prefix}{i})" for i in range(count))
        return onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 20]>
        g (float[2] {prefix}0) => (float[2] {prefix}{count}) {{ {lines} }}""")

    before, after = import_model(chain("a", 10_000)), import_model(chain("b", 9_999))
    start = process_time()
    found = difference(before, after)
    assert process_time() - start < 20  # two seconds on a machine that does nothing else
    assert found.same + len(found.changed) == 9_999
