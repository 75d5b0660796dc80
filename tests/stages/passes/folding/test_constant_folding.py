"""constant-folding: what it computes, what it leaves alone and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from xdsl.dialects.builtin import ModuleOp, UnitAttr

from foldline.dialects.onnx.attributes import MetadataAttr, TextAttr, TextsAttr
from foldline.dialects.onnx.constant import ConstantOp, is_constant
from foldline.dialects.onnx.op import NodeOp, node_name, result_names
from foldline.dialects.onnx.verifier import verify_model
from foldline.importer import import_model
from foldline.stages.context import PassContext
from foldline.stages.driver.traversal import Traversal
from foldline.stages.folding.engine import Declined, Engines, HostEngine
from foldline.stages.passes.folding.constant_folding import ConstantFolding
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.support.errors import KernelFailed
from tests.stages.check import (
    Array,
    check_pass,
    check_unchanged,
    check_values,
    constant,
    from_onnx,
    named,
    nodes,
    onnx_model,
    op_types,
    parse,
)
from tests.stages.passes.folding.folds import FOLD, folded, inferred, only_constant


def test_row_3_3_a_node_on_constants_becomes_one() -> None:
    before = parse(
        f"""%a = {constant([1, 2])}
        %b = {constant([10, 20])}
        %s = onnx.Add(%a, %b) : tensor<2xi64>
        %y = onnx.Add(%s, %x) : tensor<2xi64>
        return(%y)""",
        "%x: tensor<2xi64>",
    )
    after = parse(
        f"""%s = {constant([11, 22])}
        %y = onnx.Add(%s, %x) : tensor<2xi64>
        return(%y)""",
        "%x: tensor<2xi64>",
    )
    context = check_pass(FOLD, before, after)
    assert [str(r) for r in context.remarks] == [
        "constant-folding: applied onnx.Add: computed int64[2]"
    ]


def test_row_3_3_a_chain_folds_in_one_run_and_keeps_names_and_provenance() -> None:
    module = folded("""g (float[3] x) => (float[3] y) <float[3] w = {1, 2, 3}> {
        [first] a = Neg(w) [second] b = Exp(a) y = Mul(b, x)
    }""")
    assert op_types(module) == ["Mul"]
    kept = nodes(module)[0]
    assert node_name(kept) == "second"
    assert result_names(kept) == ("b",)
    assert kept.attributes["fold.from_folding"] == TextsAttr(("second", "first"))
    np.testing.assert_array_equal(only_constant(module), np.exp(np.float32([-1, -2, -3])))


def test_row_3_3_an_input_with_another_reader_stays() -> None:
    module = folded("""g (float[2] x) => (float[2] y, float[2] z) <float[2] w = {1, 2}> {
        a = Neg(w) y = Mul(a, x) z = Add(w, x)
    }""")
    assert op_types(module) == ["Mul", "Add"]
    initializers = [op for op in module.walk() if op.name == "onnx.initializer"]
    assert [result_names(op) for op in initializers] == [("w",)]


def test_each_used_output_gets_one_constant() -> None:
    module = folded("""g (float[2] x) => (float[2] y, float[2] z)
    <float[6] w = {1, 2, 3, 4, 5, 6}, int64[3] s = {2, 2, 2}> {
        a, b, c = Split(w, s) y = Mul(a, x) u = Add(c, x) z = Add(c, u)
    }""")
    constants = [op for op in nodes(module) if isinstance(op, ConstantOp)]
    assert [result_names(op)[0] for op in constants] == ["a", "c"]


def test_row_3_3_a_node_with_another_input_is_none_of_its_business() -> None:
    module = inferred("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }")
    assert not len(check_unchanged(FOLD, module).remarks)


def test_values_are_the_same_bits() -> None:
    module = inferred("""g (float[4] x) => (float[4] y) <float[4] w = {1.5, -0.0, 3.25, 1e-40}> {
        a = Neg(w) b = Mul(a, w) c = Sqrt(w) d = Div(c, b) e = Add(d, c) y = Max(e, x)
    }""")
    check_values(FOLD, module, {"x": np.float32([np.nan, np.inf, -np.inf, -0.0])})


def test_absent_inputs_are_known() -> None:
    module = folded("""g (float[3] x) => (float[3] y) <float[3] w = {-1, 2, 9}, float m = {3}> {
        a = Clip(w, , m) y = Add(a, x)
    }""")
    np.testing.assert_array_equal(only_constant(module), np.float32([-1, 2, 3]))


ROWS: Sequence[tuple[str, str]] = [
    (
        "g () => (float[2] y) { a = RandomNormal<shape = [2]>() y = Neg(a) }",
        "it draws random numbers",
    ),
    (
        """g () => (float[2] y) <float[2] w = {1, 2}, float r = {0.5}, bool t = {1}> {
        a = Dropout(w, r, t) y = Neg(a) }""",
        "training_mode is not known to be false",
    ),
    (
        """g (float[2] x) => (float[2] y) <bool c = {1}> {
        a = If(c) <then_branch = t () => (float[2] u) { u = Neg(x) },
                   else_branch = e () => (float[2] v) { v = Abs(x) }>
        y = Neg(a) }""",
        "it has bodies",
    ),
    (
        "g () => (float[2] y) <float[2] w = {1, 2}> { y = Neg(w) }",
        "it names the output 'y' of the model and fold.graphOutputs is false",
    ),
    (
        """g (float[256, 128] x) => (float[256, 128] y) <int64[2] s = {256, 128}, float w = {2}> {
        a = Expand(w, s) y = Add(a, x) }""",
        "its result of 131072 bytes is larger than its inputs of 20 bytes and than "
        "fold.maxBytes = 65536",
    ),
    (
        """g (int64[2] x) => (int64[2] y) <int64[2] w = {1, 2}, int64[2] z = {1, 0}> {
        a = Div(w, z) y = Add(a, x) }""",
        "it divides an integer by zero",
    ),
    (
        """g (float x) => (float y) <float[2] w = {1, 2}, int64 i = {2}> {
        a = Gather(w, i) y = Add(a, x) }""",
        "it fails when run: index 2 is out of bounds",
    ),
    (
        """g () => (float[2] y) <float[2] w = {1, 2}> {
        s = SequenceConstruct(w, w) y = ConcatFromSequence<axis = 0>(s) }""",
        "cannot be a constant",
    ),
    (
        """g () => (float[2] y) <float[2] w = {1, 2}> { a = local.f(w) y = Neg(a) }
        <opset_import: ["" : 21], domain: "local"> f (p) => (q) { q = Neg(p) }""",
        "it calls a function",
    ),
]


@pytest.mark.parametrize(("text", "reason"), ROWS, ids=[reason[:40] for _, reason in ROWS])
def test_row_3_3_it_declines(text: str, reason: str) -> None:
    check_unchanged(FOLD, inferred(text), reason)


def test_row_3_3_custom_operators_stay() -> None:
    module = parse(
        f"""%a = {constant([1, 2])}
        %b = onnx.custom(%a) {{domain = #onnx.text<"local">, op_type = #onnx.text<"Foo">,
            given = {{}}}} : tensor<2xi64>
        %y = onnx.Neg(%b) : tensor<2xi64>
        return(%y)""",
        "",
    )
    check_unchanged(FOLD, module, "local::Foo is a custom operator")


def test_row_3_3_an_output_is_folded_when_asked_and_keeps_its_name() -> None:
    text = "g () => (float[2] y) <float[2] w = {1, 2}> { y = Neg(w) }"
    module = folded(text, ConstantFolding(graph_outputs=True))
    assert op_types(module) == []
    assert result_names(nodes(module)[0]) == ("y",)


SKIPPED = """g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
    [enc_neg_1] a = Neg(w) y = Add(a, x)
}"""


@pytest.mark.parametrize("pattern", ["enc_neg_1", "enc_*", "op:Neg", "op:N*", "value:a"])
def test_the_user_skips_nodes(pattern: str) -> None:
    check_unchanged(ConstantFolding(skip=(pattern,)), inferred(SKIPPED), f"has '{pattern}'")


@pytest.mark.parametrize("pattern", ["neg_1", "enc", "op:Add", "value:enc_neg_1", "Neg"])
def test_other_patterns_skip_nothing(pattern: str) -> None:
    assert op_types(folded(SKIPPED, ConstantFolding(skip=(pattern,)))) == ["Add"]


def test_marks_keep_a_node() -> None:
    for key, mark, reason in (
        ("fold.keep", UnitAttr(), "fold.keep is set"),
        ("fold.no_need", TextAttr("quantised weight"), "a pass keeps it: quantised weight"),
        ("onnx.metadata", MetadataAttr((("fold.skip", "1"),)), "metadata says fold.skip = 1"),
    ):
        module = inferred(SKIPPED)
        named(module, "enc_neg_1").attributes[key] = mark
        check_unchanged(FOLD, module, reason)


def test_overridable_initializers_are_no_constants() -> None:
    module = inferred("""g (float[2] w, float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
        a = Neg(w) y = Add(a, x)
    }""")
    check_unchanged(FOLD, module)
    old = folded(
        """g (float[2] w, float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
        a = Neg(w) y = Add(a, x) }""",
        ir_version=3,
        opset=9,
    )
    assert op_types(old) == ["Add"]


def test_nodes_in_bodies_and_functions_fold() -> None:
    module = folded("""g (bool c, float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
        y = If(c) <then_branch = t () => (float[2] u) { a = Neg(w) u = Add(a, x) },
                   else_branch = e () => (float[2] v) { v = Abs(w) }>
    }""")
    inside = [op.name for op in module.walk() if isinstance(op, NodeOp)]
    assert inside == ["onnx.If", "onnx.Constant", "onnx.Add", "onnx.Constant"]
    module = folded("""g (float[2] x) => (float[2] y) { y = local.f(x) }
    <opset_import: ["" : 21], domain: "local"> f (p) => (q) {
        w = Constant<value = float[2] {1, 2}>() a = Neg(w) q = Add(a, p)
    }""")
    inside = [op.name for op in module.walk() if isinstance(op, NodeOp)]
    assert inside == ["onnx.Constant", "onnx.Add", "onnx.call"]


def test_row_3_3_what_fails_in_a_branch_may_never_run() -> None:
    text = """g (bool c, float[2] x) => (float[?] y) <float[2] w = {1, 2}, int64[1] s = {3}> {
        y = If(c) <then_branch = t () => (float[?] u) { u = Reshape(w, s) },
                   else_branch = e () => (float[?] v) { v = Abs(x) }>
    }"""
    module = from_onnx(text)
    context = PassContext(module)
    Traversal(context, [InferShapes().visitor(context), FOLD.visitor(context)]).run()
    assert any("fails if it runs" in remark.message for remark in context.remarks)
    assert named_types(module).count("Reshape") == 1


def named_types(module: ModuleOp) -> list[str]:
    return [op.op_type for op in module.walk() if isinstance(op, NodeOp)]


def test_graphs_without_the_default_operators_hold_initializers() -> None:
    model = onnx_model("""g (float[1, 2] x) => (float[1, 2] y) <float[1, 2] w = {1, 2}> {
        a = Neg(w) y = Add(a, x) }""")
    del model.graph.node[0], model.opset_import[0]
    model.opset_import.add(domain="ai.onnx.ml", version=3)
    model.graph.node[0].CopyFrom(
        onnx.helper.make_node(
            "Scaler", ["w"], ["y"], domain="ai.onnx.ml", scale=[2.0], offset=[0.0]
        )
    )
    module = import_model(model, [])
    context = PassContext(module)
    visitors = [InferShapes(), ConstantFolding(graph_outputs=True)]
    context.engines = Engines([Broken((np.float32([[2, 4]]),))])
    Traversal(context, [given.visitor(context) for given in visitors]).run()
    verify_model(module)
    assert not nodes(module)
    assert [result_names(op) for op in module.walk() if is_constant(op)] == [("y",)]


class Broken:
    name = "broken"

    def __init__(self, outcome: Any):
        self.outcome = outcome

    def fold(self, op: NodeOp, inputs: Sequence[Array | None]) -> Any:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        (ValueError("no"), r"folding onnx.Neg \(node 'enc_neg_1'\) on \(float32\[2\]\) failed"),
        ((np.float64([1, 2]),), r"gave float64\[2\] for result 0, inference says tensor<2xf32>"),
        ((np.float32([1]),), r"gave float32\[1\] for result 0"),
        ((), "gave None for result 0, no array"),
        (([np.float32(1)],), "no array"),
    ],
)
def test_row_3_3_a_failing_kernel_is_an_error(outcome: Any, message: str) -> None:
    context = PassContext(inferred(SKIPPED))
    context.engines = Engines([Broken(outcome)])
    with pytest.raises(KernelFailed, match=message):
        FOLD.run(context)


def test_engines_are_asked_in_order_and_counted() -> None:
    context = PassContext(inferred(SKIPPED))
    context.engines = Engines([Broken(Declined("too hard")), HostEngine()])
    FOLD.run(context)
    first, second = context.engines.rows
    assert (first.engine, first.computed, first.declined) == ("broken", 0, {"too hard": 1})
    assert (second.engine, second.op_type, second.computed) == ("host", "Neg", 1)
    assert (first.failed, second.failed) == (0, 0)
    context = PassContext(inferred(SKIPPED))
    context.engines = Engines([Broken(Declined("too hard")), Broken(Declined("no time"))])
    FOLD.run(context)
    assert [r.message for r in context.remarks] == ["too hard; no time"]


def test_options_become_fields() -> None:
    options = {
        "export.grow": False,
        "fold.maxBytes": 7,
        "fold.graphOutputs": True,
        "fold.skip": ["a"],
        "memoryPolicy": "MemoryPriority",
    }
    given = FOLD.configured(_Options(options))
    assert given == ConstantFolding(
        max_bytes=7, graph_outputs=True, skip=("a",), memory_priority=True
    )
    assert FOLD.configured(_Options({**options, "export.grow": True})).max_bytes is None


class _Options(dict[str, Any]):
    def enabled(self, pass_name: str) -> bool:
        return True


SHARED = """g (float[{n}] x) => (float[{n}] y, float[{n}] z)
<float[{n}] w = {{{items}}}, float v = {{2}}> {{
    a = Add(w, v) y = Mul(a, x) z = Add({other}, x)
}}"""


@pytest.mark.parametrize(
    ("size", "other", "folds"), [(9, "w", False), (8, "w", True), (9, "x", True)]
)
def test_row_23_a_shared_constant_is_not_folded_through_where_memory_has_priority(
    size: int, other: str, folds: bool
) -> None:
    text = SHARED.format(n=size, items=", ".join(map(str, range(size))), other=other)
    module = inferred(text)
    context = PassContext(module)
    ConstantFolding(memory_priority=True).run(context)
    assert op_types(module) == ["Add"] * (not folds) + ["Mul", "Add"]
    reasons = [remark.message for remark in context.remarks if remark.kind == "declined"]
    assert reasons == ["memoryPolicy is MemoryPriority and others read its input of 9 elements"] * (
        not folds
    )
    assert op_types(folded(text)) == ["Mul", "Add"]


def test_memory_priority_is_no_matter_of_repeated_elements() -> None:
    module = inferred("""g (float[99] x) => (float[99] y, float[99] z) <int64[1] s = {99}> {
        w = ConstantOfShape<value = float[1] {2}>(s) a = Neg(w) y = Add(a, x) z = Add(w, x)
    }""")
    ConstantFolding(memory_priority=True).run(PassContext(module))
    assert op_types(module) == ["Add", "Add"]


def test_results_do_not_hang_on_the_order_of_memory() -> None:
    module = inferred("g (float[257, 129] x) => (float s) { [sum] s = ReduceSum<keepdims = 0>(x) }")
    given = np.random.default_rng(0).standard_normal((257, 129)).astype(np.float32)
    turned = np.asarray(given, order="F")
    expected = HostEngine().fold(named(module, "sum"), [given, None])
    assert given.sum() != turned.sum()
    assert HostEngine().fold(named(module, "sum"), [turned, None]) == expected
