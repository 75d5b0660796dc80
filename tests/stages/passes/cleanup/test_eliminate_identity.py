"""eliminate-identity: each rule applies, declines, and keeps the values."""

from __future__ import annotations

import numpy as np
import pytest

from foldline.dialects.onnx.op import result_names
from foldline.stages.context import PassContext
from foldline.stages.passes.cleanup.eliminate_identity import RULES, EliminateIdentity
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from tests.stages.check import (
    check_pass,
    check_unchanged,
    check_values,
    constant,
    from_onnx,
    nodes,
    op_types,
    parse,
    run_pass,
    splat,
)

PASS = EliminateIdentity()
FEED = {"x": np.float32([[np.nan, np.inf, -np.inf], [-0.0, 0.0, 1e-45]])}

SAME = {
    "Identity": "%a = onnx.Identity(%x) : tensor<2x3xf32>",
    "Dropout": "%a, %m = onnx.Dropout(%x) : tensor<2x3xf32>, tensor<2x3xi1>",
    "Cast": "%a = onnx.Cast(%x) {to = 1 : i64} : tensor<2x3xf32>",
    "CastLike": "%a = onnx.CastLike(%x, %x) : tensor<2x3xf32>",
    "Concat": "%a = onnx.Concat(%x) {axis = 0 : i64} : tensor<2x3xf32>",
    "Sum": "%a = onnx.Sum(%x) : tensor<2x3xf32>",
    "Max": "%a = onnx.Max(%x) : tensor<2x3xf32>",
    "Min": "%a = onnx.Min(%x) : tensor<2x3xf32>",
    "Mean": "%a = onnx.Mean(%x) : tensor<2x3xf32>",
    "Split": "%a = onnx.Split(%x) {num_outputs = 1 : i64} : tensor<2x3xf32>",
    "Transpose": "%a = onnx.Transpose(%x) {perm = array<i64: 0, 1>} : tensor<2x3xf32>",
    "Reshape": f"%s = {constant([2, 3])}\n%a = onnx.Reshape(%x, %s) : tensor<2x3xf32>",
    "Flatten": "%a = onnx.Flatten(%x) : tensor<2x3xf32>",
    "Squeeze": f"%s = {constant(np.empty(0))}\n%a = onnx.Squeeze(%x, %s) : tensor<2x3xf32>",
    "Unsqueeze": f"%s = {constant(np.empty(0))}\n%a = onnx.Unsqueeze(%x, %s) : tensor<2x3xf32>",
    "Expand": f"%s = {constant([1, 3])}\n%a = onnx.Expand(%x, %s) : tensor<2x3xf32>",
    "Tile": f"%s = {constant([1, 1])}\n%a = onnx.Tile(%x, %s) : tensor<2x3xf32>",
}
"""Operation and what comes before it, by operator."""


def test_every_rule_is_tested() -> None:
    assert {cls.__name__.removesuffix("Op") for cls in RULES} == SAME.keys()


@pytest.mark.parametrize("text", SAME.values(), ids=SAME)
def test_it_applies(text: str) -> None:
    *before, _ = text.splitlines()
    after = "\n".join([*before, "%y = onnx.Neg(%x) : tensor<2x3xf32>\nreturn(%y)"])
    check_pass(
        PASS, parse(f"{text}\n%y = onnx.Neg(%a) : tensor<2x3xf32>\nreturn(%y)"), parse(after)
    )


@pytest.mark.parametrize(
    "text", [text for name, text in SAME.items() if name not in ("Squeeze", "Unsqueeze")]
)
def test_values_are_the_same_bits(text: str) -> None:
    check_values(
        PASS, parse(f"{text}\n%y = onnx.Neg(%a) : tensor<2x3xf32>\nreturn(%y)", opset=18), FEED
    )


OTHERS = [
    "%a = onnx.Cast(%x) {to = 10 : i64} : tensor<2x3xf16>",
    "%a = onnx.Concat(%x, %x) {axis = 0 : i64} : tensor<4x3xf32>",
    "%a = onnx.Sum(%x, %x) : tensor<2x3xf32>",
    "%a = onnx.Transpose(%x) : tensor<3x2xf32>",
    f"%s = {constant([3, 2])}\n%a = onnx.Reshape(%x, %s) : tensor<3x2xf32>",
    f"%s = {constant([1])}\n%a = onnx.Unsqueeze(%x, %s) : tensor<2x1x3xf32>",
    "%a, %b = onnx.Split(%x) {num_outputs = 2 : i64} : tensor<1x3xf32>, tensor<1x3xf32>",
    "%a = onnx.Relu(%x) : tensor<2x3xf32>",
    f"%r = {constant(0.5, np.float32)}\n%t = {constant(True, np.bool_)}\n"
    "%a, %m = onnx.Dropout(%x, %r, %t) : tensor<2x3xf32>, tensor<2x3xi1>",
]


@pytest.mark.parametrize("text", OTHERS)
def test_other_operators_stay(text: str) -> None:
    check_unchanged(PASS, parse(f"{text}\n%y = onnx.Shape(%a) : tensor<2xi64>\nreturn(%y)"))


def test_equal_symbols_are_not_equal_shapes() -> None:
    inputs = '%x: tensor<?x3xf32, #onnx.dims<"N", _>>, %s: tensor<2xi64>'
    text = """%a = onnx.Expand(%x, %s) : tensor<?x3xf32, #onnx.dims<"N", _>>
    %y = onnx.Neg(%a) : tensor<?x3xf32, #onnx.dims<"N", _>>
    return(%y)"""
    check_unchanged(PASS, parse(text, inputs))


def test_the_mask_of_a_dropout_is_all_true() -> None:
    text = "%a, %m = onnx.Dropout(%x) : tensor<2x3xf32>, tensor<2x3xi1>\n"
    rest = "%y = onnx.Neg({}) : tensor<2x3xf32>\n%z = onnx.Not(%m) : tensor<2x3xi1>\nreturn(%y, %z)"
    mask = f"%m = {splat(True, (2, 3), np.bool_)}\n"
    check_pass(PASS, parse(text + rest.format("%a")), parse(mask + rest.format("%x")))
    check_values(PASS, parse(text + rest.format("%a")), FEED)


def test_a_mask_of_unknown_shape_stays() -> None:
    text = "%a, %m = onnx.Dropout(%x) : tensor<?xf32>, tensor<?xi1>\n"
    rest = "%y = onnx.Neg(%a) : tensor<?xf32>\n%z = onnx.Not(%m) : tensor<?xi1>\nreturn(%y, %z)"
    check_unchanged(PASS, parse(text + rest, "%x: tensor<?xf32>"), "mask is read")
    check_unchanged(PASS, parse(text + rest, "%x: tensor<?xf32>", opset=7), "mask is read")


def test_an_output_passes_its_name_to_the_producer() -> None:
    module = from_onnx("g (float[2] x) => (float[2] y) { a = Relu(x) y = Identity(a) }")
    run_pass(PASS, module)
    assert op_types(module) == ["Relu"]
    assert result_names(nodes(module)[0]) == ("y",)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "g (float[2] x) => (float[2] y) { y = Identity(x) }",
            "names the output 'y', and its input is an input of the same graph",
        ),
        (
            "g () => (float[2] y) <float[2] w = {1, 2}> { y = Identity(w) }",
            "its input is an initializer",
        ),
        (
            "g (float[2] x) => (float[2] a, float[2] y) { a = Relu(x) y = Identity(a) }",
            "its input is an output already",
        ),
        (
            """g (bool c, float[2] x) => (float[2] y) { o = Relu(x)
            y = If(c) <then_branch = t () => (float[2] u) { u = Identity(o) },
                       else_branch = e () => (float[2] v) { v = Abs(x) }> }""",
            "its input is made outside of the body",
        ),
        (
            """g (bool c, float[2] x) => (float[2] y) {
            y = If(c) <then_branch = t () => (float[2] u) { u = Identity(x) },
                       else_branch = e () => (float[2] v) { v = Abs(x) }> }""",
            "names the output 'u', and it is outer",
        ),
    ],
)
def test_names_of_outputs_stay(text: str, reason: str) -> None:
    module = from_onnx(text)
    InferShapes().run(PassContext(module))
    check_unchanged(PASS, module, reason)


def test_two_outputs_of_one_value_keep_one_identity() -> None:
    module = from_onnx("""g (float[2] x) => (float[2] y, float[2] z) {
        a = Relu(x) y = Identity(a) z = Identity(a)
    }""")
    check_values(PASS, module, {"x": np.float32([-1, 2])})
    assert op_types(module) == ["Relu", "Identity"]


def test_a_chain_of_identities_goes_in_one_run() -> None:
    module = from_onnx(
        "g (float[2] x) => (float[2] y) { a = Identity(x) b = Identity(a) y = Abs(b) }"
    )
    run_pass(PASS, module)
    assert op_types(module) == ["Abs"]


@pytest.mark.parametrize(
    ("body", "value"),
    [("Transpose <perm: ints = @p> (x)", "[0, 1]"), ("Cast <to: int = @p> (x)", "1")],
)
def test_attributes_that_are_parameters_of_a_function_stay(body: str, value: str) -> None:
    module = from_onnx(f"""g (float[3,4] x) => (float y) {{ y = local.f <p = {value}> (x) }}
    <opset_import: ["" : 21], domain: "local"> f <p> (x) => (y) {{ y = {body} }}""")
    InferShapes().run(PassContext(module))
    check_unchanged(PASS, module)
