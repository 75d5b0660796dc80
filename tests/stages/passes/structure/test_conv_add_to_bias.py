"""conv-add-to-bias: which constants are a bias, and that every way to convolve adds it alike."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.onnx.op import result_names
from foldline.stages.context import PassContext
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.passes.structure.conv_add_to_bias import ConvAddToBias
from tests.stages.check import (
    Array,
    check_pass,
    check_unchanged,
    check_values,
    constant,
    from_onnx,
    nodes,
    op_types,
    parse,
    run_pass,
)
from tests.stages.passes.structure.own import check_own_values

PASS = ConvAddToBias()
INPUTS = "%x: tensor<1x2x?x?xf32>, %w: tensor<3x2x3x3xf32>"
CONV = "%{} = onnx.Conv(%x, %w{}) {{pads = array<i64: 1, 1, 1, 1>}} : tensor<1x3x?x?xf32>\n"
PER_CHANNEL = constant(np.reshape([1, -2, 0.5], (1, 3, 1, 1)), np.float32)


def add(inputs: str, value: str, types: str = "tensor<1x3x?x?xf32>") -> ModuleOp:
    text = f"%c = {value}\n{CONV.format('a', '')}%y = onnx.Add({inputs}) : {types}\nreturn(%y)"
    return parse(text, INPUTS)


@pytest.mark.parametrize("inputs", ["%a, %c", "%c, %a"])
@pytest.mark.parametrize("shape", [(1, 3, 1, 1), (3, 1, 1)])
def test_a_number_a_channel_is_the_bias(inputs: str, shape: tuple[int, ...]) -> None:
    value = constant(np.reshape([1, -2, 0.5], shape), np.float32)
    bias = constant([1, -2, 0.5], np.float32)
    after = parse(f"%c = {bias}\n{CONV.format('y', ', %c')}return(%y)", INPUTS)
    check_pass(PASS, add(inputs, value), after)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1, 1)])
def test_one_number_is_that_of_every_channel(shape: tuple[int, ...]) -> None:
    bias = constant([7, 7, 7], np.float32)
    after = parse(f"%c = {bias}\n{CONV.format('y', ', %c')}return(%y)", INPUTS)
    check_pass(PASS, add("%a, %c", constant(np.full(shape, 7), np.float32)), after)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (constant(np.ones((1, 1, 1, 5)), np.float32), "is not one number a channel"),
        (constant(np.ones((2, 3, 1, 1)), np.float32), "is not one number a channel"),
        (constant(np.ones((1, 1, 3, 1, 1)), np.float32), "is not one number a channel"),
        (constant([[[1]], [[np.nan]], [[2]]], np.float32), "holds a NaN"),
    ],
)
def test_other_constants_stay(value: str, reason: str) -> None:
    check_unchanged(PASS, add("%a, %c", value, types="!onnx.unknown"), reason)


def test_a_conv_with_a_bias_stays() -> None:
    inputs = f"{INPUTS}, %b: tensor<3xf32>"
    text = f"%c = {PER_CHANNEL}\n{CONV.format('a', ', %b')}%y = onnx.Add(%a, %c) : !onnx.unknown\n"
    check_unchanged(PASS, parse(f"{text}return(%y)", inputs))


def test_a_conv_with_other_readers_stays() -> None:
    text = (
        f"%c = {PER_CHANNEL}\n{CONV.format('a', '')}%y = onnx.Add(%a, %c) : tensor<1x3x?x?xf32>\n"
    )
    check_unchanged(PASS, parse(f"{text}return(%y, %a)", INPUTS), "other readers")


def test_half_types_stay_as_their_product_is_rounded_first() -> None:
    module = from_onnx("""g (float16[1,1,2,2] x, float16[1,1,1,1] w) => (float16[1,1,2,2] y)
    <float16[1,1,1,1] c = {2049}> { a = Conv(x, w) y = Add(a, c) }""")
    InferShapes().run(PassContext(module))
    check_unchanged(PASS, module, "a bias of float16 is added before the product is rounded")


@pytest.mark.parametrize(
    ("attributes", "reason"), [("<axis = 1, broadcast = 1>", None), ("", "is not one number")]
)
def test_old_versions_say_the_axis(attributes: str, reason: str | None) -> None:
    module = from_onnx(
        f"""g (float[1,2,4,4] x, float[3,2,1,1] w) => (float[1,3,4,4] y) <float[3] c = {{1,2,3}}>
        {{ a = Conv(x, w) y = Add {attributes} (a, c) }}""",
        ir_version=4,
        opset=6,
    )
    if reason is None:
        run_pass(PASS, module)
        assert op_types(module) == ["Conv"]
    else:
        check_unchanged(PASS, module, reason)


def test_names_are_those_of_the_sum() -> None:
    module = convolution((1, 2, 4, 4), (3, 2, 1, 1))
    run_pass(PASS, module)
    (op,) = (op for op in nodes(module) if op.op_type == "Conv")
    assert result_names(op) == ("y",)


def convolution(x: tuple[int, ...], w: tuple[int, ...], **attributes: object) -> ModuleOp:
    """A Conv of these shapes and an Add of one number for each channel."""
    listed = f"<{', '.join(f'{k} = {v}' for k, v in attributes.items())}>" if attributes else ""
    values = ", ".join(str(v) for v in np.random.default_rng(1).standard_normal(w[0]) * 3)
    bias = f"float{[w[0], *[1] * (len(x) - 2)]} c = {{{values}}}"
    axes = ", ".join("abcd"[: len(x)])
    module = from_onnx(f"""g (float{list(x)} x, float{list(w)} w) => (float[{axes}] y) <{bias}> {{
        p = Conv {listed} (x, w) y = Add(p, c)
    }}""")
    InferShapes().run(PassContext(module))
    return module


WAYS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, object]]] = {
    "pointwise": ((1, 20, 9, 9), (7, 20, 1, 1), {}),
    "pointwise in groups and a batch": ((2, 6, 5, 5), (4, 3, 1, 1), {"group": 2}),
    "gathered": ((1, 3, 30, 30), (8, 3, 7, 7), {"strides": [2, 2], "pads": [3, 3, 3, 3]}),
    "gathered in bands": ((1, 64, 60, 60), (64, 64, 3, 3), {"pads": [1, 1, 1, 1]}),
    "depthwise": ((1, 33, 20, 20), (33, 1, 3, 3), {"group": 33, "pads": [1, 1, 1, 1]}),
    "Winograd": ((1, 128, 14, 14), (130, 128, 3, 3), {"pads": [1, 1, 1, 1]}),
    "Winograd in bands and a batch": ((2, 128, 40, 40), (128, 128, 3, 3), {}),
    "one axis": ((2, 5, 40), (6, 5, 3), {"dilations": [2]}),
    "no image": ((0, 3, 8, 8), (4, 3, 3, 3), {}),
}


def sample(x: tuple[int, ...], w: tuple[int, ...]) -> dict[str, Array]:
    random = np.random.default_rng(0)
    return {
        "x": random.standard_normal(x, np.float32),
        "w": random.standard_normal(w, np.float32),
    }


@pytest.mark.parametrize("way", WAYS)
def test_each_way_to_convolve_gives_the_same_bits(way: str) -> None:
    x, w, attributes = WAYS[way]
    check_own_values(PASS, convolution(x, w, **attributes), sample(x, w))


@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan, 3e38])
@pytest.mark.parametrize("way", ["pointwise", "gathered", "depthwise", "Winograd"])
def test_special_values_give_the_same_bits(way: str, special: float) -> None:
    x, w, attributes = WAYS[way]
    feed = sample(x, w)
    feed["x"][0, 0, 3, 4] = special
    check_own_values(PASS, convolution(x, w, **attributes), feed)


def test_a_sum_that_overflows_by_the_bias_only() -> None:
    x, w, _ = WAYS["Winograd"]
    module = from_onnx(f"""g (float{list(x)} x, float{list(w)} w) => (float[1,130,14,14] y)
    <float c = {{3e38}}> {{ p = Conv <pads = [1,1,1,1]> (x, w) y = Add(p, c) }}""")
    InferShapes().run(PassContext(module))
    feed = sample(x, w)
    feed["x"] *= 1e36
    check_own_values(PASS, module, feed)


@pytest.mark.parametrize("way", ["pointwise", "gathered", "depthwise"])
def test_values_are_the_same_on_the_oracle(way: str) -> None:
    x, w, attributes = WAYS[way]
    check_values(PASS, convolution(x, w, **attributes), sample(x, w))


def test_it_works_in_bodies() -> None:
    module = from_onnx("""g (bool c, float[1,2,4,4] x, float[3,2,1,1] w) => (float[1,3,4,4] y)
    <float[3,1,1] k = {1,2,3}> {
        y = If(c) <then_branch = t () => (float[1,3,4,4] u) { a = Conv(x, w) u = Add(a, k) },
                   else_branch = e () => (float[1,3,4,4] v) { v = Conv(x, w) }>
    }""")
    InferShapes().run(PassContext(module))
    feed = {"c": np.array(True), **sample((1, 2, 4, 4), (3, 2, 1, 1))}
    check_values(PASS, module, feed)
    assert not any(op.name == "onnx.Add" for op in module.walk())
