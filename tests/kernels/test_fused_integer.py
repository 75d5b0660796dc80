"""Products of integers that go on to floats, against the operators one by one: the same bits."""

import itertools
from typing import Any

import numpy as np
import pytest

from foldline.kernels.parallel import use_threads
from foldline.kernels.registry import GRADES, compute, find_kernel
from tests.kernels.integers import MODES, bits, codes, floats, parts, run


def matmul_parts(a, b, a_zero, b_zero, scale, bias, mode, bias_first=0):
    with np.errstate(all="ignore"):
        total = run("MatMulInteger", [a, b, a_zero, b_zero], mode, domain="")
        return parts(total, scale, bias, mode, bias_first)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("a_type", "b_type"), list(itertools.product((np.int8, np.uint8), repeat=2))
)
@pytest.mark.parametrize("constant", [(), (1, 3), (1, 2, 3, 4, 5)])
def test_row_3_2_types_and_zero_points(mode: str, a_type: Any, b_type: Any, constant: Any):
    a, b = codes((2, 5, 33), a_type), codes((33, 7), b_type, 1)
    scales = (np.float32(0.01).reshape(()), floats(7), floats(1, 7))
    biases = (None, floats(7), floats(1), floats(1, 1, 7))
    zeros = ((None, None), (a.flat[0].reshape(()), b.flat[0].reshape(())), (None, codes(7, b_type)))
    for scale, bias, (a_zero, b_zero) in itertools.product(scales, biases, zeros):
        given = [a, b, a_zero, b_zero, scale, bias]
        found = run("MatMulIntegerToFloat", given, mode, constant)
        bits(found, matmul_parts(*given, mode))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bias_first", [0, 1])
def test_row_3_2_sums_beyond_2_to_the_24_round_once(mode: str, bias_first: int):
    a, b = np.full((3, 2051), 255, np.uint8), np.full((2051, 5), 127, np.int8)
    b[0, 1:] = (1, 2, 3, 126)
    scale, bias = floats(5), floats(5, seed=9)
    total = a.astype(np.int64) @ b.astype(np.int64)
    assert (total > 1 << 24).all()
    assert (total.astype(np.float32) != total).any()
    given = [a, b, None, None, scale, bias]
    found = run("MatMulIntegerToFloat", given, mode, (1,), bias_first=bias_first)
    bits(found, matmul_parts(*given, mode, bias_first))
    rounded = total.astype(np.float32) * scale
    bits(found, rounded + bias)


def test_row_3_2_int32_wraps_around_as_before():
    k = 70000
    a, b = np.full((1, k), 255, np.uint8), np.full((k, 2), 255, np.uint8)
    scale = np.ones((), np.float32)
    given = [a, b, None, None, scale, None]
    found = run("MatMulIntegerToFloat", given)
    assert (found == np.float32(k * 255 * 255 - (1 << 32))).all()
    bits(found, matmul_parts(*given, "fast"))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bias_first", [0, 1])
def test_row_3_2_special_scales_and_biases(mode: str, bias_first: int):
    a, b = codes((4, 6), np.uint8), codes((6, 8), np.int8)
    a[0] = 0
    payload = np.array([0x7FC00123], np.uint32).view(np.float32)[0]
    scale = np.array([np.nan, np.inf, -np.inf, -0.0, 0, -1, payload, 1e-45], np.float32)
    for bias in (None, np.full(8, -0.0, np.float32), np.array([np.nan] * 8, np.float32)):
        given = [a, b, None, None, scale, bias]
        found = run("MatMulIntegerToFloat", given, mode, bias_first=bias_first)
        wanted = matmul_parts(*given, mode, bias_first)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
        keep = ~np.isnan(wanted) if mode == "fast" else slice(None)
        bits(found[keep], wanted[keep])


def test_a_sum_of_zero_is_plus_zero_before_a_negative_scale():
    a, b = np.zeros((3, 40), np.uint8), np.full((40, 5), -3, np.int8)
    scale = np.full((), -2, np.float32)
    given = [a, b, None, None, scale, None]
    found = run("MatMulIntegerToFloat", given, constant=(1,))
    assert np.signbit(found).all()
    bits(found, matmul_parts(*given, "fast"))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("m", "k", "n"), [(0, 4, 3), (2, 0, 3), (2, 4, 0), (1, 1, 1), (1, 9, 1)])
def test_row_3_2_empty_and_single(mode: str, m: int, k: int, n: int):
    scale, bias = np.full((), 2, np.float32), np.full(1, -0.0, np.float32)
    given = [codes((m, k), np.uint8), codes((k, n), np.int8), None, None, scale, bias]
    bits(run("MatMulIntegerToFloat", given, mode), matmul_parts(*given, mode))


def test_the_result_is_where_it_is_told_for_any_number_of_threads():
    a, b = codes((300, 400), np.uint8), codes((400, 600), np.int8)
    scale, bias = floats(600), floats(600, seed=8)
    given = [a, b, a[0, 0].reshape(()), b[0, 0].reshape(()), scale, bias]
    wanted = matmul_parts(*given, "fast")
    for threads in (1, 2, 3):
        out = np.empty((300, 600), np.float32)
        with use_threads(threads):
            found = run("MatMulIntegerToFloat", given, constant=(1, 3), out=out)
        assert np.shares_memory(found, out)
        bits(found, wanted)


X = {
    "normal": floats(3, 40),
    "positive": np.abs(floats(3, 40)) + 1,
    "negative": -np.abs(floats(3, 40)) - 1,
    "zeros": np.zeros((3, 40), np.float32),
    "large": floats(3, 40) * np.float32(1e38),
    "tiny": floats(3, 40) * np.float32(1e-44),
    "infinite": np.where(floats(3, 40) > 1, np.float32(np.inf), floats(3, 40)),
    "halves": (np.arange(120, dtype=np.float32).reshape(3, 40) * 2.125) - 10,
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", X)
def test_a_product_that_quantises_its_input(mode: str, kind: str):
    x, b = X[kind], codes((40, 6), np.int8)
    scale, bias, zero = floats(6), floats(6, seed=4), codes(6, np.int8, 5)
    with np.errstate(all="ignore"):
        entry = find_kernel("", "DynamicQuantizeLinear", 11, GRADES[mode])
        a, a_scale, a_zero = compute(entry, [x])
        product = compute(find_kernel("", "Mul", 14, GRADES[mode]), [a_scale, scale])
    wanted = matmul_parts(a, b, a_zero, zero, product, bias, mode)
    for constant in ((), (1, 2, 3)):
        bits(run("DynamicQuantizeMatMul", [x, b, zero, scale, bias], mode, constant), wanted)
