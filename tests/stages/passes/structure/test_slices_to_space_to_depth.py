"""slices-to-space-to-depth: blocks, whole and in any order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations, product

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.onnx.op import result_names
from foldline.stages.context import PassContext
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.passes.structure.slices_to_space_to_depth import SlicesToSpaceToDepth
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

PASS = SlicesToSpaceToDepth()
HUGE = 2**63 - 1
PLAIN = [(0, 0), (0, 1), (1, 0), (1, 1)]
ONE = [(0, 0)] * 4


def focus(
    offsets: Sequence[tuple[int, int]],
    block: int = 2,
    shape: str = "N,3,4,6",
    *,
    chained: bool = False,
    element: str = "float",
    more: str = "",
    axis: int = 1,
    opset: int = 21,
) -> ModuleOp:
    """A Concat of every `block`-th row and column from these offsets on."""
    texts = [
        f"e1 = Constant <value_ints = [{HUGE}]> () e2 = Constant <value_ints = [{HUGE}, {HUGE}]> ()"
        f"b1 = Constant <value_ints = [{block}]> () b2 = Constant <value_ints = [{block}, {block}]>"
        "() rows = Constant <value_ints = [2]> () columns = Constant <value_ints = [-1]> ()"
        "both = Constant <value_ints = [3, 2]> ()"
    ]
    for number, (row, column) in enumerate(offsets):
        if chained:
            texts.append(f"""r{number} = Constant <value_ints = [{row}]> ()
            c{number} = Constant <value_ints = [{column}]> ()
            a{number} = Slice(x, r{number}, e1, rows, b1)
            s{number} = Slice(a{number}, c{number}, e1, columns, b1)""")
        else:
            texts.append(f"""o{number} = Constant <value_ints = [{column}, {row}]> ()
            s{number} = Slice(x, o{number}, e2, both, b2)""")
    parts = ", ".join(f"s{number}" for number in range(len(offsets)))
    text = f"""g ({element}[{shape}] x) => ({element}[p,q,r,s] y) {{
        {" ".join(texts)} {more} y = Concat <axis = {axis}> ({parts}) }}"""
    module = from_onnx(text, opset=opset)
    InferShapes().run(PassContext(module))
    return module


def image(*shape: int) -> dict[str, Array]:
    return {"x": np.arange(np.prod(shape), dtype=np.float32).reshape(shape)}


def test_the_form_of_it() -> None:
    slices = "\n".join(
        f"""%o{n} = {constant(offsets)}
        %s{n} = onnx.Slice(%x, %o{n}, %e, %a, %b) : tensor<1x1x1x2xf32>"""
        for n, offsets in enumerate(PLAIN)
    )
    text = f"""%e = {constant([2, 4])}
    %a = {constant([2, 3])}
    %b = {constant([2, 2])}
    {slices}
    %y = onnx.Concat(%s0, %s1, %s2, %s3) {{axis = 1 : i64}} : tensor<1x4x1x2xf32>
    return(%y)"""
    after = """%y = onnx.SpaceToDepth(%x) {blocksize = 2 : i64} : tensor<1x4x1x2xf32>
    return(%y)"""
    inputs = "%x: tensor<1x1x2x4xf32>"
    check_pass(PASS, parse(text, inputs), parse(after, inputs))


@pytest.mark.parametrize("chained", [False, True])
@pytest.mark.parametrize("batch", [2, 0])
@pytest.mark.parametrize("offsets", [PLAIN, [(0, 0), (1, 0), (0, 1), (1, 1)]])
def test_values_are_the_same_bits(
    offsets: Sequence[tuple[int, int]], chained: bool, batch: int
) -> None:
    module = focus(offsets, chained=chained, opset=13)
    check_values(PASS, module, image(batch, 3, 4, 6))
    expected = ["SpaceToDepth"] if offsets == PLAIN else ["SpaceToDepth", "Gather"]
    assert op_types(module) == expected
    assert result_names(nodes(module)[-1]) == ("y",)


def test_every_order() -> None:
    for offsets in permutations(PLAIN):
        module = focus(offsets, shape="1,2,2,4")
        check_values(PASS, module, image(1, 2, 2, 4))
        assert op_types(module)[0] == "SpaceToDepth"


def test_blocks_of_three() -> None:
    offsets = list(product(range(3), range(3)))
    module = focus(offsets, 3, "1,2,6,3")
    check_values(PASS, module, image(1, 2, 6, 3))
    assert op_types(module) == ["SpaceToDepth"]
    module = focus(offsets[::-1], 3, "1,2,6,3", chained=True)
    check_values(PASS, module, image(1, 2, 6, 3))
    assert op_types(module) == ["SpaceToDepth", "Gather"]


def test_rows_that_are_cut_once_for_all() -> None:
    """As exporters write it: two slices of rows, of which each is cut by two into columns."""
    module = from_onnx("""g (float[1,3,4,4] x) => (float[1,12,2,2] y)
    <int64[1] o = {0}, int64[1] p = {1}, int64[1] h = {9}, int64[1] r = {2}, int64[1] c = {3}> {
        a = Slice(x, o, h, r, r) b = Slice(x, p, h, r, r)
        s = Slice(a, o, h, c, r) t = Slice(a, p, h, c, r)
        u = Slice(b, o, h, c, r) v = Slice(b, p, h, c, r)
        y = Concat <axis = -3> (s, u, t, v) }""")
    InferShapes().run(PassContext(module))
    check_values(PASS, module, image(1, 3, 4, 4))
    assert op_types(module) == ["SpaceToDepth", "Gather"]


def test_starts_from_the_end_and_axes_taken_whole() -> None:
    module = from_onnx("""g (float[N,1,2,2] x) => (float[N,4,1,1] y)
    <int64[3] k = {0, -2, -2}, int64[3] l = {0, -2, -1}, int64[3] m = {0, -1, -2},
     int64[3] n = {0, -1, -1}, int64[3] h = {9223372036854775807, 2, 2}, int64[3] a = {0, 2, 3},
     int64[3] b = {1, 2, 2}> {
        s = Slice(x, k, h, a, b) t = Slice(x, l, h, a, b) u = Slice(x, m, h, a, b)
        v = Slice(x, n, h, a, b) y = Concat <axis = 1> (s, t, u, v) }""")
    InferShapes().run(PassContext(module))
    check_values(PASS, module, image(3, 1, 2, 2))
    assert op_types(module) == ["SpaceToDepth"]


KEPT = [
    ({"shape": "N,3,H,6"}, "the size of axis 2 is not known"),
    ({"shape": "N,3,5,6", "offsets": ONE}, "the size of axis 2, 5, is no multiple of 2"),
    (
        {"shape": "N,3,4,5", "offsets": ONE, "chained": True},
        "the size of axis 3, 5, is no multiple of 2",
    ),
    ({"offsets": [(0, 0), (0, 1), (1, 0), (1, 0)]}, "not those of blocks of 2 by 2"),
    ({"offsets": [*PLAIN, (0, 0)]}, "not those of blocks of 2 by 2"),
    ({"offsets": [(2, 0), (2, 1)] * 2}, "does not go to the end of axis 2"),
    ({"shape": "N,3,6,6", "block": 3}, "not those of blocks of 3 by 3"),
    ({"axis": 0}, "it does not join channels"),
    ({"more": "n = Neg(s1)"}, "the slices have other readers"),
    ({"more": "n = Neg(a1)", "chained": True}, "the slices have other readers"),
    ({"element": "int64"}, "SpaceToDepth may not take tensor<"),
    ({"element": "bfloat16"}, "SpaceToDepth may not take tensor<"),
    ({"shape": "N,C,4,6", "offsets": PLAIN[::-1]}, "the number of channels to put in order"),
]


@pytest.mark.parametrize(("given", "reason"), KEPT)
def test_others_stay(given: dict[str, object], reason: str | None) -> None:
    keywords = {"offsets": PLAIN, **given}
    check_unchanged(PASS, focus(**keywords), reason)  # pyright: ignore[reportArgumentType]


def test_channels_that_stay_in_order_need_not_be_known() -> None:
    module = focus(PLAIN, shape="N,C,4,6")
    check_values(PASS, module, image(2, 5, 4, 6))
    assert op_types(module) == ["SpaceToDepth"]


def test_sizes_of_zero() -> None:
    module = focus(PLAIN, shape="N,3,0,6")
    check_values(PASS, module, image(2, 3, 0, 6))
    assert op_types(module) == ["SpaceToDepth"]


def test_parts_of_different_values_stay() -> None:
    text = """g (float[1,1,2,2] x, float[1,1,2,2] z) => (float[1,4,1,1] y)
    <int64[2] k = {0, 0}, int64[2] l = {0, 1}, int64[2] m = {1, 0}, int64[2] n = {1, 1},
     int64[2] h = {2, 2}, int64[2] a = {2, 3}> {
        s = Slice(x, k, h, a, h) t = Slice(x, l, h, a, h) u = Slice(z, m, h, a, h)
        v = Slice(x, n, h, a, h) y = Concat <axis = 1> (s, t, u, v) }"""
    module = from_onnx(text)
    InferShapes().run(PassContext(module))
    check_unchanged(PASS, module, "its parts are of different values")


@pytest.mark.parametrize(
    ("slices", "reason"),
    [
        ("s = Slice(x, o, h, r, r)", "a part is not cut along height and width"),
        ("a = Slice(x, o, h, r, r) s = Slice(a, o, h, r, r)", "a part is cut twice along one axis"),
        (
            "a = Slice(x, o, h, o, r) b = Slice(a, o, h, r, r) s = Slice(b, o, h, c, r)",
            "those of blocks",
        ),
        (
            "b = Slice(x, o, h, r, r) a = Slice(b, o, h, o, r) s = Slice(a, o, h, c, r)",
            "a part is cut along other axes too",
        ),
        ("a = Slice(x, o, h, r, r) s = Slice(a, o, r, c, r)", "does not go to the end of axis 3"),
        ("a = Slice(x, o, h, r, r) s = Slice(a, m, h, c, r)", "does not go to the end of axis 3"),
    ],
)
def test_parts_that_are_cut_in_another_way(slices: str, reason: str) -> None:
    module = from_onnx(f"""g (float[2,2,8,8] x) => (float[p,q,s,t] y)
    <int64[1] o = {{0}}, int64[1] m = {{-1}}, int64[1] h = {{9}}, int64[1] r = {{2}},
     int64[1] c = {{3}}> {{ {slices} y = Concat <axis = 1> (s, s, s, s) }}""")
    InferShapes().run(PassContext(module))
    check_unchanged(PASS, module, reason)


def test_it_stays_within_a_body() -> None:
    parts = "".join(f"{s} = Slice(x, {o}, h, a, h) " for s, o in zip("stuv", "klmn", strict=True))
    text = """g (bool i, float[1,1,2,2] x) => (float[1,4,1,1] y)
    <int64[2] k = {0, 0}, int64[2] l = {0, 1}, int64[2] m = {1, 0}, int64[2] n = {1, 1},
     int64[2] h = {2, 2}, int64[2] a = {2, 3}, int64[4] z = {1, 4, 1, 1}> { <out>
        y = If(i) <then_branch = b () => (float[1,4,1,1] p) {
                       <in> p = Concat <axis = 1> (s, t, u, v) },
                   else_branch = e () => (float[1,4,1,1] q) { q = Reshape(x, z) }> }"""
    module = from_onnx(text.replace("<in>", parts).replace("<out>", ""))
    InferShapes().run(PassContext(module))
    check_values(PASS, module, {"i": np.array(True), **image(1, 1, 2, 2)})
    assert sum(op.name == "onnx.SpaceToDepth" for op in module.walk()) == 1
    module = from_onnx(text.replace("<in>", "").replace("<out>", parts))
    InferShapes().run(PassContext(module))
    check_unchanged(PASS, module, "the slices stand outside of the body")


def test_attributes_that_are_parameters_of_a_function_stay() -> None:
    module = from_onnx("""g (float[1,1,2,2] x) => (float y) { y = local.f <p = 0> (x) }
    <opset_import: ["" : 21], domain: "local"> f <p> (x) => (y) {
        k = Constant <value_ints = [0, 0]> () h = Constant <value_ints = [2, 2]> ()
        a = Constant <value_ints = [2, 3]> () s = Slice(x, k, h, a, h)
        y = Concat <axis: int = @p> (s, s, s, s) }""")
    InferShapes().run(PassContext(module))
    check_unchanged(PASS, module)
    assert not run_pass(PASS, module).remarks
