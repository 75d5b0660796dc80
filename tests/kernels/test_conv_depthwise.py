import numpy as np
import pytest

import foldline.kernels.conv_depthwise
from foldline.kernels.channels_last import channels_last, pixels, zeros
from foldline.kernels.conv import conv_reference
from foldline.kernels.conv_depthwise import (
    _sharing,  # pyright: ignore[reportPrivateUsage]
    depthwise_step,
)
from foldline.kernels.parallel import use_threads
from foldline.kernels.registry import Operand, aligned_bytes
from foldline.kernels.windows import sliding_window

CASES = [
    ((6, 7), (3, 3), (1, 1, 1, 1), (1, 1), (1, 1)),
    ((6, 7), (1, 4), (0, 2, 0, 0), (1, 1), (1, 1)),
    ((8, 9), (2, 3), (0, 0, 3, 1), (3, 2), (1, 1)),
    ((3, 3), (5, 5), (2, 2, 2, 2), (1, 1), (1, 1)),
    ((2, 8), (5, 5), (2, 2, 2, 2), (1, 1), (1, 1)),
    ((3, 8), (5, 3), (2, 1, 2, 1), (1, 1), (2, 1)),
    ((2, 5), (3, 3), (4, 1, 5, 1), (2, 1), (1, 2)),
    ((9, 11), (3, 3), (1, 1, 1, 1), (1, 1), (2, 2)),
    ((9, 11), (5, 3), (2, 0, 1, 2), (1, 2), (2, 3)),
    ((6, 17), (2, 5), (0, 3, 0, 2), (1, 4), (1, 6)),
    ((7, 8), (1, 1), (0, 0, 0, 0), (1, 1), (2, 3)),
]


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize(("spatial", "kernel", "pads", "dilations", "strides"), CASES)
def test_equals_the_reference(monkeypatch, small, spatial, kernel, pads, dilations, strides):
    if small:
        monkeypatch.setattr(foldline.kernels.conv_depthwise, "BAND_BYTES", 1)
        monkeypatch.setattr(foldline.kernels.conv_depthwise, "RUN_ELEMENTS", 10)
    rng = np.random.default_rng(0)
    x, w, b = (rng.standard_normal(s) for s in ((2, 5, *spatial), (5, 1, *kernel), (5,)))
    keywords = {"pads": pads, "dilations": dilations, "strides": strides}
    window = sliding_window(spatial, kernel, **keywords)
    for known in (None, w):
        step = depthwise_step(Operand(x.shape, x.dtype), Operand(w.shape, w.dtype, known), window)
        scratch = aligned_bytes(step.scratch_bytes)
        scratch[:] = 255  # NaN
        for bias in (None, b):
            wanted = conv_reference(x, w, bias, group=5, **keywords)
            result = step.run(x, w, bias, scratch=scratch)
            np.testing.assert_allclose(result, wanted, rtol=1e-12, atol=1e-12)


def test_neither_memory_order_nor_threads_change_bits():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 40, 60, 50)).astype(np.float32)
    w = rng.standard_normal((40, 1, 3, 3)).astype(np.float32)
    window = sliding_window((60, 50), (3, 3), pads=(1, 1, 1, 1))
    step = depthwise_step(Operand(x.shape, x.dtype), Operand(w.shape, w.dtype), window)
    last = channels_last(np.ascontiguousarray(pixels(x)), x.shape)
    results = []
    for given, threads in ((x, 1), (last, 1), (last, 2), (x, 3)):
        for out in (None, zeros(x.shape, x.dtype, True)):
            with use_threads(threads):
                scratch = aligned_bytes(step.scratch_bytes)
                results.append(step.run(given, w, scratch=scratch, out=out).tobytes())
    assert len(set(results)) == 1


def test_special_values_reach_only_what_sees_them():
    x, w = np.ones((1, 3, 7, 7), np.float32), np.ones((3, 1, 3, 3), np.float32)
    x[0, 1, 3, 3] = np.inf
    window = sliding_window((7, 7), (3, 3))
    step = depthwise_step(Operand(x.shape, x.dtype), Operand(w.shape, w.dtype), window)
    result = step.run(x, w, scratch=aligned_bytes(step.scratch_bytes))
    assert np.isinf(result[0, 1, 1:4, 1:4]).all()
    assert np.isfinite(result).sum() == result.size - 9


@pytest.mark.parametrize("shape", [(0, 3, 5, 5), (2, 3, 2, 2)])
def test_nothing_to_compute(shape):
    w = np.ones((3, 1, 3, 3), np.float32)
    pads = (0, 0, 0, 0) if shape[2] > 2 else (1, 0, 0, 1)
    window = sliding_window(shape[2:], (3, 3), pads=pads)
    step = depthwise_step(Operand(shape, w.dtype), Operand(w.shape, w.dtype), window)
    x = np.ones(shape, np.float32)
    result = step.run(x, w, scratch=aligned_bytes(step.scratch_bytes))
    np.testing.assert_array_equal(result, conv_reference(x, w, group=3, pads=pads))


def test_what_is_only_padding_is_left_out():
    window = sliding_window((3, 9), (5, 5), pads=(2, 2, 2, 2))
    assert _sharing(window, (0, 3)) == [(0, 1, 2, 5), (1, 2, 1, 4), (2, 3, 0, 3)]
    assert _sharing(window, (1, 2)) == [(0, 1, 1, 4)]
    window = sliding_window((30, 9), (5, 5), pads=(2, 2, 2, 2))
    assert _sharing(window, (0, 30)) == [(0, 30, 0, 5)]
