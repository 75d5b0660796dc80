"""infer-shapes: from declared hints to known types, bodies and functions included."""

from __future__ import annotations

from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.onnx.control import LoopOp, ScanOp
from foldline.dialects.onnx.op import result_names
from foldline.dialects.onnx.structure import functions, terminator
from foldline.stages.context import PassContext
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.support.errors import InvalidModel
from tests.stages.check import (
    check_pass,
    constant,
    from_onnx,
    parse,
    run_pass,
    type_text,
)

NAMES = ", #onnx.dims<"


def inferred(text: str, **keywords: Any) -> tuple[ModuleOp, PassContext]:
    module = from_onnx(text, **keywords)
    return module, run_pass(InferShapes(), module)


def types(module: ModuleOp) -> dict[str, str]:
    """The type of each named result, wherever it is."""
    return {
        name: type_text(result)
        for op in module.walk()
        for name, result in zip(result_names(op), op.results, strict=True)
        if name
    }


def test_unknown_types_become_known() -> None:
    before = parse(
        """%a = onnx.Relu(%x) : !onnx.unknown
        %s = onnx.Shape(%a) : !onnx.unknown
        %y = onnx.MatMul(%a, %w) : tensor<*xf32>
        return(%y, %s)""",
        '%x: tensor<?x3xf32, #onnx.dims<"N", _>>, %w: tensor<3x5xf32>',
    )
    after = parse(
        """%a = onnx.Relu(%x) : tensor<?x3xf32, #onnx.dims<"N", _>>
        %s = onnx.Shape(%a) : tensor<2xi64>
        %y = onnx.MatMul(%a, %w) : tensor<?x5xf32, #onnx.dims<"N", _>>
        return(%y, %s)""",
        '%x: tensor<?x3xf32, #onnx.dims<"N", _>>, %w: tensor<3x5xf32>',
    )
    check_pass(InferShapes(), before, after)


def test_values_of_small_constants_decide_shapes() -> None:
    text = f"""%t = {constant([3, -1])}
    %y = onnx.Reshape(%x, %t) : !onnx.unknown
    return(%y)"""
    module = parse(text)
    run_pass(InferShapes(), module)
    assert "onnx.Reshape(%x, %t) : tensor<3x2xf32>" in str(module)


def test_float_constants_decide_where_the_operator_says_so() -> None:
    module, _ = inferred("""g (float[1, 1, 4, 6] x) => (float[?, ?, ?, ?] y)
    <float[4] s = {1, 1, 2, 0.5}> { y = Resize(x, , s) }""")
    assert types(module)["y"] == "tensor<1x1x8x3xf32>"


@pytest.mark.parametrize(
    ("declared", "expected", "remark"),
    [
        ("tensor<7x3xf32>", "tensor<2x3xf32>", "declared tensor<7x3xf32>, inferred"),
        ("tensor<2xf32>", "tensor<2x3xf32>", "declared tensor<2xf32>, inferred"),
        ("tensor<2x3xf16>", "tensor<2x3xf32>", "declared tensor<2x3xf16>, inferred"),
        ("tensor<?x3xf32>", "tensor<2x3xf32>", None),
        ("!onnx.unknown", "tensor<2x3xf32>", None),
    ],
)
def test_inference_wins_over_declarations(declared: str, expected: str, remark: str | None) -> None:
    module = parse(f"%y = onnx.Relu(%x) : {declared}\nreturn(%y)")
    context = PassContext(module)
    InferShapes().run(context)
    assert f"onnx.Relu(%x) : {expected}" in str(module)
    messages = [r.message for r in context.remarks]
    assert (messages == []) if remark is None else (remark in messages[0])


def test_declared_sizes_that_nothing_confirms_are_dropped_and_names_kept() -> None:
    """One exporter wrote the sizes of its trace for values that are dynamic."""
    text = """%a = onnx.NonZero(%x) : tensor<2x17xi64>
    %b = onnx.NonZero(%x) : tensor<2x?xi64, #onnx.dims<_, "hits">>
    return(%a, %b)"""
    module = parse(text)
    run_pass(InferShapes(), module)
    assert "%a = onnx.NonZero(%x) : tensor<2x?xi64>" in str(module)
    assert '%b = onnx.NonZero(%x) : tensor<2x?xi64, #onnx.dims<_, "hits">>' in str(module)


def test_inferred_types_are_trusted_later() -> None:
    text = "%a = onnx.NonZero(%x) : tensor<2x17xi64>\nreturn(%a)"
    module = parse(text)
    run_pass(InferShapes(trusted=True), module)
    assert "onnx.NonZero(%x) : tensor<2x17xi64>" in str(module)


def test_custom_operators_keep_their_element_type_alone() -> None:
    text = """%a = onnx.custom(%x) {domain = #onnx.text<"local">, op_type = #onnx.text<"Foo">,
        given = {}} : tensor<2x17xi64>
    %y = onnx.Neg(%a) : !onnx.unknown
    return(%y)"""
    module = parse(text)
    run_pass(InferShapes(), module)
    assert "onnx.Neg(%a) : tensor<*xi64>" in str(module)


def test_what_the_library_cannot_infer() -> None:
    module, _ = inferred("""g (float[N, 6, 4] x, float[6] s, float[2, 2] z) =>
    (float[?] y, float[?] m) { y = GroupNormalization<num_groups = 2>(x, s, s)
    m = MeanVarianceNormalization(z) }""")
    assert types(module)["y"] == 'tensor<?x6x4xf32, #onnx.dims<"N", _, _>>'
    assert types(module)["m"] == "tensor<2x2xf32>"


def test_an_ill_typed_node_makes_the_model_invalid() -> None:
    module = from_onnx("g (float[2, 3] x) => (float[?, ?] y) { [bad] y = MatMul(x, x) }")
    with pytest.raises(InvalidModel, match=r"infer-shapes: onnx.MatMul \(node 'bad'\)"):
        InferShapes().run(PassContext(module))


def test_a_type_that_the_operator_does_not_take_is_ill_typed() -> None:
    module = from_onnx("g (string[2] x) => (string[2] y) { y = Neg(x) }")
    with pytest.raises(InvalidModel, match="is ill-typed"):
        InferShapes().run(PassContext(module))


def test_if_joins_its_branches() -> None:
    module, _ = inferred("""g (bool c, float[N, 3] x) => (float[?, ?] y) {
        y = If(c) <then_branch = t () => (float[?, ?] u) { u = Relu(x) },
                   else_branch = e () => (float[?, ?] v) { v = Concat<axis = 1>(x, x) }>
        z = Neg(y)
    }""")
    assert types(module)["u"] == 'tensor<?x3xf32, #onnx.dims<"N", _>>'
    assert types(module)["v"] == 'tensor<?x6xf32, #onnx.dims<"N", _>>'
    assert types(module)["z"] == types(module)["y"] == 'tensor<?x?xf32, #onnx.dims<"N", _>>'


LOOP = """g (int64 n, float[2] x) => (float[?] y, float[?, ?] all) {{
    c = Constant<value = bool {{1}}>()
    y, all = Loop(n, c, x) <body = b (int64 i, bool k, float[2] a) =>
        (bool k2, float[2] a2, float[?] s) {{
        k2 = Identity(k) {step} s = Neg(a2)
    }}>
}}"""


def loop(module: ModuleOp) -> LoopOp:
    return next(op for op in module.walk() if isinstance(op, LoopOp))


def test_a_loop_that_keeps_its_shapes() -> None:
    module, _ = inferred(LOOP.format(step="a2 = Relu(a)"))
    block = loop(module).regions[0].block
    assert [type_text(a) for a in block.args] == ["tensor<i64>", "tensor<i1>", "tensor<2xf32>"]
    assert types(module)["y"] == "tensor<2xf32>"
    assert types(module)["all"] == "tensor<?x2xf32>"


def test_a_loop_that_grows_is_open_though_declared_closed() -> None:
    module, context = inferred(LOOP.format(step="a2 = Concat<axis = 0>(a, x)"))
    block = loop(module).regions[0].block
    assert type_text(block.args[2]) == "tensor<?xf32>"
    assert types(module)["y"] == "tensor<?xf32>"
    assert types(module)["all"] == "tensor<?x?xf32>"
    assert not context.bounds


def test_a_loop_that_does_not_settle_in_three_rounds_is_left_open() -> None:
    text = """g (int64 n, float[1, 1, 1, 1] x) => (float[?] y) {
        c = Constant<value = bool {1}>()
        y, b, d, e, f = Loop(n, c, x, x, x, x, x) <body = b (int64 i, bool k, float[1,1,1,1] a0,
            float[1,1,1,1] a1, float[1,1,1,1] a2, float[1,1,1,1] a3, float[1,1,1,1] a4) =>
            (bool k2, float[?] o0, float[?] o1, float[?] o2, float[?] o3, float[?] o4) {
            k2 = Identity(k) o0 = Identity(a1) o1 = Identity(a2) o2 = Identity(a3)
            o3 = Identity(a4) o4 = Concat<axis = 0>(a4, a4)
        }>
    }"""
    module, _ = inferred(text)
    block = loop(module).regions[0].block
    assert {type_text(a) for a in block.args[2:]} == {"tensor<*xf32>"}
    assert types(module)["y"] == "tensor<*xf32>"


def test_shapes_folded_in_a_body_hold_in_every_turn() -> None:
    module, _ = inferred(LOOP.format(step="t = Concat<axis = 0>(a, x) a2 = Concat<axis = 0>(t, x)"))
    assert types(module)["a2"] == "tensor<?xf32>"


def test_scan_slices_and_stacks() -> None:
    module, _ = (
        inferred("""g (float[3] s, float[5, 3] x, float[3, 5] z) => (float[?] o, float[?] y) {
        o, y = Scan(s, x, z) <num_scan_inputs = 2, scan_input_axes = [0, 1],
            scan_output_axes = [1], body = b (float[3] a, float[3] p, float[3] q) =>
            (float[3] a2, float[3] r) { a2 = Add(a, p) r = Add(a2, q) }>
    }""")
    )
    scan = next(op for op in module.walk() if isinstance(op, ScanOp))
    assert [type_text(a) for a in scan.regions[0].block.args] == ["tensor<3xf32>"] * 3
    assert types(module)["o"] == "tensor<3xf32>"
    assert types(module)["y"] == "tensor<3x5xf32>"


CALLS = """g (float[2, 3] x, float[4, 3] z) => (float[?, ?] y, float[?, ?] w) {{
    y = local.f<k = 1>(x) w = local.f<k = 0>({second})
}}
<opset_import: ["" : 21, "local" : 1], domain: "local">
f <k> (p) => (q) {{ a = Relu(p) q = Concat<axis: int = @k>(a, p) }}"""


def test_calls_are_inferred_one_by_one_and_the_body_for_all() -> None:
    module, _ = inferred(CALLS.format(second="z"))
    assert types(module)["y"] == "tensor<2x6xf32>"
    assert types(module)["w"] == "tensor<8x3xf32>"
    (function,) = functions(module)
    assert type_text(function.body.block.args[0]) == "tensor<?x3xf32>"
    assert types(module)["a"] == "tensor<?x3xf32>"
    assert type_text(terminator(function.body.block).operands[0]) == "tensor<*xf32>"
    module, _ = inferred(CALLS.format(second="x"))
    assert types(module)["a"] == "tensor<2x3xf32>"


def test_constant_arguments_of_calls_count() -> None:
    module, _ = inferred("""g (float[2, 3] x) => (float[?] y) <int64[1] s = {6}> {
        y = local.f(x, s)
    }
    <opset_import: ["" : 21], domain: "local"> f (p, t) => (q) { q = Reshape(p, t) }""")
    assert types(module)["y"] == "tensor<6xf32>"


def test_sequences() -> None:
    module, _ = inferred("""g (float[2, 3] x) => (float[?] y) <int64 i = {0}> {
        s = SequenceConstruct(x, x) y = SequenceAt(s, i)
    }""")
    assert types(module)["s"] == "!onnx.sequence<tensor<2x3xf32>>"
    assert types(module)["y"] == "tensor<2x3xf32>"


@pytest.mark.parametrize("step", ["a2 = Concat<axis = 0>(a, x)", "a2 = Relu(a)"])
def test_a_second_run_changes_nothing(step: str) -> None:
    module, _ = inferred(LOOP.format(step=step))
    context = PassContext(module)
    InferShapes(trusted=True).run(context)
    assert not context.rewriter.changes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "float16 a, float16 b, float16 c) => (float16[?] y) <float16 a = {0}, "
            "float16 b = {15360}, float16 c = {13312}> { y = Range(a, b, c) }",
            "tensor<4xf16>",
        ),
        (
            "int64 a, int64 b, int64 c) => (int64[?] y) <int64 a = {5}, int64 b = {0}, "
            "int64 c = {-2}> { y = Range(a, b, c) }",
            "tensor<3xi64>",
        ),
        (
            "float a, float b, float c) => (float[?] y) <float a = {3}, float b = {1}, "
            "float c = {1}> { y = Range(a, b, c) }",
            "tensor<0xf32>",
        ),
        (
            "float[1, 16, 1] x) => (float[?, ?, ?, ?] y) <int64 s = {2}, int64 l = {8}> "
            "{ y = STFT(x, s, , l) }",
            "tensor<1x5x5x2xf32>",
        ),
        (
            "float[1, 1, 2, 2] x, int64[1, 1, 2, 2] i) => (float[?, ?, ?, ?] y) "
            "<int64[4] o = {1, 1, 5, 5}> { y = MaxUnpool<kernel_shape = [2, 2]>(x, i, o) }",
            "tensor<1x1x5x5xf32>",
        ),
        (
            "float[1, 1, 2, 2] x, int64[N] n) => (float[?, ?, ?, ?] y) { y = Resize(x, , , n) }",
            "tensor<?x?x?x?xf32>",
        ),
        (
            "float[1, 1, 2, 2] x, int64[N] n) => (float[?, ?, ?, ?] y) "
            "{ y = Resize<axes = [3]>(x, , , n) }",
            "tensor<1x1x2x?xf32>",
        ),
        (
            "int64[1] a, int64[1] b, int64[1] c) => (int64[?] y) <int64[1] a = {0}, "
            "int64[1] b = {3}, int64[1] c = {1}> { y = Range(a, b, c) }",
            "tensor<3xi64>",
        ),
        ("string[N] x) => (string[M] y) { y = StringNormalizer(x) }", "tensor<*x!onnx.string>"),
    ],
)
def test_what_the_library_infers_wrongly_or_not(text: str, expected: str) -> None:
    module = from_onnx(f"g ({text}", ir_version=3 if " a = " in text else 10, opset=27)
    run_pass(InferShapes(), module)
    assert types(module)["y"] == expected
