"""remove-double-permute: pairs that undo each other, pairs that merge."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.onnx.shape import TransposeOp
from foldline.stages.context import PassContext
from foldline.stages.passes.fusion.remove_double_permute import RemoveDoublePermute
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from tests.stages.check import (
    check_pass,
    check_unchanged,
    check_values,
    from_onnx,
    op_types,
    run_pass,
)
from tests.stages.rewrite.rules import FEED

PASS = RemoveDoublePermute()
PAIR = """
g (float[2,3] x) => (float[2,3] y) {
    a = Transpose<perm = [1, 0]>(x) b = Transpose<perm = [1, 0]>(a) y = Relu(b)
}
"""
MERGED = """
g (float[2,3,4] x) => (float[4,2,3] y) {
    a = Transpose<perm = [1, 2, 0]>(x) b = Transpose<perm = [1, 2, 0]>(a) y = Relu(b)
}
"""


def inferred(text: str) -> ModuleOp:
    module = from_onnx(text)
    InferShapes().run(PassContext(module))
    return module


def test_a_pair_that_moves_nothing_goes() -> None:
    check_pass(PASS, inferred(PAIR), inferred("g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }"))


def test_another_pair_becomes_one() -> None:
    module = inferred(MERGED)
    run_pass(PASS, module)
    assert op_types(module) == ["Transpose", "Relu"]
    (merged,) = [op for op in module.walk() if isinstance(op, TransposeOp)]
    assert merged.permutation() == (2, 0, 1)


def test_three_become_one_in_two_turns() -> None:
    module = inferred(
        """
    g (float[2,3] x) => (float[3,2] y) { a = Transpose(x) b = Transpose(a) y = Transpose(b) }
    """.replace("Transpose(", "Transpose<perm = [1, 0]>(")
    )
    check_pass(PASS, module, inferred(
        "g (float[2,3] x) => (float[3,2] y) { y = Transpose<perm = [1, 0]>(x) }"
    ))  # fmt: skip


def test_a_first_transpose_that_is_read_elsewhere_stays() -> None:
    module = inferred("""
    g (float[2,3] x) => (float[2,3] y, float[3,2] z) {
        a = Transpose<perm = [1, 0]>(x) b = Transpose<perm = [1, 0]>(a) y = Relu(b) z = Neg(a)
    }
    """)
    assert run_pass(PASS, module).rewriter.changes
    assert op_types(module) == ["Transpose", "Relu", "Neg"]


def test_it_declines_where_nothing_is_gained() -> None:
    text = MERGED.replace("=> (float[4,2,3] y)", "=> (float[4,2,3] y, float[3,4,2] z)")
    text = text.replace("y = Relu(b)", "y = Relu(b) z = Neg(a)")
    check_unchanged(PASS, inferred(text), "read elsewhere")


def test_it_declines_a_permutation_that_is_not_known() -> None:
    text = """
    g (float x) => (float y) { a = Transpose(x) b = Transpose(a) y = Relu(b) }
    """
    check_unchanged(PASS, inferred(text.replace("float x", "float[] x")), None)


def test_values_stay() -> None:
    check_values(PASS, inferred(PAIR), FEED)
