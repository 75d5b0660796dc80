import numpy as np
import pytest

import foldline.kernels.conv_side_by_side
from foldline.kernels.channels_last import channels_last, pixels
from foldline.kernels.conv import conv_reference
from foldline.kernels.conv_channels_last import channels_last_step
from foldline.kernels.conv_finish import done
from foldline.kernels.conv_side_by_side import positions_together, side_by_side_step
from foldline.kernels.parallel import use_threads
from foldline.kernels.registry import Operand, aligned_bytes, compute, find_kernel
from foldline.kernels.windows import sliding_window

CASES = [
    ((9, 16), (3, 5), {}),
    ((9, 17), (3, 5), {"pads": (1, 2, 1, 2)}),
    ((9, 23), (3, 5), {"pads": (1, 0, 2, 3), "strides": (2, 3)}),
    ((19, 31), (3, 4), {"dilations": (2, 3), "strides": (1, 2), "pads": (0, 2, 3, 0)}),
    ((1, 90), (1, 64), {"strides": (1, 2)}),
    ((4, 8), (1, 1), {"strides": (2, 1)}),
]


def normal(*shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def run(x, w, count, b=None, *, is_constant=False, out=None, **keywords):
    window = sliding_window(x.shape[2:], w.shape[2:], **keywords)
    weights = Operand(w.shape, w.dtype, w if is_constant else None)
    inputs = Operand(x.shape, x.dtype)
    safe = channels_last_step(inputs, Operand(w.shape, w.dtype), window)
    step = side_by_side_step(inputs, weights, window, count, done, safe)
    scratch = aligned_bytes(step.scratch_bytes)
    scratch[:] = 255  # NaN
    return step.run(x, w, b, scratch=scratch, out=out)


@pytest.mark.parametrize("count", [2, 3, 8])
@pytest.mark.parametrize("channels", [1, 5])
@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize(("spatial", "kernel", "keywords"), CASES)
def test_equals_the_reference(monkeypatch, count, channels, small, spatial, kernel, keywords):
    if small:
        monkeypatch.setattr(foldline.kernels.conv_side_by_side, "PIECE_BYTES", 1)
    x, w, b = normal(2, channels, *spatial), normal(3, channels, *kernel, seed=1), normal(3)
    for is_constant in (False, True):
        for bias in (None, b):
            wanted = conv_reference(x, w, bias, **keywords)
            result = run(x, w, count, bias, is_constant=is_constant, **keywords)
            np.testing.assert_allclose(result, wanted, rtol=1e-11, atol=1e-11)


def test_orders_of_memory_and_constant_weights_give_the_same_bits():
    x, w = normal(2, 8, 9, 24, dtype=np.float32), normal(2, 8, 3, 7, dtype=np.float32, seed=1)
    expected = run(x, w, 4)
    moved = channels_last(np.ascontiguousarray(pixels(x)).reshape(-1), x.shape)
    out = channels_last(np.full(expected.size, np.nan, np.float32), expected.shape)
    assert run(moved, w, 4, is_constant=True, out=out) is out
    assert np.array_equal(out, expected)


def test_equal_weights_under_other_windows_are_not_taken_for_each_other():
    x, w = normal(1, 2, 6, 40), normal(2, 2, 3, 5, seed=1)
    for keywords in ({}, {"strides": (1, 2)}, {"dilations": (1, 2)}):
        for count in (2, 4):
            result = run(x, w, count, is_constant=True, **keywords)
            wanted = conv_reference(x, w, **keywords)
            np.testing.assert_allclose(result, wanted, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, 1e30])
@pytest.mark.parametrize("where", ["x", "w"])
def test_special_values_reach_only_what_sees_them(special, where):
    x, w = normal(2, 8, 24, 32, dtype=np.float32), np.ones((2, 8, 3, 9), np.float32)
    (x if where == "x" else w)[1, 5, 2, 3] = special
    # What a window sees of the padding is a product with zero, here as in every way but one.
    pads = (1, 4, 1, 4) if where == "x" else (0, 0, 0, 0)
    assert positions_together(8, 2, sliding_window((24, 32), (3, 9), pads=pads)) > 1
    b = normal(2, dtype=np.float32)
    result = compute(find_kernel("", "Conv", 11), (x, w, b), pads=pads)
    with np.errstate(all="ignore"):
        wanted = conv_reference(x, w, b, pads=pads)
    assert np.isfinite(wanted).any()
    np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    ("channels", "maps", "spatial", "kernel", "keywords", "count"),
    [
        (8, 8, (172, 264), (3, 39), {}, 8),
        (1, 1, (1, 44098), (1, 256), {"strides": (1, 2)}, 32),
        (64, 1, (56, 56), (3, 3), {}, 16),
        (32, 3, (100, 100), (9, 9), {}, 4),
        (3, 32, (224, 224), (3, 3), {"strides": (2, 2)}, 1),
        (32, 9, (100, 100), (3, 3), {}, 1),
        (64, 1, (8, 8), (3, 3), {}, 1),
        (64, 1, (56, 1), (3, 1), {}, 1),
    ],
)
def test_how_many_are_taken_together(channels, maps, spatial, kernel, keywords, count):
    window = sliding_window(spatial, kernel, **keywords)
    assert positions_together(channels, maps, window) == count


@pytest.mark.parametrize("spatial", [(172, 132), (1, 3000)])
def test_conv_uses_it_with_the_same_bits_on_any_number_of_threads(spatial):
    x = normal(1, 8, *spatial, dtype=np.float32)
    w, b = normal(3, 8, 1, 39, dtype=np.float32, seed=1), normal(3, dtype=np.float32)
    assert positions_together(8, 3, sliding_window(spatial, (1, 39))) > 1
    results = []
    for threads in (1, 2, 3):
        with use_threads(threads):
            results.append(compute(find_kernel("", "Conv", 11), (x, w, b)))
    exact = conv_reference(x.astype(float), w.astype(float), b.astype(float))
    # A sum of 312 products of size 1 is about 18.
    np.testing.assert_allclose(results[0], exact, rtol=0, atol=1e-4)
    assert results[0].tobytes() == results[1].tobytes() == results[2].tobytes()
