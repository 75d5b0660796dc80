"""prune: what no output depends on goes, what can be seen otherwise stays."""

from __future__ import annotations

import numpy as np

from foldline.dialects.onnx.structure import InitializerOp, NoneOp
from foldline.stages.passes.cleanup.prune import Prune
from tests.stages.check import (
    check_pass,
    check_unchanged,
    check_values,
    from_onnx,
    named,
    op_types,
    parse,
    run_pass,
)

PASS = Prune()


def test_a_dead_chain_goes_at_once() -> None:
    before = parse("""%a = onnx.Neg(%x) : tensor<2x3xf32>
        %b = onnx.Abs(%a) : tensor<2x3xf32>
        %c, %d = onnx.Split(%b) {num_outputs = 2 : i64} : tensor<1x3xf32>, tensor<1x3xf32>
        %y = onnx.Relu(%x) : tensor<2x3xf32>
        return(%y)""")
    after = parse("%y = onnx.Relu(%x) : tensor<2x3xf32>\nreturn(%y)")
    context = check_pass(PASS, before, after)
    assert [r.op_type for r in context.remarks] == ["onnx.Split", "onnx.Abs", "onnx.Neg"]


def test_constants_and_absent_inputs_go_with_their_readers() -> None:
    module = from_onnx("""g (float[2] x) => (float[2] y) <float[2] w = {1, 2}, float m = {3}> {
        a = Clip(w, , m) c = Constant<value = float {3}>() y = Relu(x)
    }""")
    run_pass(PASS, module)
    assert not [op for op in module.walk() if isinstance(op, InitializerOp | NoneOp)]
    assert op_types(module) == ["Relu"]


def test_what_is_used_stays() -> None:
    check_unchanged(
        PASS,
        from_onnx("""g (float[2] x) => (float[1] y) {
            a, b = Split<num_outputs = 2>(x) y = Neg(a)
        }"""),
    )


def test_interface_random_and_custom_nodes_stay() -> None:
    check_unchanged(
        PASS,
        parse("""%a = onnx.RandomNormalLike(%x) : tensor<2x3xf32>
        %b = onnx.custom(%x) {domain = #onnx.text<"local">, op_type = #onnx.text<"Foo">,
            given = {}} : tensor<2xi64>
        return(%x)"""),
    )
    check_unchanged(
        PASS,
        from_onnx("""g (float[2] x, float[2] unused, float[2] d) => (float[2] y)
        <float[2] d = {1, 2}> { y = Neg(x) }"""),
    )


def test_bodies_are_pruned_and_what_only_they_read() -> None:
    module = from_onnx("""g (bool c, float[2] x) => (float[2] y) {
        o = Exp(x)
        y = If(c) <then_branch = t () => (float[2] u) { a = Neg(o) u = Relu(x) },
                   else_branch = e () => (float[2] v) { v = Abs(x) }>
    }""")
    check_values(PASS, module, {"c": np.array(True), "x": np.float32([-1, 2])})
    assert op_types(module) == ["If"]


def test_a_node_with_bodies_goes_if_all_inside_may() -> None:
    text = """g (bool c, float[2] x) => (float[2] y) {{
        [dead] d = If(c) <then_branch = t () => (float[2] u) {{ u = {inside}(x) }},
                   else_branch = e () => (float[2] v) {{ v = Abs(x) }}>
        y = Neg(x)
    }}"""
    module = from_onnx(text.format(inside="Relu"))
    run_pass(PASS, module)
    assert op_types(module) == ["Neg"]
    check_unchanged(PASS, from_onnx(text.format(inside="RandomNormalLike")))


def test_a_dead_call_goes_if_its_function_may() -> None:
    text = """g (float[2] x) => (float[2] y) {{ [dead] d = local.outer(x) y = Neg(x) }}
    <opset_import: ["" : 21, "local" : 1], domain: "local"> outer (a) => (b) {{ b = local.f(a) }}
    <opset_import: ["" : 21, "local" : 1], domain: "local"> f (a) => (b) {{ b = {inside}(a) }}"""
    module = from_onnx(text.format(inside="Relu"))
    run_pass(PASS, module)
    assert op_types(module) == ["Neg"]
    module = from_onnx(text.format(inside="RandomNormalLike"))
    check_unchanged(PASS, module)
    assert named(module, "dead")
