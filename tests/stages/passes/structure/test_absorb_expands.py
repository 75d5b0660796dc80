"""absorb-expands: readers that broadcast by themselves, and shapes that must be certain."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.stages.context import PassContext
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.passes.structure.absorb_expands import AbsorbExpands
from tests.stages.check import (
    Array,
    check_pass,
    check_unchanged,
    check_values,
    constant,
    from_onnx,
    op_types,
    parse,
    run_pass,
)
from tests.stages.passes.structure.own import check_own_values

PASS = AbsorbExpands()


def inferred(text: str) -> ModuleOp:
    module = from_onnx(text)
    InferShapes().run(PassContext(module))
    return module


def test_the_reader_reads_what_is_expanded() -> None:
    text = f"""%s = {constant([2, 3])}
    %e = onnx.Expand(%b, %s) : tensor<2x3xf32>
    %y = onnx.Sub(%x, %e) : tensor<2x3xf32>
    return(%y)"""
    after = "%y = onnx.Sub(%x, %b) : tensor<2x3xf32>\nreturn(%y)"
    inputs = "%x: tensor<2x3xf32>, %b: tensor<3xf32>"
    check_pass(PASS, parse(text, inputs), parse(after, inputs))


ABSORBED = [
    ("float[N,4] x, float[4] b", "s = Shape(x) e = Expand(b, s) y = Mul(x, e)"),
    ("float[N,4] x, float[1,4] b", "s = Shape(x) e = Expand(b, s) y = Add(e, x)"),
    ("float[N,4] x, float b", "s = Shape(x) e = Expand(b, s) c = Less(x, e) y = Where(c, x, x)"),
    (
        "float[N,4] x, float[1,4] b",
        "s = Shape(x) e = Expand(b, s) c = Less(x, x) y = Where(c, e, x)",
    ),
    ("float[N,4] x, float[1,4] b", "s = Shape(x) e = Expand(b, s) y = Max(x, e, x)"),
]


@pytest.mark.parametrize(("inputs", "text"), ABSORBED)
@pytest.mark.parametrize("rows", [3, 1, 0])
def test_values_are_the_same_bits(inputs: str, text: str, rows: int) -> None:
    module = inferred(f"g ({inputs}) => (float[p,q] y) {{ {text} }}")
    shape = (4,) if "[4] b" in inputs else (1, 4) if "[1,4]" in inputs else ()
    b = np.full(shape, -0.0, np.float32)
    check_values(PASS, module, {"x": np.full((rows, 4), 0.5, np.float32), "b": b})
    assert "Expand" not in op_types(module)


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        ("float[N,4] x, float[1,4] b, int64[2] s", "e = Expand(b, s) y = Add(x, e)"),
        (
            "float[1,4] x, float[1,4] b",
            "s = Constant <value_ints = [3, 4]> () e = Expand(b, s) y = Add(x, e)",
        ),
        (
            "float[N,4] x, float[M,4] b",
            "s = Shape(x) e = Expand(b, s) t = Shape(b) f = Expand(x, t) y = Add(f, e)",
        ),
    ],
)
def test_what_may_change_the_shape_stays(inputs: str, text: str) -> None:
    module = inferred(f"g ({inputs}) => (float[p,q] y) {{ {text} }}")
    if "f = Expand" in text:  # Either one of the two goes, not both.
        run_pass(PASS, module)
        assert op_types(module).count("Expand") <= 1
    else:
        check_unchanged(PASS, module, "not be certain to have the shape it has")


def test_two_expands_of_one_reader_do_not_both_go() -> None:
    module = inferred("""g (float[1,4] x, float[1,4] b) => (float[p,q] y) {
        s = Constant <value_ints = [3, 4]> () e = Expand(b, s) f = Expand(x, s) y = Add(e, f) }""")
    check_values(PASS, module, {"x": np.ones((1, 4), np.float32), "b": np.ones((1, 4), np.float32)})
    assert op_types(module) == ["Expand", "Add"]


def test_other_readers_keep_the_expand() -> None:
    module = inferred("""g (float[N,4] x, float[4] b) => (float[p,q] y, float[p,q] e) {
        s = Shape(x) e = Expand(b, s) y = Add(x, e) }""")
    check_values(PASS, module, {"x": np.ones((2, 4), np.float32), "b": np.ones(4, np.float32)})
    assert op_types(module) == ["Shape", "Expand", "Add"]


STACKS = [
    ((2, 3, 4, 5), (2, 1, 5, 6), (2, 3, 5, 6)),
    ((1, 7, 1, 300), (1, 1, 300, 33), (1, 7, 300, 33)),
    ((4, 50, 64), (1, 64, 70), (4, 64, 70)),
    ((40, 96, 96), (1, 96, 96), (40, 96, 96)),
]


def swapped(shape: tuple[int, ...]) -> list[int]:
    return [*shape[:-2], shape[-1], shape[-2]]


@pytest.mark.parametrize(("a", "b", "to"), STACKS)
@pytest.mark.parametrize("is_left", [False, True])
def test_stacks_of_matrices_multiply_alike(
    a: tuple[int, ...], b: tuple[int, ...], to: tuple[int, ...], is_left: bool
) -> None:
    shapes = [swapped(s) if is_left else list(s) for s in (a, b, to)]
    result = ",".join("pqrs"[: len(a)])
    module = inferred(f"""g (float{shapes[0]} a, float{shapes[1]} b) => (float[{result}] y) {{
        s = Constant <value_ints = {shapes[2]}> () e = Expand(b, s)
        y = MatMul{"(e, a)" if is_left else "(a, e)"} }}""")
    random = np.random.default_rng(0)
    feed: dict[str, Array] = {
        name: random.standard_normal(shape, np.float32)
        for name, shape in zip("ab", shapes, strict=False)
    }
    check_own_values(PASS, module, feed)
    assert op_types(module) == ["MatMul"]


@pytest.mark.parametrize("b", ["[5,6]", "[1,5,6]"])
def test_matrices_that_are_no_stack_stay(b: str) -> None:
    module = inferred(f"""g (float[2,3,4,5] a, float{b} b) => (float[p,q,r,t] y) {{
        s = Constant <value_ints = [2, 3, 5, 6]> () e = Expand(b, s) y = MatMul(a, e) }}""")
    check_unchanged(PASS, module, "the matrices would be others")


def test_matrices_that_are_expanded_themselves_stay() -> None:
    module = inferred("""g (float[2,4,5] a, float[1,1,6] b) => (float[p,q,r] y) {
        s = Constant <value_ints = [2, 5, 6]> () e = Expand(b, s) y = MatMul(a, e) }""")
    check_unchanged(PASS, module, "the matrices would be others")


def test_operators_that_do_not_broadcast_are_no_candidates() -> None:
    module = inferred("""g (float[N,4] x, float[4] b) => (float[p,q] y) {
        s = Shape(x) e = Expand(b, s) y = Concat <axis = 0> (x, e) }""")
    check_unchanged(PASS, module)
