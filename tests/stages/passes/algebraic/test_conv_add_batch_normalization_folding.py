"""conv-add-batch-normalization-folding: the rows on Conv, Add and BatchNormalization."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from onnx import ModelProto, helper

import foldline
from foldline.dialects.onnx.constant import constant_tensor
from foldline.stages.context import PassContext
from foldline.stages.passes.algebraic.conv_add_batch_normalization_folding import (
    ConvAddBatchNormalizationFolding,
)
from tests.stages.check import op_types
from tests.stages.passes.algebraic.graphs import (
    SIZES,
    check_linear,
    draw,
    folded,
    initial,
    model,
    overridable,
    ready,
    unchanged,
)

PASS = ConvAddBatchNormalizationFolding()
ON = {"passes.enable": ["conv-add-batch-normalization-folding"]}


def norm(
    add: str = "a = Add(c, A)",
    attributes: str = "",
    outputs: str = "y",
    bias: bool = True,
    opset: int = 17,
    inputs: str = "float[1,2,3,3] x",
    **constants: npt.ArrayLike,
) -> ModelProto:
    """A Conv of 3 channels, an Add, and a BatchNormalization."""
    given: dict[str, Any] = {
        "w": draw(3, 2, 1, 1),
        "b": draw(3, seed=1),
        "A": draw(1, 3, 1, 1, seed=2),
        "gamma": draw(3, seed=3),
        "beta": draw(3, seed=4),
        "mean": draw(3, seed=5),
        "var": draw(3, seed=6) ** 2 + np.float32(0.1),
        **constants,
    }
    given = {name: value for name, value in given.items() if value is not None}
    conv = f"c = Conv(x, w{', b' if bias else ''})"
    if not bias:
        del given["b"]
    results = ", ".join(f"float[P{n},3,Q{n},R{n}] {name}" for n, name in enumerate(outputs.split()))
    read = f"y = BatchNormalization {attributes} (a, gamma, beta, mean, var)"
    return model(f"g ({inputs}) => ({results}) {{ {conv} {add} {read} }}", opset=opset, **given)


@pytest.mark.parametrize("add", ["a = Add(c, A)", "a = Add(A, c)"])
@pytest.mark.parametrize("bias", [False, True])
def test_row_conv_add_bn_both_orders_with_and_without_bias(add: str, bias: bool) -> None:
    folded(PASS, norm(add, bias=bias), ["Conv", "Add"], rtol=3e-5)


def test_row_conv_add_bn_training_mode() -> None:
    given = norm(attributes="<training_mode = 1>", outputs="y")
    given.graph.node[2].output.extend(["running_mean", "running_var"])
    unchanged(PASS, given, "the BatchNormalization trains")


def test_row_conv_add_bn_a_gamma_that_is_computed() -> None:
    given = norm(inputs="float[1,2,3,3] x, float[3] gamma", gamma=None)
    unchanged(PASS, given)


def test_row_conv_add_bn_an_overridable_gamma() -> None:
    unchanged(PASS, overridable(norm(), "gamma"))


@pytest.mark.parametrize("outputs", ["y c", "y a"])
def test_row_conv_add_bn_a_public_value(outputs: str) -> None:
    unchanged(PASS, norm(outputs=outputs))


def test_row_conv_add_bn_another_reader() -> None:
    unchanged(PASS, norm("a = Add(c, A) z = Relu(c)", outputs="y z"))


def test_row_conv_add_bn_a_variance_without_root() -> None:
    var = np.float32([-0.02, 1, 1])
    unchanged(PASS, norm(attributes="<epsilon = 0.01>", var=var), "do not add up to positive")


def test_row_conv_add_bn_a_negative_epsilon() -> None:
    unchanged(PASS, norm(attributes="<epsilon = -0.01>"), "do not add up to positive numbers")


def test_row_conv_add_bn_float16_overflow() -> None:
    text = """g (float16[1,2,3,3] x) => (float16[1,3,3,3] y) { c = Conv(x, w) a = Add(c, A)
        y = BatchNormalization <epsilon = 0.0> (a, gamma, beta, mean, var) }"""
    half = {
        "w": np.full((3, 2, 1, 1), 40000),
        "A": np.ones((1, 3, 1, 1)),
        "gamma": np.full(3, 2),
        "beta": np.zeros(3),
        "mean": np.zeros(3),
        "var": np.ones(3),
    }
    given = {name: array.astype(np.float16) for name, array in half.items()}
    unchanged(PASS, model(text, **given), "the folded parameters are not finite")
    given["w"] = given["w"] / np.float16(40000)
    folded(PASS, model(text, **given), ["Conv", "Add"], rtol=2e-3)


def test_row_conv_add_bn_an_addend_that_would_grow() -> None:
    shape = (1, 1, 256, 256)
    given = norm(inputs="float[1,2,256,256] x", A=draw(*shape))
    unchanged(PASS, given, "new constants of 786468 bytes are larger than the old ones")
    large = ConvAddBatchNormalizationFolding(max_bytes=None)
    folded(large, given, ["Conv", "Add"], rtol=3e-5)


def test_row_conv_add_bn_names_that_are_taken() -> None:
    name = "Rewrite_FoldedConvAddPattern_0_weight"
    given = norm(
        "a = Add(c, A) z = Relu(Rewrite_FoldedConvAddPattern_0_weight)",
        outputs="y z",
        **{name: draw(1, 3, 1, 1)},
    )
    written = foldline.optimize(given, options={**ON, "oo.level": "O1"})
    names = [o for node in written.graph.node for o in node.output]
    names += [t.name for t in written.graph.initializer]
    assert len(names) == len(set(names))
    assert "BatchNormalization" not in [node.op_type for node in written.graph.node]


@pytest.mark.parametrize(
    "shape", [(), (1,), (3, 1, 1), (1, 3, 3, 3), (3, 3), (1, 1, 3, 3)], ids=str
)
def test_addends(shape: tuple[int, ...]) -> None:
    folded(PASS, norm(A=draw(*shape)), ["Conv", "Add"], rtol=3e-5)


def test_an_addend_that_makes_the_sum_larger() -> None:
    unchanged(PASS, norm(A=draw(2, 3, 1, 1)), "may make the sum larger")


def test_parameters_of_other_shapes() -> None:
    given = norm(attributes="<spatial = 0>", opset=7)
    unchanged(PASS, given, "parameters for each place")


def test_constants_of_two_types() -> None:
    given = norm(mean=draw(3, dtype=np.float64), var=np.ones(3))
    unchanged(PASS, given, "not all of one type")


def test_unknown_sizes() -> None:
    given = norm(inputs="float[N,2,H,W] x")
    folded(PASS, given, ["Conv", "Add"], rtol=3e-5)


def test_cancellation() -> None:
    """The bias is as large as the mean: products in single precision would lose everything."""
    big = np.full(3, 1e6, np.float32)
    given = norm(
        b=big + np.float32(0.25),
        mean=big,
        var=np.ones(3, np.float32),
        gamma=np.full(3, 1000, np.float32),
        beta=np.zeros(3, np.float32),
        attributes="<epsilon = 0.0>",
    )
    module = ready(given)
    PASS.run(PassContext(module))
    assert op_types(module) == ["Conv", "Add"]
    arrays = [array for array in _constants(module) if array.shape == (3,)]
    np.testing.assert_array_equal(arrays[0], np.full(3, 250, np.float32))


def _constants(module: Any) -> list[npt.NDArray[Any]]:
    found = [constant_tensor(op.results[0]) for op in module.walk() if op.results]
    return [tensor.array for tensor in found if tensor is not None]


def test_groups_and_attributes_are_kept() -> None:
    text = """g (float[1,4,6,6] x) => (float[1,4,3,3] y) {
        c = Conv <group = 2, strides = [2, 2], pads = [1, 1, 1, 1], kernel_shape = [3, 3]> (x, w)
        a = Add(c, A) y = BatchNormalization(a, gamma, beta, mean, var) }"""
    given = model(
        text,
        w=draw(4, 2, 3, 3),
        A=draw(4, 1, 1),
        gamma=draw(4),
        beta=draw(4),
        mean=draw(4),
        var=np.ones(4, np.float32),
    )
    folded(PASS, given, ["Conv", "Add"], rtol=3e-5)


@pytest.mark.parametrize("opset", [7, 9, 13, 15, 22])
def test_every_form(opset: int) -> None:
    folded(PASS, norm(opset=opset), ["Conv", "Add"], rtol=3e-5)


def test_ir_version_3() -> None:
    given = norm()
    given.ir_version = 3
    given.opset_import[0].version = 9
    for tensor in given.graph.initializer:
        given.graph.input.append(
            helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
        )
    unchanged(PASS, given, "IR version 4 is needed, the model has 3")


def test_equal_factors_keep_the_shape_of_the_addend() -> None:
    ones = np.ones(3, np.float32)
    given = norm(A=draw(1, 1, 3, 3), gamma=ones * 2, var=ones, mean=ones, beta=ones)
    module = folded(PASS, given, ["Conv", "Add"], rtol=3e-5)
    assert (1, 1, 3, 3) in [array.shape for array in _constants(module)]
    assert initial(module)


@SIZES
def test_work_is_linear(nodes: int) -> None:
    def chains(count: int) -> ModelProto:
        body = " ".join(
            f"c{n} = Conv(x, w) a{n} = Add(c{n}, A) "
            f"y{n} = BatchNormalization(a{n}, gamma, beta, mean, var)"
            for n in range(count)
        )
        outputs = ", ".join(f"float[1,3,3,3] y{n}" for n in range(count))
        return model(
            f"g (float[1,2,3,3] x) => ({outputs}) {{ {body} }}",
            w=draw(3, 2, 1, 1),
            A=draw(3, 1, 1),
            gamma=draw(3),
            beta=draw(3),
            mean=draw(3),
            var=np.ones(3, np.float32),
        )

    check_linear(PASS, chains, nodes // 3)
