"""conv-channel-affine-folding where Mul and Add follow the Conv itself: rows A22 to A43."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from foldline.dialects.onnx.constant import constant_tensor
from foldline.exporter import export_model
from foldline.importer import import_model
from foldline.stages.passes.algebraic.conv_channel_affine_folding import ConvChannelAffineFolding
from foldline.support.errors import InvalidModel
from tests.stages.check import constant, op_types, parse, run_pass, splat, values
from tests.stages.passes.algebraic.graphs import (
    compare,
    draw,
    feeds,
    folded,
    initial,
    model,
    operators,
    overridable,
    ready,
    unchanged,
)

PASS = ConvChannelAffineFolding()
HEAD = "g (float[1,2,3,3] x) => (float[1,3,3,3] y)"


def conv(body: str, head: str = HEAD, **constants: npt.ArrayLike) -> ModelProto:
    """A Conv of 3 channels that makes `c`, and what follows."""
    given: dict[str, Any] = {"w": draw(3, 2, 1, 1), "b": draw(3, seed=1), **constants}
    read = "c = Conv(x, w, b)"
    return model(f"{head} {{ {body if 'Conv' in body else read + ' ' + body} }}", **given)


def test_row_A22_conv_mul_add() -> None:
    given = conv(
        "c = Conv(x, w) m = Mul(c, s) y = Add(o, m)", s=draw(1, 3, 1, 1), o=draw(1, 3, 1, 1)
    )
    del given.graph.initializer[1]
    module = folded(PASS, given, ["Conv"])
    written = export_model(module)
    assert len(initial(module)) == 2
    assert not written.graph.value_info
    assert len(written.graph.node[-1].input) == 3


def test_row_A23_operator_set_6() -> None:
    text = f"{HEAD} {{ c = Conv(x, w) y = Mul <axis = 1, broadcast = 1>(c, s) }}"
    given = model(text, opset=6, w=draw(3, 2, 1, 1), s=draw(3))
    unchanged(PASS, given, "operator set 7 is needed, the model has 6")


def test_row_A24_the_product_of_scales_is_not_finite() -> None:
    body = """c = Conv(x, w) p, p2 = Split<axis = 1>(c, k) q = Split<axis = 1>(p)
    m = Mul(q, s) y = Mul(m, s)"""
    head = "g (float[1,2,3,3] x) => (float[1,1,3,3] y, float[1,2,3,3] p2)"
    huge = np.full((1,), 1e20, np.float32)
    w = np.full((3, 2, 1, 1), 1e-38, np.float32)
    unchanged(PASS, conv(body, head, w=w, s=huge, k=[1, 2]), "is not finite")


@pytest.mark.parametrize("name", ["s", "o"])
def test_row_A25_a_bias_that_overflows_leaves_the_weights(name: str) -> None:
    body = {"s": "y = Mul(c, s)", "o": "y = Add(c, o)"}[name]
    bias = np.full(3, 1e38 if name == "s" else 3e38, np.float32)
    value = {name: np.full((3, 1, 1), 10.0 if name == "s" else 3e38, np.float32)}
    unchanged(PASS, conv(body, b=bias, **value), "folded weights or bias are not finite")


def test_row_A26_float64_is_folded_in_float64() -> None:
    head = HEAD.replace("float[", "double[")
    w, scale = draw(3, 2, 1, 1, dtype=np.float64), np.float64(1 + 2.0**-30)
    given = model(f"{head} {{ c = Conv(x, w) y = Mul(c, s) }}", w=w, s=scale)
    module = folded(PASS, given, ["Conv"], rtol=1e-14)
    np.testing.assert_array_equal(initial(module)["algebraic_conv_weight"], w * scale)


def test_row_A27_the_conv_has_a_second_reader() -> None:
    head = "g (float[1,2,3,3] x) => (float[1,3,3,3] y, float[1,3,3,3] z)"
    unchanged(PASS, conv("y = Mul(c, s) z = Relu(c)", head, s=2.0), "several readers")


@pytest.mark.parametrize("op", ["Mul", "Add"], ids=["A28a", "A28b"])
def test_row_A28_the_constant_is_an_input(op: str) -> None:
    head = "g (float[1,2,3,3] x, float[3,1,1] s) => (float[1,3,3,3] y)"
    unchanged(PASS, conv(f"y = {op}(c, s)", head), "is not a constant")


@pytest.mark.parametrize("op", ["Mul", "Add"], ids=["A28a", "A28b"])
def test_row_A28_the_constant_is_overridable(op: str) -> None:
    given = overridable(conv(f"y = {op}(c, s)", s=draw(3, 1, 1)), "s")
    unchanged(PASS, given, "is not a constant")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        pytest.param("w", "its weights are not constant", id="A29a"),
        pytest.param("b", "its bias is not a constant", id="A29b"),
    ],
)
def test_row_A29_parameters_are_overridable(name: str, reason: str) -> None:
    unchanged(PASS, overridable(conv("y = Mul(c, s)", s=draw(3, 1, 1)), name), reason)


@pytest.mark.parametrize("name", ["w", "b"], ids=["A30a", "A30b"])
def test_row_A30_external_data_that_is_missing(name: str, tmp_path: Path) -> None:
    """The importer refuses the model and names the file: nothing is half-read."""
    given = conv("y = Mul(c, s)", s=draw(3, 1, 1))
    tensor = next(t for t in given.graph.initializer if t.name == name)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="missing.bin")
    (tmp_path / "m.onnx").write_bytes(given.SerializeToString())
    with pytest.raises(InvalidModel, match=r"missing\.bin"):
        import_model(tmp_path / "m.onnx", [])


@pytest.mark.parametrize("op", ["Mul", "Add"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_row_A31_constants_that_are_not_finite(op: str, value: float) -> None:
    constant = np.asarray([1, value, 1], np.float32).reshape(3, 1, 1)
    unchanged(PASS, conv(f"y = {op}(c, s)", s=constant), "is not finite")


def test_row_A32_a_constant_node() -> None:
    given = conv("s = Constant <value_float = 2.5> () y = Mul(c, s)")
    module = folded(PASS, given, ["Conv"])
    np.testing.assert_array_equal(initial(module)["algebraic_conv_weight"], draw(3, 2, 1, 1) * 2.5)
    assert len(initial(module)) == 2


@pytest.mark.parametrize(
    "domain", [pytest.param("", id="A33a"), pytest.param("ai.onnx", id="A33b")]
)
def test_row_A33_a_constant_of_the_default_domain(domain: str) -> None:
    given = conv("s = Constant <value_float = 2.5> () y = Mul(c, s)")
    given.graph.node[1].domain = domain
    folded(PASS, given, ["Conv"])


def test_row_A33c_a_constant_of_another_domain() -> None:
    given = conv("s = com.example.Constant <value_float = 2.5> () y = Mul(c, s)")
    unchanged(PASS, given, "is not a constant")


def test_row_A34_a_conv_of_another_domain() -> None:
    unchanged(PASS, conv("c = com.example.Conv(x, w, b) y = Mul(c, s)", s=2.0))


def test_row_A35_two_convs() -> None:
    text = """g (float[1,2,3,3] x) => (float[1,3,3,3] y, float[1,3,3,3] z) {
        c = Conv(x, w) y = Mul(c, s) d = Conv(x, v, b) z = Add(d, s) }"""
    given = model(
        text, w=draw(3, 2, 1, 1), v=draw(3, 2, 1, 1, seed=3), b=draw(3), s=draw(3, 1, 1, seed=2)
    )
    folded(PASS, given, ["Conv", "Conv"])


@pytest.mark.parametrize("name", ["c", "m"])
def test_row_A36_values_that_a_branch_reads(name: str) -> None:
    text = f"""g (float[1,2,3,3] x, bool t) => (float[1,3,3,3] y, float[1,3,3,3] z) {{
        c = Conv(x, w) m = Mul(c, s) y = Relu(m)
        z = If (t) <then_branch = a () => (float[1,3,3,3] e) {{ e = Neg({name}) }},
                    else_branch = a () => (float[1,3,3,3] f) {{ f = Abs({name}) }}> }}"""
    given = model(text, w=draw(3, 2, 1, 1), s=draw(3, 1, 1))
    if name == "c":
        unchanged(PASS, given)
    else:
        folded(PASS, given, ["Conv", "Relu", "If"])


def test_row_A37_the_longest_part_of_a_chain_is_folded() -> None:
    head = "g (float[1,2,3,3] x, float[1,3,3,3] r) => (float[1,3,3,3] y)"
    module = folded(
        PASS, conv("m = Mul(c, s) y = Add(m, r)", head, s=draw(3, 1, 1)), ["Conv", "Add"]
    )
    assert len(initial(module)) == 2


@pytest.mark.parametrize("op", ["Mul", "Add"])
def test_row_A38_a_number_of_higher_rank(op: str) -> None:
    head = HEAD.replace("float[1,3,3,3] y", "float[1,1,3,3,3] y")
    given = conv(f"y = {op}(c, s)", head, s=np.full((1, 1, 1, 1, 1), 2, np.float32))
    unchanged(PASS, given, "has more axes than what it is put to")


def test_row_A39_unknown_sizes() -> None:
    head = "g (float[N,2,H,W] x) => (float[N,3,H,W] y)"
    folded(PASS, conv("m = Mul(c, s) y = Add(m, o)", head, s=draw(3, 1, 1), o=0.5), ["Conv"])


def test_row_A40_what_is_dead_already_stays() -> None:
    given = conv("d = Constant <value_float = 1.0> () y = Relu(c)", unread=draw(4))
    module = ready(given)
    before = export_model(module.clone()).SerializeToString()
    unchanged(PASS, module)
    assert export_model(module).SerializeToString() == before
    given = conv("d = Constant <value_float = 1.0> () y = Mul(c, s)", unread=draw(4), s=2.0)
    assert {"d", "unread"} <= set(initial(folded(PASS, given, ["Conv"])))


def test_row_A41_float16() -> None:
    half = np.float16
    head = HEAD.replace("float[", "float16[")
    w, s = draw(3, 2, 1, 1, dtype=half), draw(3, 1, 1, dtype=half)
    given = model(f"{head} {{ c = Conv(x, w, b) y = Mul(c, s) }}", w=w, s=s, b=draw(3, dtype=half))
    made = initial(folded(PASS, given, ["Conv"], rtol=2e-3))["algebraic_conv_weight"]
    exact = w.astype(np.float64) * s.astype(np.float64).reshape(3, 1, 1, 1)
    np.testing.assert_array_equal(made, exact.astype(half))


def test_row_A41_bfloat16() -> None:
    narrow = ml_dtypes.bfloat16
    head = HEAD.replace("float[", "bfloat16[")
    given = model(f"{head} {{ c = Conv(x, w) y = Mul(c, s) }}", opset=22)
    for name, array in (("w", draw(3, 2, 1, 1)), ("s", draw(3, 1, 1))):
        data = array.astype(narrow)
        tensor = helper.make_tensor(
            name, TensorProto.BFLOAT16, data.shape, data.tobytes(), raw=True
        )
        given.graph.initializer.append(tensor)
    module = folded(PASS, given, ["Conv"], feed={})
    assert initial(module)["algebraic_conv_weight"].dtype == narrow


@pytest.mark.parametrize("group", [2, 4])
def test_row_A42_groups(group: int) -> None:
    text = f"""g (float[1,4,3,3] x) => (float[1,4,3,3] y) {{
        c = Conv <group = {group}> (x, w, b) y = Mul(c, s) }}"""
    w, s = draw(4, 4 // group, 1, 1), draw(4, 1, 1, seed=4)
    folded(PASS, model(text, w=w, b=draw(4), s=s), ["Conv"])


def test_row_A42_an_empty_bias() -> None:
    given = conv("c = Conv(x, w) y = Add(c, o)", o=draw(3, 1, 1))
    del given.graph.initializer[1]
    given.graph.node[0].input.append("")
    module = folded(PASS, given, ["Conv"])
    np.testing.assert_array_equal(initial(module)["algebraic_conv_bias"], draw(3))


def test_row_A42_shared_weights() -> None:
    text = """g (float[1,2,3,3] x) => (float[1,3,3,3] y, float[1,3,3,3] z) {
        c = Conv(x, w) y = Mul(c, s) z = Conv(x, w) }"""
    w = draw(3, 2, 1, 1)
    module = folded(PASS, model(text, w=w, s=draw(3, 1, 1)), ["Conv", "Conv"])
    np.testing.assert_array_equal(initial(module)["w"], w)


@pytest.mark.parametrize("scale", [0.0, -2.0])
@pytest.mark.parametrize("offset", [-0.0, 1.0])
def test_row_A43_zero_and_negative_numbers(scale: float, offset: float) -> None:
    given = conv("m = Mul(c, s) y = Add(m, o)", s=scale, o=offset)
    folded(PASS, given, ["Conv"], rtol=1e-6)


def test_row_A36_both_values_that_a_branch_reads() -> None:
    text = """g (float[1,2,3,3] x, bool t) => (float[1,3,3,3] y, float[1,3,3,3] z) {
        c = Conv(x, w) m = Mul(c, s) y = Relu(m)
        z = If (t) <then_branch = a () => (float[1,3,3,3] e) { e = Neg(c) },
                    else_branch = a () => (float[1,3,3,3] f) { f = Abs(m) }> }"""
    given = model(text, w=draw(3, 2, 1, 1), s=draw(3, 1, 1))
    module = ready(given)
    before = values(module.clone(), feeds(given))
    unchanged(PASS, module)
    compare(before, values(module, feeds(given)), rtol=0)


def test_guard_5_a_square_has_no_constant() -> None:
    context = unchanged(PASS, conv("y = Mul(c, c)"))
    assert not list(context.remarks)


@pytest.mark.parametrize(
    "shape", [(3,), (1, 1, 3), (2, 3, 1, 1), (1, 3, 3, 1), (1, 3, 1, 3)], ids=str
)
def test_guard_7_constants_that_differ_elsewhere(shape: tuple[int, ...]) -> None:
    head = "g (float[1,2,3,3] x) => (float[A,3,3,3] y)"
    unchanged(PASS, conv("y = Mul(c, s)", head, s=draw(*shape)), "is not one number for each of 3")


def test_guard_7_one_channel_is_not_made_several() -> None:
    given = conv("y = Mul(c, s)", w=draw(1, 2, 1, 1), b=draw(1), s=draw(3, 1, 1))
    unchanged(PASS, given, "is not one number for each of 1")


def test_guard_8_parameters_that_are_not_finite() -> None:
    w = draw(3, 2, 1, 1)
    w[0, 0] = np.inf
    unchanged(PASS, conv("y = Mul(c, s)", w=w, s=0.5), "weights or bias are not finite")


def test_weights_in_a_constant_node() -> None:
    given = conv("y = Mul(c, s)", s=2.0)
    tensors = {t.name: t for t in given.graph.initializer}
    given.graph.initializer.remove(tensors["w"])
    given.graph.node.insert(0, helper.make_node("Constant", [], ["w"], value=tensors["w"]))
    folded(PASS, given, ["Conv"])


def test_a_matrix_of_channels() -> None:
    """The least rank of a Conv: its result has no other axes but one."""
    text = "g (float[2,2,5] x) => (float[2,3,5] y) { c = Conv(x, w) y = Mul(c, s) }"
    folded(PASS, model(text, w=draw(3, 2, 1), s=draw(3, 1)), ["Conv"])


def test_models_do_not_grow() -> None:
    """Weights of one repeated element would have to be stored."""
    text = f"""%w = {splat(0.5, (200, 200, 1, 1), np.float32)}
    %s = {constant(draw(1, 200, 1, 1), np.float32)}
    %c = onnx.Conv(%x, %w) : tensor<1x200x3x3xf32>
    %y = onnx.Mul(%c, %s) : tensor<1x200x3x3xf32>
    return(%y)"""
    inputs = "%x: tensor<1x200x3x3xf32>"
    unchanged(PASS, parse(text, inputs), "160000 bytes are larger than the old ones of 804 bytes")
    run_pass(ConvChannelAffineFolding(max_bytes=None), module := parse(text, inputs))
    assert op_types(module) == ["Conv"]


def test_repeated_elements_stay_repeated() -> None:
    text = f"""%w = {splat(0.5, (200, 200, 1, 1), np.float32)}
    %s = {constant(3.0, np.float32)}
    %c = onnx.Conv(%x, %w) : tensor<1x200x3x3xf32>
    %m = onnx.Mul(%c, %s) : tensor<1x200x3x3xf32>
    %y = onnx.Add(%m, %s) : tensor<1x200x3x3xf32>
    return(%y)"""
    run_pass(PASS, module := parse(text, "%x: tensor<1x200x3x3xf32>"))
    (conv,) = operators(module)
    tensors = [constant_tensor(operand) for operand in conv.operands[1:]]
    assert all(tensor is not None and tensor.data.is_splat for tensor in tensors)


def test_a_factor_alone_makes_no_bias() -> None:
    given = conv("c = Conv(x, w) y = Mul(c, s)", s=2.0)
    del given.graph.initializer[1]
    (made,) = operators(folded(PASS, given, ["Conv"]))
    assert len(made.operands) == 2


def test_an_addend_alone_leaves_the_weights() -> None:
    given = conv("y = Add(c, o)", o=draw(3, 1, 1))
    assert set(initial(folded(PASS, given, ["Conv"]))) == {"w", "algebraic_conv_bias"}


def test_inside_of_a_body() -> None:
    text = """g (float[1,2,3,3] x, bool t) => (float[1,3,3,3] y) {
        y = If (t) <then_branch = a () => (float[1,3,3,3] e) { c = Conv(x, w) e = Mul(c, s) },
                    else_branch = a () => (float[1,3,3,3] f) { f = Conv(x, w) }> }"""
    module = folded(PASS, model(text, w=draw(3, 2, 1, 1), s=draw(3, 1, 1)), ["If"])
    assert not any(op.name == "onnx.Mul" for op in module.walk())


def test_row_A31_prefix_before_a_number_that_is_not_finite() -> None:
    given = conv("m = Mul(c, s) y = Mul(m, n)", s=2.0, n=np.float32(np.inf))
    folded(PASS, given, ["Conv", "Mul"])


def test_names_of_inputs_are_left_alone() -> None:
    given = conv("y = Mul(c, s)", s=draw(3, 1, 1))
    given.graph.initializer.append(numpy_helper.from_array(draw(2), "algebraic_conv_weight"))
    module = folded(PASS, given, ["Conv"])
    names = [t.name for t in export_model(module).graph.initializer]
    assert names.count("algebraic_conv_weight") == 1
    onnx.checker.check_model(export_model(module))
