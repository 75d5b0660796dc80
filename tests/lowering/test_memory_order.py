"""Plans keep images with their channels innermost; the bits are those of the generic run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from foldline.kernels.channels_last import is_channels_last
from foldline.lowering.instances import Instance
from foldline.lowering.program import Program
from tests.lowering.models import assert_same, every_kind, program

SHAPE = (2, 6, 9, 11)
WEIGHTS = "float[6, 6, 3, 3] w, float[6, 6, 1, 1] p, float[6, 1, 3, 3] d, float[6, 3, 1, 1] g"
INPUTS = f"float[2, 6, 9, 11] x, {WEIGHTS}, float[6] b, float[6, 1, 1] c, float[11] r"
CONV = "Conv<pads = [1, 1, 1, 1]>(x, w, b)"

READERS = {
    "Relu": "y = Relu(t)",
    "Add of a vector": "y = Add(t, r)",
    "Add of a channel": "u = Add(t, c) y = Mul(u, t)",
    "Add of another order": "u = Add(x, t) y = Sub(u, x)",
    "pointwise": "y = Conv(t, p, b)",
    "depthwise": "y = Conv<group = 6, strides = [2, 1]>(t, d)",
    "groups": "y = Conv<group = 2>(t, g)",
    "MaxPool": "u = MaxPool<kernel_shape = [3, 2], strides = [2, 1]>(t) y = Neg(u)",
    "AveragePool": "u = AveragePool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(t) y = Neg(u)",
    "BatchNormalization": "v = Abs(b) u = BatchNormalization(t, b, b, b, v) y = Relu(u)",
    "Concat": "u = Concat<axis = 1>(t, x, t) y = Relu(u)",
    "Concat of rows": "u = Concat<axis = 2>(x, t) y = Relu(u)",
    "squeeze and excite": "m = GlobalAveragePool(t) n = Sigmoid(m) y = Mul(t, n)",
    "views": "u = Transpose<perm = [0, 2, 3, 1]>(t) f = Flatten<axis = 2>(u) y = Relu(f)",
    "readers in C order": "u = Flatten(t) s = Softmax<axis = 1>(t) f = Flatten(s) y = Add(u, f)",
    "PRelu": "s = Abs(c) y = PRelu(t, s)",
    "Clip": "y = Clip(t)",
    "Gelu in parts": "u = Erf(t) v = Mul(u, t) y = Add(v, t)",
    "two outputs": "y = Relu(t) z = Add(y, t)",
}


def ready(readers: str, first: str = CONV) -> Program:
    shape = "float[2, 6, 9, 11] t" if "z" in readers.split() else ""
    outputs = "float y" + (f", {shape.replace(' t', ' z')}" if shape else "")
    return program(f"g ({INPUTS}) => ({outputs}) {{ t = {first} {readers} }}")


def inputs() -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    shapes = (SHAPE, (6, 6, 3, 3), (6, 6, 1, 1), (6, 1, 3, 3), (6, 3, 1, 1), (6,), (6, 1, 1), (11,))
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("readers", READERS.values(), ids=READERS)
def test_the_bits_are_those_of_the_generic_run(readers: str) -> None:
    generic, watched, *planned = every_kind(ready(readers), inputs())
    for results in (watched, *planned):
        assert_same(results, generic)
        assert all(result.flags.c_contiguous for result in results)
        assert [r.tobytes() for r in results] == [r.tobytes() for r in generic]


def test_images_stay_in_that_order_between_those_that_read_it() -> None:
    compiled = ready("u = Relu(t) v = Conv(u, p) m = MaxPool<kernel_shape = [2, 2]>(v) y = Neg(m)")
    every_kind(compiled, inputs())
    (pool,) = compiled.plans()
    assert [planned.channels_last for planned in pool.plan.calls] == [True] * 4 + [False] * 2
    copy, last = (planned.call for planned in pool.plan.calls[-2:])
    # A result that leaves is in C order.
    assert (copy.where, last.kernel.op_type) == ("a copy in C order", "Neg")
    arrays = [a for a in Instance(pool.plan)._frame if isinstance(a, np.ndarray)]
    assert sum(map(is_channels_last, arrays)) == 4


def test_one_copy_serves_all_readers_in_c_order() -> None:
    compiled = ready(
        "a = Flatten(t) e = Flatten<axis = 2>(t) h = Relu(a) i = Relu(e) "
        "j = Flatten(i) k = ReduceSum<keepdims = 0>(j) y = Add(h, k)"
    )
    every_kind(compiled, inputs())
    (pool,) = compiled.plans()
    assert [p.call.where for p in pool.plan.calls].count("a copy in C order") == 1
