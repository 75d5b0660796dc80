"""dimension-adjust: parameters that become constant, and those that cannot."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.op import NodeOp
from foldline.stages.context import PassContext
from foldline.stages.passes.shapes.dimension_adjust import DimensionAdjust
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from tests.stages.check import from_onnx, nodes, op_types, run_pass, values


def adjusted(text: str, **keywords: int) -> tuple[ModuleOp, PassContext]:
    module = from_onnx(text, **keywords)
    InferShapes().run(PassContext(module))
    return module, run_pass(DimensionAdjust(), module)


def parameter(module: ModuleOp, op_type: str, index: int) -> list[int] | None:
    """The constant that a node reads as this input."""
    op = next(op for op in nodes(module) if op.op_type == op_type)
    tensor = constant_tensor(op.operands[index])
    return None if tensor is None else tensor.array.tolist()


def declined(context: PassContext) -> list[str]:
    return [r.message for r in context.remarks if r.kind == "declined"]


RESHAPE = """g (float[N,S,4,16] x) => (y) {
    s = Shape<end=2>(x) \n k = Constant<value_ints=[64]>() \n t = Concat<axis=0>(s, k)
    y = Reshape(x, t) }"""


def test_reshape() -> None:
    module, _ = adjusted(RESHAPE)
    assert op_types(module) == ["Reshape"]
    assert parameter(module, "Reshape", 1) == [0, 0, 64]


@pytest.mark.parametrize("shape", [(2, 3, 4, 16), (0, 3, 4, 16), (2, 0, 4, 16)], ids=str)
def test_reshape_gives_the_same(shape: tuple[int, ...]) -> None:
    feed = {"x": np.arange(np.prod(shape), dtype=np.float32).reshape(shape)}
    module, _ = adjusted(RESHAPE)
    (old,), (new,) = values(from_onnx(RESHAPE), feed), values(module, feed)
    assert old.shape == new.shape
    np.testing.assert_array_equal(old, new)


def test_reshape_that_says_zeros_are_sizes() -> None:
    module, _ = adjusted("""g (float[N,4,4] x) => (y) {
        s = Shape<end=1>(x) \n k = Constant<value_ints=[16]>() \n t = Concat<axis=0>(s, k)
        y = Reshape<allowzero=1>(x, t) }""")
    assert parameter(module, "Reshape", 1) == [0, 16]
    assert nodes(module)[-1].attribute_values()["allowzero"] == 0


def test_reshape_to_two_unknown_sizes_is_left() -> None:
    module, context = adjusted("""g (float[N,S,4] x) => (y) {
        s = Shape<start=1,end=2>(x) \n r = Shape<end=1>(x) \n k = Constant<value_ints=[4]>()
        t = Concat<axis=0>(s, r, k) \n y = Reshape(x, t) }""")
    assert parameter(module, "Reshape", 1) is None
    assert declined(context) == ["no constant target says [S, N, 4]"]


def test_names_of_other_inputs_are_not_trusted() -> None:
    module, _ = adjusted("""g (float[N,S,4] x, float[N,3] m) => (y) {
        s = Shape<end=1>(m) \n k = Constant<value_ints=[-1,4]>() \n t = Concat<axis=0>(s, k)
        y = Reshape(x, t) }""")
    assert parameter(module, "Reshape", 1) is None


def test_old_operator_sets_without_integer_constants_are_left() -> None:
    module, context = adjusted(
        """g (float[N,4] x) => (y) { a = Transpose(x) \n s = Shape(a) \n y = Reshape(x, s) }""",
        opset=8,
    )
    assert parameter(module, "Reshape", 1) is None
    assert declined(context) == ["Constant of opset 8 holds no integers"]


def test_expand() -> None:
    module, _ = adjusted("""g (float[N,1,S] x) => (y) {
        a = Shape<end=1>(x) \n b = Shape<start=2>(x) \n k = Constant<value_ints=[4]>()
        t = Concat<axis=0>(a, k, b) \n y = Expand(x, t) }""")
    assert op_types(module) == ["Expand"]
    assert parameter(module, "Expand", 1) == [1, 4, 1]


def test_expand_to_the_shape_that_is_there() -> None:
    module, _ = adjusted("""g (float[N,S] x) => (y) {
        r = Relu(x) \n s = Shape(x) \n e = Expand(r, s) \n y = Neg(e) }""")
    assert op_types(module) == ["Relu", "Neg"]


def test_expand_to_unknown_sizes_is_left() -> None:
    module, context = adjusted("""g (float[N,S] x, float[1] z) => (y) {
        s = Shape(x) \n y = Expand(z, s) }""")
    assert op_types(module) == ["Shape", "Expand"]
    assert declined(context) == ["it widens to unknown sizes: [N, S]"]


def slice_text(start: str, end: str, more: str = "") -> str:
    return f"""g (float[N,S] x, float[N,W] w) => (y) {{ r = Relu(x)
        n = Shape<start=1,end=2>(x) \n one = Constant<value_ints=[1]>() \n {more}
        zero = Constant<value_ints=[0]>() \n c = Slice(r, {start}, {end}, one) \n y = Neg(c) }}"""


def test_slice_of_the_whole() -> None:
    module, _ = adjusted(slice_text("zero", "n"))
    assert op_types(module) == ["Relu", "Neg"]


def test_slice_to_the_end() -> None:
    module, _ = adjusted(slice_text("one", "n"))
    assert parameter(module, "Slice", 2) == [(1 << 63) - 1]
    assert "Shape" not in op_types(module)


def test_slice_counted_from_the_end_needs_enough_elements() -> None:
    module, context = adjusted(slice_text("zero", "m", "m = Sub(n, one)"))
    assert parameter(module, "Slice", 2) is None
    assert declined(context) == ["it cuts at unknown places"]


def test_slice_at_another_size_is_left() -> None:
    module, _ = adjusted(slice_text("zero", "m", "m = Shape<start=1>(w)"))
    assert parameter(module, "Slice", 2) is None


def test_tile_that_repeats_nothing() -> None:
    module, _ = adjusted("""g (float[N,S] x) => (y) { r = Relu(x)
        k = Constant<value_ints=[1,1]>() \n t = Tile(r, k) \n y = Neg(t) }""")
    assert op_types(module) == ["Relu", "Neg"]


def test_concat_of_nothing() -> None:
    module, context = adjusted("""g (float[N,0] x, float[N,S] z) => (y) {
        y = Concat<axis=1>(x, z, x) }""")
    assert len(nodes(module)[-1].operands) == 1
    applied = [r.message for r in context.remarks if r.kind == "applied"]
    assert applied == ["left out 2 inputs without elements"]


def test_an_output_that_cannot_be_renamed_is_left() -> None:
    module, context = adjusted("""g (float[N,S] x) => (y) {
        s = Shape(x) \n y = Expand(x, s) }""")
    assert "Expand" in op_types(module)
    assert any("names the output 'y'" in message for message in declined(context))


def test_in_bodies() -> None:
    module, _ = adjusted("""g (float[N,4,4] x, bool c) => (y) {
        y = If(c) <then_branch = a () => (p) { s = Shape<end=1>(x)
                       k = Constant<value_ints=[16]>() \n t = Concat<axis=0>(s, k)
                       p = Reshape(x, t) },
                   else_branch = b () => (r) { r = Flatten(x) }>
    }""")
    kinds = sorted(op.op_type for op in module.walk() if isinstance(op, NodeOp))
    assert kinds == ["Constant", "Flatten", "If", "Reshape"]
