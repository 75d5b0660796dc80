"""Convolutions of integers that go on to floats, against the operators one by one."""

import itertools
from typing import Any

import numpy as np
import pytest

from foldline.kernels.registry import compute, find_kernel
from tests.kernels.integers import DOMAIN, bits, codes, floats, parts, run


@pytest.mark.parametrize("grade", ["fast", "reference", "exact"])
@pytest.mark.parametrize("window", [{"pads": (1, 1, 1, 1)}, {"strides": (2, 2)}, {"group": 2}])
def test_convolutions_with_sums_before_and_after_the_cast(grade: str, window: Any):
    channels = 4 // window.get("group", 1)
    x, w = codes((2, 4, 7, 7), np.uint8), codes((6, channels, 3, 3), np.int8, 1)
    zeros = [x[0, 0, 0, 0].reshape(()), w[0, 0, 0, 0].reshape(())]
    mode = "exact" if grade == "exact" else "fast"
    total = run("ConvInteger", [x, w, *zeros], mode, domain="", **window)
    per_map = codes((1, 6, 1, 1), np.int32, 7) >> 8
    entry = find_kernel(DOMAIN, "ConvIntegerToFloat", 1, [grade])
    for scale, b, bias in itertools.product(
        (np.full((), -0.5, np.float32), floats(6, 1, 1)), (None, per_map), (None, floats(6, 1, 1))
    ):
        given = [x, w, *zeros, scale, b, bias]
        wanted = parts(total if b is None else total + b, scale, bias, mode)
        bits(compute(entry, given, **window), wanted)


def test_convolutions_whose_sums_are_beyond_2_to_the_24():
    x, w = np.full((1, 300, 5, 5), 255, np.uint8), np.full((2, 300, 3, 3), 127, np.int8)
    scale = np.full((), 0.1, np.float32)
    found = run("ConvIntegerToFloat", [x, w, None, None, scale, None, None])
    bits(found, parts(np.full((1, 2, 3, 3), 255 * 127 * 2700, np.int32), scale, None, "fast"))


@pytest.mark.parametrize("mode", ["fast", "exact"])
@pytest.mark.parametrize("constant", [(), (1, 2, 3)])
def test_inputs_that_are_quantised_by_their_range(mode: str, constant: tuple[int, ...]):
    x, w = floats(2, 4, 7, 7), codes((6, 4, 3, 3), np.int8, 1)
    zero, scale, bias = w[0, 0, 0, 0].reshape(()), floats(6, 1, 1), floats(6, 1, 1)
    quantised, x_scale, x_zero = run("DynamicQuantizeLinear", [x], mode, domain="")
    window = {"pads": (1, 1, 1, 1)}
    total = run("ConvInteger", [quantised, w, x_zero, zero], mode, domain="", **window)
    wanted = parts(total, np.asarray(x_scale * scale), bias, mode)
    given = [x, w, zero, scale, None, bias]
    bits(run("DynamicQuantizeConv", given, mode, constant, **window), wanted)
    entry = find_kernel(DOMAIN, "DynamicQuantizeConv", 1, ["reference"])
    if mode == "fast":
        bits(compute(entry, given, **window), wanted)
