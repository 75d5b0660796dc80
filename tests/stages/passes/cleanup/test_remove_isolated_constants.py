"""remove-isolated-constants: what nothing reads goes, everywhere, and nothing else."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import parser

from foldline.dialects.onnx.constant import is_constant
from foldline.dialects.onnx.op import result_names
from foldline.exporter import export_model
from foldline.importer import import_model
from foldline.stages.passes.cleanup.remove_isolated_constants import RemoveIsolatedConstants
from tests.stages.check import (
    check_pass,
    check_unchanged,
    check_values,
    constant,
    from_onnx,
    parse,
    run_pass,
)

PASS = RemoveIsolatedConstants()


def test_constants_that_nothing_reads_go() -> None:
    before = parse(
        f"""%i = onnx.initializer() {{value = #onnx.tensor<"float", [], "0000803f">}} : tensor<f32>
        %j = onnx.initializer() {{value = #onnx.tensor<"float", [], "0000803f">}} : tensor<f32>
        %c = {constant([1, 2])}
        %y = onnx.Mul(%x, %j) : tensor<2x3xf32>
        %d = onnx.Sin(%x) : tensor<2x3xf32>
        return(%y)"""
    )
    expected = parse(
        """%j = onnx.initializer() {value = #onnx.tensor<"float", [], "0000803f">} : tensor<f32>
        %y = onnx.Mul(%x, %j) : tensor<2x3xf32>
        %d = onnx.Sin(%x) : tensor<2x3xf32>
        return(%y)"""
    )
    context = check_pass(PASS, before, expected)
    assert [remark.message for remark in context.remarks] == ["nothing reads it"] * 2


def test_outputs_and_defaults_of_inputs_stay() -> None:
    module = from_onnx(
        """g (float[2] x, float[2] w = {1, 2}) => (float[2] y, float[1] o)
        <float[1] o = {3}> { y = Neg(x) }"""
    )
    check_unchanged(PASS, module)
    assert [i.name for i in export_model(module).graph.initializer] == ["w", "o"]


def test_in_bodies_and_functions() -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
        g (float[2] x, bool p) => (float[2] y) {
            h = local.f(x)
            y = If(p) <then_branch = t () => (float[2] a) <float[2] w = {1, 2}> {
                c = Constant <value_int = 3> () a = Neg(h)
            }, else_branch = e () => (float[2] b) <float[2] v = {1, 2}> { b = Add(h, v) }>
        }"""
    )
    model.functions.append(
        parser.parse_function(
            """<domain: "local", opset_import: ["" : 17]> f (a) => (b) {
                c = Constant <value_int = 3> () b = Neg(a)
            }"""
        )
    )
    module = import_model(model, [])
    run_pass(PASS, module)
    left = [result_names(op)[0] for op in module.walk() if is_constant(op)]
    assert left == ["v"]
    onnx.checker.check_model(export_model(module), full_check=True)


def test_an_initializer_of_an_old_model_leaves_the_inputs_too() -> None:
    module = from_onnx(
        """g (float[2] x, float[2] w, float[2] v) => (float[2] y)
        <float[2] w = {1, 2}, float[2] v = {3, 4}> { y = Add(x, v) }""",
        ir_version=3,
        opset=8,
    )
    run_pass(PASS, module)
    graph = export_model(module).graph
    assert [i.name for i in graph.input] == ["x", "v"]
    assert [i.name for i in graph.initializer] == ["v"]


def test_the_same_values() -> None:
    module = from_onnx(
        "g (float[2] x) => (float[2] y) <float w = {2}, float v = {3}> { y = Mul(x, w) }"
    )
    check_values(PASS, module, {"x": np.float32([np.nan, -0.0])})
