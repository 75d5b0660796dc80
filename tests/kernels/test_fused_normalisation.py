"""The fused normalisations against the operators that they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from foldline.kernels.registry import Operand, compute, find_kernel
from tests.kernels.expansion import of_expansion

EPSILON = float(np.float32(1e-3))
RNG = np.random.default_rng(3)
CODES = {np.float32: 1, np.float64: 11, np.float16: 10}


def kernels(op_type: str) -> list[Any]:
    found = [find_kernel("foldline", op_type, 1, (grade,)) for grade in ("reference", "fast")]
    return [kernel for kernel in found if kernel is not None]


@pytest.mark.parametrize("dtype", CODES)
@pytest.mark.parametrize("axis", [-1, -2, 1])
@pytest.mark.parametrize("op_type", ["LayerNormalization", "RMSNormalization"])
def test_rows_against_the_expansion(op_type: str, axis: int, dtype: Any):
    x = RNG.normal(size=(2, 3, 5)).astype(dtype)
    shape = x.shape[axis % 3 :]
    given = [x, *(RNG.normal(size=shape).astype(dtype) for _ in range(1 + (op_type[0] == "L")))]
    attributes = {"axis": axis, "epsilon": EPSILON, "stash_type": CODES[dtype]}
    wanted = of_expansion(op_type, given, attributes).astype(np.float64)
    assert len(kernels(op_type)) == 2
    for kernel in kernels(op_type):
        found = compute(kernel, given, **attributes)
        assert found.dtype == x.dtype
        error = np.abs(found.astype(np.float64) - wanted)
        assert error.max() <= 16 * float(np.finfo(dtype).eps) * np.abs(wanted).max()


@pytest.mark.parametrize("op_type", ["LayerNormalization", "RMSNormalization"])
def test_half_rows_are_computed_in_float32(op_type: str):
    x = (RNG.normal(size=(4, 64)) * 100).astype(np.float16)
    scale = RNG.normal(size=64).astype(np.float16)
    for stash in (1, 10):
        given, attributes = [x, scale], {"epsilon": 1e-5, "stash_type": stash}
        wide = [x.astype(np.float32), scale.astype(np.float32)]
        for kernel in kernels(op_type):
            wanted = compute(kernel, wide, epsilon=1e-5).astype(np.float16)
            np.testing.assert_array_equal(compute(kernel, given, **attributes), wanted)


def test_layer_normalization_without_a_bias():
    x, scale = RNG.normal(size=(3, 8)).astype("f"), RNG.normal(size=8).astype("f")
    wanted = of_expansion("LayerNormalization", [x, scale], {})
    for kernel in kernels("LayerNormalization"):
        np.testing.assert_allclose(compute(kernel, [x, scale]), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("shape", [(2, 6, 4, 5), (1, 6, 3), (0, 6, 3)])
def test_groups_against_the_expansion(shape: tuple[int, ...], dtype: npt.DTypeLike):
    x = RNG.normal(size=shape).astype(dtype)
    affine = (6, *(1,) * (len(shape) - 2))
    given = [x, RNG.normal(size=affine).astype(dtype), RNG.normal(size=affine).astype(dtype)]
    attributes = {"num_groups": 3, "epsilon": EPSILON}
    (kernel,) = kernels("GroupNormalization")
    found = compute(kernel, given, **attributes)
    wanted = of_expansion("GroupNormalization", given, attributes)
    assert found.dtype == wanted.dtype == x.dtype
    steps = 32 * float(np.finfo(x.dtype).eps)
    np.testing.assert_allclose(found, wanted, rtol=steps, atol=steps)


def test_the_shape_input_changes_nothing():
    x = RNG.normal(size=(2, 6, 4)).astype("f")
    ones = np.ones((6, 1), np.float32)
    (kernel,) = kernels("GroupNormalization")
    with_shape = compute(kernel, [x, ones, ones, np.array(x.shape)], num_groups=2)
    np.testing.assert_array_equal(with_shape, compute(kernel, [x, ones, ones], num_groups=2))


@pytest.mark.parametrize("dtype", CODES)
@pytest.mark.parametrize("axis", [-1, 1])
@pytest.mark.parametrize("opset", [13, 23])
@pytest.mark.parametrize("op_type", ["SkipLayerNormalization", "SkipRMSNormalization"])
def test_sums_against_the_expansion(op_type: str, opset: int, axis: int, dtype: Any):
    x, z = (RNG.normal(size=size).astype(dtype) for size in ((2, 3, 5), (3, 5)))
    scales = [
        RNG.normal(size=x.shape[axis % 3 :]).astype(dtype) for _ in range(1 + ("L" in op_type))
    ]
    attributes = {"axis": axis, "epsilon": EPSILON, "stash_type": CODES[dtype]}
    wanted = of_expansion(op_type, [x, z, *scales], attributes, opset).astype(np.float64)
    for grade in ("fast", "exact"):
        kernel = find_kernel("foldline", op_type, 1, (grade,))
        assert kernel is not None
        found, total = compute(kernel, [x, z, *scales], output_count=2, **attributes)
        alone = compute(kernel, [x, z, *scales], **attributes)
        np.testing.assert_array_equal(total, x + z)
        np.testing.assert_array_equal(alone, found)
        assert found.dtype == total.dtype == x.dtype
        error = np.abs(found.astype(np.float64) - wanted)
        assert error.max() <= 16 * float(np.finfo(dtype).eps) * np.abs(wanted).max()


def test_a_sum_is_made_where_the_result_goes():
    x, out = np.ones((2, 8), np.float32), np.empty((2, 8), np.float32)
    for op_type in ("SkipLayerNormalization", "SkipRMSNormalization"):
        kernel = find_kernel("foldline", op_type, 1)
        assert kernel is not None
        assert compute(kernel, [x, x, x[0]], out=out) is out
        y, total = compute(kernel, [x, x, x[0]], out=out, output_count=2)
        assert y is out
        assert (total == 2).all()


@pytest.mark.parametrize("scale", ["row", "number", "strided"])
@pytest.mark.parametrize("op_type", ["LayerNormalization", "SkipLayerNormalization"])
def test_bound_steps_give_the_same_bits(op_type: str, scale: str):
    is_skip = op_type.startswith("Skip")
    x, z, shift = (RNG.normal(size=s).astype(np.float32) for s in ((4, 3, 8), (4, 3, 8), (8,)))
    factor = RNG.normal(size=16).astype(np.float32)
    factor = {"row": factor[:8], "number": factor[:1], "strided": factor[::2]}[scale]
    arrays = [x, z, factor, shift] if is_skip else [x, factor, shift]
    entry = find_kernel("foldline", op_type, 1, ("fast",))
    assert entry is not None
    step = entry.function(*(Operand(a.shape, a.dtype) for a in arrays))
    out = np.empty_like(x)
    bound = step.bind(*arrays, out=out)
    for _ in range(2):
        bound()
        np.testing.assert_array_equal(out, step.run(*arrays))
        # What is bound are places, not what they held.
        for array in arrays:
            array += np.float32(0.25)


def test_a_step_whose_sum_is_needed_is_not_bound():
    entry = find_kernel("foldline", "SkipLayerNormalization", 1, ("fast",))
    assert entry is not None
    x = Operand((4, 8), np.dtype(np.float32))
    step = entry.function(x, x, Operand((8,), x.dtype), output_count=2)
    assert step.bind is None
