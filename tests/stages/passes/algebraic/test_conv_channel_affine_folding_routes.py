"""conv-channel-affine-folding through views, Splits and Slices: rows A44 to A62."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from onnx import ModelProto, parser

from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.op import node_name
from foldline.importer import import_model
from foldline.stages.context import PassContext
from foldline.stages.passes.algebraic.conv_channel_affine_folding import ConvChannelAffineFolding
from foldline.stages.passes.algebraic.static_split_to_slice import StaticSplitToSlice
from foldline.support.errors import InvalidModel
from tests.stages.check import op_types, values
from tests.stages.passes.algebraic.graphs import (
    SIZES,
    check_linear,
    compare,
    draw,
    feeds,
    folded,
    model,
    operators,
    overridable,
    ready,
    unchanged,
)

PASS = ConvChannelAffineFolding()
HUGE = 2**63 - 1


def conv(
    outputs: str, body: str, channels: int = 4, opset: int = 17, **constants: npt.ArrayLike
) -> ModelProto:
    """A Conv of `channels` that makes `c` of 2 x 2 places, and what follows."""
    given: dict[str, Any] = {"w": draw(channels, 2, 1, 1), "b": draw(channels, seed=1), **constants}
    text = f"g (float[1,2,2,2] x) => ({outputs}) {{ c = Conv(x, w, b) {body} }}"
    return model(text, opset=opset, **given)


def out(name: str, channels: int) -> str:
    """An output of so many channels."""
    return f"float[1,{channels},2,2] {name}"


def test_row_A44_a_split() -> None:
    body = "p, q = Split <axis = 1> (c, k) m = Mul(p, s) y = Add(m, o) z = Add(q, o)"
    outputs = f"{out('y', 2)}, {out('z', 2)}"
    given = conv(outputs, body, k=[2, 2], s=draw(2, 1, 1), o=draw(1, 2, 1, 1))
    folded(PASS, given, ["Conv", "Split"])


def test_row_A45_nested_splits() -> None:
    body = """p, q, r = Split <axis = 1> (c, k) [inner] i, j = Split <axis = 1> (q, l)
    a = Mul(p, s) m = Mul(i, s) n = Add(m, s) d = Sigmoid(n) e1 = Mul(j, t) e = Add(e1, t)
    f = Relu(r)"""
    body = body.replace("p, q, r = Split", "[outer] p, q, r = Split").replace("[inner] ", "")
    body = body.replace("i, j = Split", "[inner] i, j = Split")
    outputs = f"{out('a', 1)}, {out('d', 1)}, {out('e', 3)}, {out('f', 1)}"
    given = conv(outputs, body, channels=6, k=[1, 4, 1], l=[1, 3], s=draw(1), t=draw(3, 1, 1))
    module = folded(PASS, given, ["Conv", "Split", "Split", "Sigmoid", "Relu"])
    names = [node_name(op) for op in operators(module) if op.op_type == "Split"]
    assert names == ["outer", "inner"]


def test_row_A46_a_view_before_the_split() -> None:
    body = """v = Reshape <allowzero = 1> (c, sh) p, q, r = Split <axis = 1> (v, k)
    m = Mul(p, s) n = Mul(q, s) y = Add(n, s) z = Relu(r)"""
    outputs = ", ".join(f"float[1,{n},1,2,2] {name}" for name, n in (("m", 1), ("y", 1), ("z", 2)))
    given = conv(outputs, body, sh=[1, -1, 1, 2, 2], k=[1, 1, 2], s=draw(1))
    folded(PASS, given, ["Conv", "Reshape", "Split", "Relu"])


def test_row_A47_a_literal_zero() -> None:
    text = """g (float[0,2,2,2] x) => (float[0,4,4] y) {
        c = Conv(x, w) v = Reshape <allowzero = 1> (c, sh) m = Mul(v, s) y = Add(m, s) }"""
    given = model(text, w=draw(4, 2, 1, 1), sh=[0, 4, 4], s=draw(4, 1))
    unchanged(PASS, given, "Reshape is not certain to keep the channels")


def mixed(**constants: npt.ArrayLike) -> ModelProto:
    """A view, a Split of it, and behind that a Squeeze and two Slices side by side."""
    body = """v = Reshape(c, sh) p, q = Split <axis = 1> (v, k)
    p1 = Squeeze(p, ax) p2 = Mul(p1, s) y = Relu(p2)
    q1 = Slice(q, b1, e1) q2 = Slice(q, b2, e2, a2, t2) d = Mul(q1, s) e = Add(q2, s)"""
    outputs = f"{out('y', 2)}, float[1,1,1,2,2] d, float[1,1,1,2,2] e"
    slices = {
        "b1": [0, 0],
        "e1": [HUGE, 1],
        "b2": [0, 1, 0, 0, 0],
        "e2": [HUGE] * 5,
        "a2": [0, 1, 2, 3, 4],
        "t2": [1] * 5,
    }
    given = {"sh": [1, 4, 1, 2, 2], "k": [2, 2], "ax": [2], "s": draw(1), **slices, **constants}
    return conv(outputs, body, **given)


def test_row_A48_squeeze_and_parallel_slices() -> None:
    kept = ["Conv", "Reshape", "Split", "Squeeze", "Relu", "Slice", "Slice"]
    module = folded(PASS, mixed(), kept)
    StaticSplitToSlice().run(PassContext(module))
    after = op_types(module)
    assert sorted(after) == sorted(["Conv", "Reshape", "Squeeze", "Relu", *["Slice"] * 4])
    for again in (PASS, StaticSplitToSlice()):
        unchanged(again, module)


def test_row_A49_a_view_that_is_an_output() -> None:
    body = "v = Reshape(c, sh) y = Mul(v, s)"
    given = conv("float[1,4,4] v, float[1,4,4] y", body, sh=[1, 4, 4], s=2.0)
    module = ready(given)
    before = values(module.clone(), feeds(given))
    unchanged(PASS, module)
    compare(before, values(module, feeds(given)), rtol=0)


@pytest.mark.parametrize("name", ["sh", "k", "b1", "e1", "a2", "t2"])
def test_row_A50_parameters_are_overridable(name: str) -> None:
    """What is behind an overridable parameter stays; in `mixed` that is a part of the branches."""
    given = overridable(mixed(), name)
    body = {"sh": "everything", "k": "everything"}.get(name, "slices")
    if body == "everything":
        unchanged(PASS, given)
    else:
        kept = ["Conv", "Reshape", "Split", "Squeeze", "Relu", "Slice", "Slice", "Mul", "Add"]
        folded(PASS, given, kept, feed=feeds(mixed()))


@pytest.mark.parametrize("name", ["b", "e", "a", "t"])
def test_row_A50_a_slice_alone_with_overridable_bounds(name: str) -> None:
    body = "v = Slice(c, b, e, a, t) y = Mul(v, s)"
    given = conv(
        "float[1,P,2,2] y", body.replace("b, e", "b0, e"), s=2.0, b0=[0], e=[2], a=[1], t=[1]
    )
    unchanged(PASS, overridable(given, "b0" if name == "b" else name), "bounds of a Slice")


@pytest.mark.parametrize(
    ("split", "reason"),
    [
        pytest.param("i = com.example.Split <axis = 1> (p, l)", None, id="A51a"),
        pytest.param("i, j = Split <axis = 2> (p, l)", "Split of another axis", id="A51b"),
        pytest.param("i, j = Split <axis = 1> (p, d)", "its sizes are not constant", id="A51c"),
        pytest.param("i = Split <axis = 1> (p, l2)", "are not 1 that add up to 1", id="A51d"),
    ],
)
def test_row_A51_bad_nested_splits(split: str, reason: str | None) -> None:
    text = f"""g (float[1,2,2,2] x, int64[2] d) => (float[1,P,Q,2] y) {{
        c = Conv(x, w) p, q = Split <axis = 1> (c, k) {split} y = Mul(i, s) }}"""
    given = model(text, w=draw(4, 2, 1, 1), k=[1, 3], l=[1, 1], l2=[2], s=2.0)
    if reason is not None and "add up" in reason:
        with pytest.raises(InvalidModel):
            ready(given)
    else:
        unchanged(PASS, given, reason)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("p, q = Split <axis = 1> (c, k) i, i = Split <axis = 1> (p)", id="A52"),
        pytest.param("i = Slice(c, b0, b1, b1) i = Slice(c, b1, b2, b1)", id="A53"),
        pytest.param(
            "p, q = Split <axis=1> (c, k) i, j = Split <axis=1> (p) i, l = Split <axis=1> (q)",
            id="A54",
        ),
    ],
)
def test_rows_A52_A53_A54_names_defined_twice(body: str) -> None:
    """No pass sees such models: the importer refuses them."""
    given = conv(
        "float[1,P,2,2] y", f"{body} y = Mul(i, s)", k=[2, 2], b0=[0], b1=[1], b2=[2], s=2.0
    )
    with pytest.raises(InvalidModel, match="twice"):
        import_model(given, [])


@pytest.mark.parametrize(
    ("outputs", "reader"),
    [
        pytest.param("float[1,2,2,2] p, float[1,2,2,2] y", "", id="A55a"),
        pytest.param("float[1,2,2,2] z, float[1,2,2,2] y", "z = Relu(p)", id="A55b"),
        pytest.param(
            "float[1,2,2,2] z, float[1,2,2,2] y",
            """t = Constant <value = bool[1] {1}> () z = If (t)
            <then_branch = a () => (float[1,2,2,2] e) { e = Neg(p) },
            else_branch = a () => (float[1,2,2,2] f) { f = Abs(p) }>""",
            id="A55c",
        ),
    ],
)
def test_row_A55_leaves_that_others_read(outputs: str, reader: str) -> None:
    body = f"p, q = Split <axis = 1> (c, k) y = Mul(p, s) {reader}"
    unchanged(PASS, conv(outputs, body, k=[2, 2], s=2.0), "several readers, or is an output")


def test_row_A56_a_cycle() -> None:
    """No pass sees such models: the importer refuses them."""
    body = "p, q = Split <axis = 1> (r, k) r = Identity(p) y = Mul(q, s)"
    with pytest.raises(InvalidModel, match=r"cycl|circle|order"):
        import_model(conv("float[1,2,2,2] y", body, k=[2, 2], s=2.0), [])


def chain(splits: int) -> ModelProto:
    """So many Splits into one part, one behind the other, then a Mul."""
    values = ["c", *(f"v{number}" for number in range(splits))]
    pairs = pairwise(values)
    body = " ".join(f"{after} = Split <axis = 1> ({before})" for before, after in pairs)
    given = conv(out("y", 4), f"{body} y = Mul({values[-1]}, s)", s=2.0)
    return given


def test_row_A57_depth() -> None:
    folded(PASS, chain(63), ["Conv", *["Split"] * 63])
    for splits in (64, 66):
        unchanged(PASS, chain(splits), "deeper than 64")


@pytest.mark.parametrize("op", ["Mul", "Add"])
@pytest.mark.parametrize("nested", [False, True])
def test_row_A58_foreign_mul_and_add(op: str, nested: bool) -> None:
    body = "p, q = Split <axis = 1> (c, k)" if nested else "p = Identity(c)"
    body = body if nested else ""
    source = "p" if nested else "c"
    given = conv("float[P,Q,R,S] y", f"{body} y = com.example.{op}({source}, s)", k=[2, 2], s=2.0)
    unchanged(PASS, given)


def test_row_A59_foreign_slice() -> None:
    body = "p, q = Split <axis = 1> (c, k) r = com.example.Slice(p, b0, b1) y = Mul(r, s)"
    unchanged(PASS, conv("float[P,Q,R,S] y", body, k=[2, 2], b0=[0], b1=[1], s=2.0))


@pytest.mark.parametrize("op", ["Reshape", "Squeeze", "Unsqueeze"])
def test_row_A60_foreign_views(op: str) -> None:
    body = f"p, q = Split <axis = 1> (c, k) r = com.example.{op}(p, sh) y = Mul(r, s)"
    unchanged(PASS, conv("float[P,Q,R,S] y", body, k=[2, 2], sh=[1, 2, 2, 2], s=2.0))


def slices(*bounds: tuple[int, int]) -> ModelProto:
    """Slices of the channels, each of them scaled."""
    names = [f"p{number}" for number in range(len(bounds))]
    cuts = [
        f"{n} = Slice(c, b{a}, b{b}, one) y{n} = Mul({n}, s)"
        for n, (a, b) in zip(names, bounds, strict=True)
    ]
    outputs = ", ".join(out(f"y{n}", b - a) for n, (a, b) in zip(names, bounds, strict=True))
    places = {f"b{n}": [n] for pair in bounds for n in pair}
    return conv(outputs, " ".join(cuts), one=[1], s=draw(1), **places)


def test_row_A61_overlapping_slices() -> None:
    unchanged(PASS, slices((0, 2), (1, 4)), "Slices overlap")


def test_row_A61_slices_with_a_gap() -> None:
    folded(PASS, slices((0, 1), (2, 4)), ["Conv", "Slice", "Slice"])


def test_row_A62_another_branch_that_ends() -> None:
    body = "p, q = Split <axis = 1> (c, k) y = Mul(p, s) z = Relu(q)"
    given = conv(f"{out('y', 2)}, {out('z', 2)}", body, k=[2, 2], s=2.0)
    folded(PASS, given, ["Conv", "Split", "Relu"])


def test_row_A62_another_branch_that_is_split_elsewhere() -> None:
    """Here the peer leaves everything alone; the other branch is not touched, whatever reads it."""
    body = "p, q = Split <axis = 1> (c, k) y = Mul(p, s) z, a = Split <axis = 2> (q)"
    outputs = f"{out('y', 2)}, float[1,2,1,2] z, float[1,2,1,2] a"
    folded(PASS, conv(outputs, body, k=[2, 2], s=2.0), ["Conv", "Split", "Split"])


@pytest.mark.parametrize(
    ("cut", "reason"),
    [
        ("Slice(c, two0, two1, axes)", "a Slice cuts axis 2 as well"),
        ("Slice(c, b0, huge, axis2)", "a Slice takes no channels, or names none"),
        ("Slice(c, b1, b1, one)", "a Slice takes no channels"),
        ("Slice(c, b0, b3, one, two)", "a step other than 1"),
    ],
    ids=["axis", "other", "empty", "step"],
)
def test_guard_11_bad_slices(cut: str, reason: str) -> None:
    given = conv(
        "float[P,Q,R,S] y",
        f"v = {cut} y = Mul(v, s)",
        s=2.0,
        b0=[0],
        b1=[1],
        b3=[3],
        one=[1],
        two=[2],
        axis2=[2],
        axes=[1, 2],
        huge=[HUGE],
        two0=[0, 0],
        two1=[1, 1],
    )
    unchanged(PASS, given, reason)


def test_guard_10_the_size_of_the_channels_is_exceeded() -> None:
    body = "p, q = Split <axis = 1> (c, k) y = Mul(p, s)"
    with pytest.raises(InvalidModel):
        ready(conv("float[P,Q,R,S] y", body, k=[2, 3], s=2.0))


def test_guard_14_a_target_that_is_not_constant() -> None:
    text = """g (float[1,2,2,2] x, int64[3] sh) => (float[P,Q,R] y) {
        c = Conv(x, w) v = Reshape(c, sh) y = Mul(v, s) }"""
    unchanged(PASS, model(text, w=draw(4, 2, 1, 1), s=2.0), "Reshape is not certain")


def test_a_view_of_unknown_batch() -> None:
    text = """g (float[N,2,2,2] x) => (float[N,4,4] y) {
        c = Conv(x, w) v = Reshape(c, sh) y = Mul(v, s) }"""
    given = model(text, w=draw(4, 2, 1, 1), sh=[0, 4, 4], s=draw(4, 1))
    folded(PASS, given, ["Conv", "Reshape"])


def test_a_view_that_mixes_channels() -> None:
    text = """g (float[2,2,2,2] x) => (float[4,2,4] y) {
        c = Conv(x, w) v = Reshape(c, sh) y = Mul(v, s) }"""
    unchanged(PASS, model(text, w=draw(4, 2, 1, 1), sh=[4, 2, 4], s=2.0), "Reshape is not certain")


@SIZES
def test_work_is_linear(nodes: int) -> None:
    """Python calls a node do not grow with the number of nodes."""

    def convs(count: int) -> ModelProto:
        body = " ".join(
            f"c{n} = Conv(x, w) m{n} = Mul(c{n}, s) y{n} = Relu(m{n})" for n in range(count)
        )
        text = f"g (float[1,2,2,2] x) => (float[1,4,2,2] y0) {{ {body} }}"
        return model(text, w=draw(4, 2, 1, 1), s=2.0)

    check_linear(PASS, convs, nodes // 3)


def test_scales_of_different_branches_do_not_mix() -> None:
    body = "p, q = Split <axis = 1> (c, k) y = Mul(p, s) z = Mul(q, t)"
    given = conv(f"{out('y', 1)}, {out('z', 3)}", body, k=[1, 3], s=3.0, t=draw(3, 1, 1))
    module = folded(PASS, given, ["Conv", "Split"])
    weights = draw(4, 2, 1, 1) * np.concatenate([[3.0], draw(3)]).reshape(4, 1, 1, 1)
    conv_op = operators(module)[0]
    tensor = constant_tensor(conv_op.operands[1])
    assert tensor is not None
    np.testing.assert_allclose(tensor.array, weights, rtol=1e-6)


def test_an_axis_that_callers_give() -> None:
    """Inside a function whose parameter it is, a Split may cut any axis."""
    text = """<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
    g (float[1,2,2,2] x, float[2,2,1,1] w0) => (float[1,2,2,1] y) { y = local.f <axis = 3> (x) }
    <domain: "local", opset_import: ["" : 17]>
    f <axis> (x) => (y) {
        w = Constant <value = float[2,2,1,1] {1, 2, 3, 4}> () s = Constant <value_float = 2.0> ()
        c = Conv(x, w) p, q = Split <axis: int = @axis> (c) y = Mul(p, s) }"""
    unchanged(PASS, parser.parse_model(text), "given by the callers")
