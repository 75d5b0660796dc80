import ml_dtypes
import numpy as np
import pytest

from foldline.support.errors import KernelFailed
from tests.kernels.contrib import assert_close, integers, normal, one_node, own_results

N, BLOCK = 6, 16


def inputs(size, bits=4, zeros="none", bias=False, dtype=np.float32):
    blocks = -(-size // BLOCK)
    packed = integers(N, blocks, BLOCK * bits // 8, seed=1)
    scales = np.abs(normal(N, blocks, seed=2)).astype(dtype)
    points = {
        "none": None,
        "packed": integers(N, -(-blocks * bits // 8), seed=3),
        "floats": normal(N, blocks, seed=3).astype(dtype),
    }[zeros]
    shift = normal(N, seed=4).astype(dtype) if bias else None
    return [normal(2, 3, size).astype(dtype), packed, scales.ravel(), points, None, shift]


def attributes(size, bits=4):
    return {"K": size, "N": N, "block_size": BLOCK, "bits": bits}


@pytest.mark.parametrize("size", [32, 40])
@pytest.mark.parametrize("zeros", ["none", "packed", "floats"])
@pytest.mark.parametrize("constant", [(), (1, 2, 3)])
def test_four_bits(size, zeros, constant):
    given = inputs(size, zeros=zeros, bias=True)
    constant = [i for i in constant if given[i] is not None]
    if zeros != "none":
        given[3] = given[3].reshape(-1) if zeros == "packed" else given[3]
    assert_close("MatMulNBits", given, attributes(size), constant=constant, tolerance=2e-4)


def test_eight_bits():
    assert_close("MatMulNBits", inputs(32, bits=8), attributes(32, 8), tolerance=2e-4)


def test_two_bits_from_low_to_high():
    codes = np.array([[[0b11100100, 0b00011011]]], np.uint8)
    a = np.eye(8, dtype=np.float32)
    given = [a, codes, np.ones(1, np.float32)]
    model = one_node("MatMulNBits", given, {"K": 8, "N": 1, "block_size": 8, "bits": 2}, (True,))
    (y,) = own_results(model, {f"x{i}": x for i, x in enumerate(given)})
    assert y.ravel().tolist() == [-2, -1, 0, 1, 1, 0, -1, -2]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_floats_are_rounded_once(dtype):
    results = []
    given = inputs(32, bias=True, dtype=dtype)
    wide = [x if x is None or x.dtype == np.uint8 else x.astype(np.float32) for x in given]
    for each in (given, wide):
        model = one_node("MatMulNBits", each, attributes(32), (True,))
        results += own_results(model, {f"x{i}": x for i, x in enumerate(each) if x is not None})
    assert results[0].dtype == dtype
    assert results[0].tolist() == results[1].astype(dtype).tolist()


@pytest.mark.parametrize(
    ("given", "changed", "message"),
    [
        ([*inputs(32)[:4], np.zeros(32, np.int32)], {}, "g_idx and weight_prepacked"),
        (inputs(32), {"bits": 3}, "codes of 3 bits"),
    ],
)
def test_what_is_refused(given, changed, message):
    model = one_node("MatMulNBits", given, {**attributes(32), **changed}, (True,))
    with pytest.raises(KernelFailed, match=message):
        own_results(model, {f"x{i}": x for i, x in enumerate(given) if x is not None})
