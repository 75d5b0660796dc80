"""drop-boundary-permutes: layouts of inputs and outputs, each change with its remark."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.stages.context import PassContext
from foldline.stages.passes.fusion.drop_boundary_permutes import DropBoundaryPermutes
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.support.passes import PASSES
from foldline.transforms import drop_boundary_permutes
from tests.stages.check import check_pass, check_unchanged, from_onnx, run_pass, values

PASS = DropBoundaryPermutes()
P = "<perm = [2, 0, 1]>"
BOTH = f"""
g (float[2,3,4] x) => (float[4,2,3] y) {{ a = Transpose{P}(x) b = Relu(a) c = Neg(b)
    d = Transpose<perm = [1, 2, 0]>(c) e = Abs(d) y = Transpose{P}(e) }}
"""


def inferred(text: str) -> ModuleOp:
    module = from_onnx(text)
    InferShapes().run(PassContext(module))
    return module


def test_it_is_opt_in_and_does_not_preserve_the_interface() -> None:
    info = PASSES["drop-boundary-permutes"]
    assert info.opt_in
    assert not info.preserves_bits


def test_inputs_and_outputs_change_their_layout() -> None:
    expected = """
    g (float[4,2,3] x) => (float[2,3,4] y) { b = Relu(x) c = Neg(b)
        d = Transpose<perm = [1, 2, 0]>(c) y = Abs(d) }
    """
    context = check_pass(PASS, inferred(BOTH), inferred(expected))
    assert [r.message for r in context.remarks] == [
        "the input 'x' changes its layout, from [2, 3, 4] to [4, 2, 3]",
        "the output 'y' changes its layout, from [4, 2, 3] to [2, 3, 4]",
    ]


def test_values_are_the_permuted_ones() -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    x[0, 0, 0] = np.nan
    module = inferred(BOTH)
    (before,) = values(module.clone(), {"x": x})
    run_pass(PASS, module)
    (after,) = values(module, {"x": x.transpose(2, 0, 1).copy()})
    np.testing.assert_array_equal(after.transpose(2, 0, 1), before)


@pytest.mark.parametrize(("inputs", "outputs", "left"), [(True, False, 2), (False, True, 2)])
def test_each_side_alone(inputs: bool, outputs: bool, left: int) -> None:
    module = inferred(BOTH)
    run_pass(DropBoundaryPermutes(inputs, outputs), module)
    assert sum(op.name == "onnx.Transpose" for op in module.walk()) == left
    assert drop_boundary_permutes(inputs=inputs).name == "drop-boundary-permutes"


def test_several_readers_of_one_permutation() -> None:
    text = f"""g (float[2,3,4] x) => (float[4,2,3] y) {{
        a = Transpose{P}(x) b = Transpose{P}(x) y = Add(a, b) }}"""
    check_pass(
        PASS, inferred(text), inferred("g (float[4,2,3] x) => (float[4,2,3] y) { y = Add(x, x) }")
    )


def test_open_sizes_move_too() -> None:
    text = f"g (float[n,3,m] x) => (float[m,n,3] y) {{ a = Transpose{P}(x) y = Neg(a) }}"
    check_pass(
        PASS, inferred(text), inferred("g (float[m,n,3] x) => (float[m,n,3] y) { y = Neg(x) }")
    )


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (f"a = Transpose{P}(x) b = Relu(x) y = Neg(a) z = Neg(b)", "read by others"),
        (f"a = Transpose{P}(x) b = Transpose(x) y = Neg(a) z = Neg(b)", "not permuted in one"),
        (f"y = Transpose{P}(x) r = Relu(y) z = Neg(r)", "cannot be an output by itself"),
        (f"a = Relu(x) y = Transpose{P}(a) z = Neg(y)", "read inside as well"),
    ],
)
def test_what_is_left_alone(body: str, reason: str) -> None:
    text = f"g (float[2,3,4] x) => (float[o,p,q] y, float[r,s,t] z) {{ {body} }}"
    check_unchanged(PASS, inferred(text), reason)
