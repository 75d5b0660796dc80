import numpy as np
import pytest

import foldline.kernels.conv_channels_last
from foldline.kernels.channels_last import channels_last, pixels, zeros
from foldline.kernels.conv import conv_reference
from foldline.kernels.conv_channels_last import channels_last_step, pointwise_step
from foldline.kernels.parallel import use_threads
from foldline.kernels.registry import Operand, aligned_bytes
from foldline.kernels.windows import sliding_window

CASES = [
    ((9, 7), (3, 3), {"pads": (1, 1, 1, 1)}),
    ((9, 7), (3, 3), {"pads": (1, 1, 1, 1), "strides": (2, 2)}),
    ((19, 17), (3, 2), {"dilations": (2, 3), "strides": (1, 2), "pads": (0, 2, 3, 0)}),
    ((12, 15), (4, 5), {"dilations": (1, 2), "strides": (3, 3)}),
    ((9, 7), (1, 1), {"strides": (2, 3)}),
    ((9, 7), (1, 1), {"pads": (1, 0, 0, 2)}),
    ((3, 3), (3, 3), {}),
    ((2, 150), (1, 70), {"strides": (1, 3), "pads": (0, 1, 0, 2)}),
]


def normal(*shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def run(step, x, w, b=None, out=None):
    keywords = {}
    if step.scratch_bytes:
        keywords["scratch"] = aligned_bytes(step.scratch_bytes)
        keywords["scratch"][:] = 255  # NaN
    return step.run(x, w, b, out=out, **keywords)


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("channels", [1, 3, 8, 11])
@pytest.mark.parametrize(("spatial", "kernel", "keywords"), CASES)
def test_equals_the_reference(monkeypatch, small, channels, spatial, kernel, keywords):
    if small:
        monkeypatch.setattr(foldline.kernels.conv_channels_last, "PIECE_BYTES", 1)
    x, w, b = normal(2, channels, *spatial), normal(5, channels, *kernel, seed=1), normal(5)
    window = sliding_window(spatial, kernel, **keywords)
    for known in (None, w):
        weights = Operand(w.shape, w.dtype, known)
        step = channels_last_step(Operand(x.shape, x.dtype), weights, window)
        for bias in (None, b):
            wanted = conv_reference(x, w, bias, **keywords)
            np.testing.assert_allclose(run(step, x, w, bias), wanted, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("spatial", [(1, 1), (9, 7), (40, 31)])
def test_pointwise_equals_the_reference(spatial):
    x, w, b = normal(2, 6, *spatial), normal(5, 6, 1, 1, seed=1), normal(5)
    for known in (None, w):
        step = pointwise_step(Operand(x.shape, x.dtype), Operand(w.shape, w.dtype, known))
        for bias in (None, b):
            wanted = conv_reference(x, w, bias)
            np.testing.assert_allclose(run(step, x, w, bias), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("shape", "kernel"),
    [((1, 64, 40, 40), (3, 3)), ((1, 128, 40, 40), (1, 1)), ((1, 3, 90, 90), (5, 5))],
)
def test_neither_memory_order_nor_threads_change_bits(shape, kernel):
    x, w = normal(*shape, dtype=np.float32), normal(128, shape[1], *kernel, dtype=np.float32)
    b = normal(128, dtype=np.float32)
    operands = Operand(x.shape, x.dtype), Operand(w.shape, w.dtype, w)
    if kernel == (1, 1):
        step = pointwise_step(*operands)
    else:
        step = channels_last_step(*operands, sliding_window(shape[2:], kernel))
    last = channels_last(np.ascontiguousarray(pixels(x)), x.shape)
    first = run(step, x, w, b)
    results = {first.tobytes()}
    for given, threads in ((last, 1), (last, 2), (x, 3)):
        for out in (None, zeros(first.shape, x.dtype, True)):
            with use_threads(threads):
                results.add(run(step, given, w, b, out).tobytes())
    assert len(results) == 1


@pytest.mark.parametrize(("batch", "maps"), [(0, 4), (2, 0)])
def test_nothing_to_compute(batch, maps):
    x, w = normal(batch, 3, 5, 6), normal(maps, 3, 3, 3)
    step = channels_last_step(
        Operand(x.shape, x.dtype), Operand(w.shape, w.dtype), sliding_window((5, 6), (3, 3))
    )
    assert run(step, x, w).shape == (batch, maps, 3, 4)
