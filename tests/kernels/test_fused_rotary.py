"""Kernels of the fused RotaryEmbedding against each other and against ONNX's operator."""

import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.parallel import use_threads
from foldline.kernels.registry import Operand, find_kernel, run_once
from foldline.kernels.rotary_embedding import rotary_embedding


def normal(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def reference(*arrays, **attributes):
    return find_kernel("foldline", "RotaryEmbedding", 1, ["reference"]).function(
        *arrays, **attributes
    )


def fast(*arrays, out=None, **attributes):
    entry = find_kernel("foldline", "RotaryEmbedding", 1, ["fast"])
    keywords = {} if out is None else {"out": out}
    made = entry.function(*(Operand(x.shape, x.dtype) for x in arrays), **attributes)
    return run_once(made, arrays, **keywords)


def same(found, wanted):
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    np.testing.assert_array_equal(found.view(np.uint8), wanted.view(np.uint8))


def test_a_quarter_turn():
    x, zero, one = np.array([[1, 2, 3, 4]], np.float32), np.zeros(4, "f"), np.ones(4, "f")
    for run in (reference, fast):
        np.testing.assert_array_equal(run(x, zero, one), [[-3, -4, 1, 2]])
        np.testing.assert_array_equal(run(x, zero, one, interleaved=1), [[-2, 1, -4, 3]])


@pytest.mark.parametrize("interleaved", [0, 1])
def test_it_is_the_operator_of_onnx_with_every_angle_twice(interleaved):
    x, angles = normal(2, 3, 5, 8), normal(2, 5, 4, seed=1)
    twice = np.repeat(angles, 2, -1) if interleaved else np.concatenate((angles, angles), -1)
    c, s = np.cos(twice)[:, None], np.sin(twice)[:, None]
    wanted = rotary_embedding(x, np.cos(angles), np.sin(angles), interleaved=interleaved)
    np.testing.assert_allclose(fast(x, c, s, interleaved=interleaved), wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize(
    "shape", [(2, 3, 5, 8), (1, 1, 1, 2), (6,), (3, 0, 4), (2, 5, 0), (4, 700, 64)]
)
def test_bits_are_those_of_the_parts(shape, dtype, interleaved):
    x = normal(*shape, dtype=dtype)
    for given in (shape, shape[-1:], (*(1,) * (len(shape) - 1), shape[-1])):
        c, s = normal(*given, seed=1, dtype=dtype), normal(*given, seed=2, dtype=dtype)
        same(fast(x, c, s, interleaved=interleaved), reference(x, c, s, interleaved=interleaved))


def test_cosines_that_enlarge_what_is_turned():
    x, c = normal(1, 3, 1, 8), normal(2, 1, 5, 8)
    same(fast(x, c, c), reference(x, c, c))
    assert fast(x, c, c).shape == (2, 3, 5, 8)


def test_signs_of_zeros():
    x = np.array([[0.0, -0.0, -0.0, 0.0]], np.float32)
    for c in (np.ones(4, "f"), -np.ones(4, "f"), np.zeros(4, "f"), -np.zeros(4, "f")):
        for s in (np.ones(4, "f"), -np.ones(4, "f"), np.zeros(4, "f")):
            same(fast(x, c, s), reference(x, c, s))


def test_out_and_threads():
    x, c, s = normal(4, 300, 64), normal(300, 64, seed=1), normal(300, 64, seed=2)
    out, wanted = np.empty_like(x), reference(x, c, s)
    with use_threads(3):
        assert fast(x, c, s, out=out) is out
    same(out, wanted)
