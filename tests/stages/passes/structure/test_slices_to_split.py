"""slices-to-split: which slices tile an axis."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.onnx.op import result_names
from foldline.stages.context import PassContext
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.passes.structure import slices_to_split
from foldline.stages.passes.structure.slices_to_split import SlicesToSplit
from foldline.support.options import resolve
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
)

PASS = SlicesToSplit()
HUGE = 2**63 - 1


def slices(*bounds: tuple[list[int], list[int], list[int]], opset: int = 21) -> ModuleOp:
    """Slices of x by (starts, ends, axes), each of them read by a Neg."""
    texts: list[str] = []
    for number, (starts, ends, axes) in enumerate(bounds):
        if opset < 10:
            given = f"Slice <starts = {starts}, ends = {ends}, axes = {axes}> (x)"
        else:
            for name, values in (("b", starts), ("e", ends), ("a", axes)):
                texts.append(f"{name}{number} = Constant <value_ints = {values}> ()")
            given = f"Slice(x, b{number}, e{number}, a{number})"
        texts.append(f"s{number} = {given} y{number} = Neg(s{number})")
    outputs = ", ".join(f"float y{number}" for number in range(len(bounds)))
    text = f"g (float[N,9] x) => ({outputs}) {{ {' '.join(texts)} }}"
    module = from_onnx(text.replace("float y", "float[p,q] y"), opset=opset)
    InferShapes().run(PassContext(module))
    return module


def test_the_form_of_a_split() -> None:
    text = f"""%z = {constant([0])}
    %m = {constant([1])}
    %e = {constant([3])}
    %l = {constant([1])}
    %a = onnx.Slice(%x, %z, %m, %l) : tensor<2x1xf32>
    %b = onnx.Slice(%x, %m, %e, %l) : tensor<2x2xf32>
    return(%b, %a)"""
    after = f"""%s = {constant([1, 2])}
    %a, %b = onnx.Split(%x, %s) {{axis = 1 : i64}} : tensor<2x1xf32>, tensor<2x2xf32>
    return(%b, %a)"""
    check_pass(PASS, parse(text), parse(after))


TILES = [
    [([0], [4], [1]), ([4], [9], [1])],
    [([4], [HUGE], [1]), ([0], [4], [-1])],
    [([0], [-6], [1]), ([-6], [-3], [1]), ([-3], [100], [1])],
    [([-100], [5], [1]), ([5], [9], [1])],
]


@pytest.mark.parametrize("bounds", TILES)
@pytest.mark.parametrize("opset", [7, 12, 13, 18])
@pytest.mark.parametrize("rows", [2, 0])
def test_values_are_the_same_bits(
    bounds: list[tuple[list[int], list[int], list[int]]], opset: int, rows: int
) -> None:
    module = slices(*bounds, opset=opset)
    x = np.arange(9 * rows, dtype=np.float32).reshape(rows, 9)
    check_values(PASS, module, {"x": x})
    assert op_types(module) == ["Split", *["Neg"] * len(bounds)]


def test_axes_that_are_taken_whole_do_not_count() -> None:
    text = """g (float[4,6] x) => (float[4,3] y, float[4,3] z)
    <int64[2] o = {0, 0}, int64[2] m = {0, 3}, int64[2] e = {9, 3}, int64[2] f = {4, 6}> {
        a = Slice(x, o, e) b = Slice(x, m, f) y = Neg(a) z = Neg(b) }"""
    module = from_onnx(text)
    InferShapes().run(PassContext(module))
    check_values(PASS, module, {"x": np.arange(24, dtype=np.float32).reshape(4, 6)})
    assert op_types(module) == ["Split", "Neg", "Neg"]


@pytest.mark.parametrize(
    "bounds",
    [
        [([0], [4], [1]), ([5], [9], [1])],
        [([0], [5], [1]), ([4], [9], [1])],
        [([0], [4], [1]), ([4], [8], [1])],
        [([0], [4], [1]), ([0], [4], [1]), ([4], [9], [1])],
        [([0], [4], [1]), ([4], [4], [1]), ([4], [9], [1])],
    ],
)
def test_what_does_not_tile_stays(bounds: list[tuple[list[int], list[int], list[int]]]) -> None:
    check_unchanged(PASS, slices(*bounds), "do not tile axis 1 of size 9")


@pytest.mark.parametrize(
    "bounds",
    [
        [([0], [4], [0]), ([4], [HUGE], [0])],
        [([0], [4], [1])],
        [([0, 1], [4, 2], [1, 0]), ([4, 1], [9, 2], [1, 0])],
    ],
)
def test_unknown_sizes_and_several_axes_are_no_candidates(
    bounds: list[tuple[list[int], list[int], list[int]]],
) -> None:
    check_unchanged(PASS, slices(*bounds))


def test_steps_stay() -> None:
    module = from_onnx("""g (float[6] x) => (float[3] y, float[3] z)
    <int64[1] o = {0}, int64[1] m = {3}, int64[1] e = {6}, int64[1] a = {0}, int64[1] s = {2}> {
        y = Slice(x, o, m, a, s) z = Slice(x, m, e, a, s) }""")
    InferShapes().run(PassContext(module))
    check_unchanged(PASS, module)


def test_names_stay() -> None:
    module = from_onnx("""g (float[6] x) => (float[2] y, float[4] z)
    <int64[1] o = {0}, int64[1] m = {2}, int64[1] e = {6}> {
        w = Neg(x) z = Slice(w, m, e) y = Slice(w, o, m) }""")
    InferShapes().run(PassContext(module))
    check_values(PASS, module, {"x": np.arange(6, dtype=np.float32)})
    assert [result_names(op) for op in nodes(module) if op.op_type == "Split"] == [("y", "z")]


def test_it_stays_within_a_body() -> None:
    body = "s{0} = Slice(x, o, m) t{0} = Slice(x, m, e) {0} = Add(s{0}, t{0})"
    module = from_onnx(f"""g (bool c, float[4] x) => (float[2] y)
    <int64[1] o = {{0}}, int64[1] m = {{2}}, int64[1] e = {{4}}> {{
        y = If(c) <then_branch = a () => (float[2] u) {{ {body.format("u")} }},
                   else_branch = b () => (float[2] v) {{ {body.format("v")} }}> }}""")
    InferShapes().run(PassContext(module))
    check_values(PASS, module, {"c": np.array(False), "x": np.arange(4, dtype=np.float32)})
    assert sum(op.name == "onnx.Split" for op in module.walk()) == 2


def test_each_value_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    module = slices(*[([k], [k + 1], [1]) for k in range(9)])
    seen: list[object] = []
    visitor = slices_to_split._Visitor  # pyright: ignore[reportPrivateUsage]
    part = visitor._part  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(visitor, "_part", lambda self, op: seen.append(op) or part(self, op))
    run_pass(PASS, module)
    assert len(seen) == 9
    assert op_types(module) == ["Split", *["Neg"] * 9]


def test_slices_stay_where_static_split_to_slice_is_on() -> None:
    module = slices(([0], [4], [1]), ([4], [9], [1]))
    check_unchanged(SlicesToSplit(keep_slices=True), module)
    on = resolve({"passes.static-split-to-slice": True})
    assert PASS.configured(on).keep_slices
    assert not PASS.configured(resolve({})).keep_slices
