import numpy as np
import pytest

import foldline.kernels.conv_winograd
from foldline.kernels.channels_last import zeros
from foldline.kernels.conv import conv_reference
from foldline.kernels.conv_channels_last import channels_last_step
from foldline.kernels.conv_finish import done
from foldline.kernels.conv_winograd import suits_winograd, winograd_step
from foldline.kernels.parallel import use_threads
from foldline.kernels.registry import Operand, aligned_bytes, compute, find_kernel
from foldline.kernels.windows import sliding_window


def normal(*shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def run(x, w, pads, *, is_constant=False):
    window = sliding_window(x.shape[2:], (3, 3), pads=pads)
    weights = Operand(w.shape, w.dtype, w if is_constant else None)
    inputs = Operand(x.shape, x.dtype)
    safe = channels_last_step(inputs, Operand(w.shape, w.dtype), window)
    step = winograd_step(inputs, weights, window, done, safe)
    scratch = aligned_bytes(step.scratch_bytes)
    scratch[:] = 255  # NaN
    return step.run(x, w, scratch=scratch)


@pytest.mark.parametrize("spatial", [(3, 3), (4, 4), (5, 4), (7, 10), (13, 3)])
@pytest.mark.parametrize("pads", [(0, 0, 0, 0), (1, 1, 1, 1), (2, 0, 1, 3)])
@pytest.mark.parametrize("is_tiled", [False, True])
def test_equals_the_reference(monkeypatch, spatial, pads, is_tiled):
    if is_tiled:
        monkeypatch.setattr(foldline.kernels.conv_winograd, "BAND_BYTES", 1)
        monkeypatch.setattr(foldline.kernels.conv_winograd, "LEAST_BAND_TILES", 1)
    for channels, maps in ((3, 5), (1, 6), (7, 2)):
        x, w = normal(2, channels, *spatial), normal(maps, channels, 3, 3, seed=1)
        wanted = conv_reference(x, w, pads=pads)
        for is_constant in (False, True):
            result = run(x, w, pads, is_constant=is_constant)
            np.testing.assert_allclose(result, wanted, rtol=1e-11, atol=1e-11)


def test_constant_weights_give_the_same_bits():
    x, w = normal(1, 8, 9, 9, dtype=np.float32), normal(8, 8, 3, 3, dtype=np.float32, seed=1)
    loose, constant = (run(x, w, (1, 1, 1, 1), is_constant=c) for c in (False, True))
    assert loose.tobytes() == constant.tobytes()


@pytest.mark.parametrize("shape", [(1, 128, 40, 28), (2, 128, 20, 28), (1, 128, 15, 15)])
def test_conv_uses_it_within_rounding_on_any_number_of_threads(shape):
    x = normal(*shape, dtype=np.float32)
    w, b = normal(160, 128, 3, 3, dtype=np.float32, seed=1), normal(160, dtype=np.float32)
    assert suits_winograd(128, 160, sliding_window(shape[2:], (3, 3), pads=(1, 1, 1, 1)))
    results = []
    for threads in (1, 2, 3):
        with use_threads(threads):
            entry = find_kernel("", "Conv", 11)
            results.append(compute(entry, (x, w, b), pads=(1, 1, 1, 1)))
    exact = conv_reference(x.astype(float), w.astype(float), b.astype(float), pads=(1, 1, 1, 1))
    # The sum of 1152 products of size 1 is about 34; direct float32 sums err by 5e-5 here.
    np.testing.assert_allclose(results[0], exact, rtol=0, atol=1e-4)
    assert results[0].tobytes() == results[1].tobytes() == results[2].tobytes()


def test_the_bias_is_added_last():
    x, w = normal(1, 128, 15, 15, dtype=np.float32), normal(160, 128, 3, 3, dtype=np.float32)
    b = normal(160, dtype=np.float32)
    entry = find_kernel("", "Conv", 11)
    plain, biased = (compute(entry, (x, w, bias), pads=(1, 1, 1, 1)) for bias in (None, b))
    assert biased.tobytes() == (plain + b.reshape(-1, 1, 1)).tobytes()


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, 1e30])
def test_special_values_reach_only_what_sees_them(special):
    x, w = normal(2, 32, 16, 16, dtype=np.float32), np.ones((32, 32, 3, 3), np.float32)
    x[1, 5, 3, 3] = special
    b = normal(32, dtype=np.float32)
    entry = find_kernel("", "Conv", 11)
    result = compute(entry, (x, w, b), pads=(1, 1, 1, 1))
    wanted = conv_reference(x, w, b, pads=(1, 1, 1, 1))
    np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-3)


def test_a_bound_step_takes_the_direct_way_only_while_a_result_is_not_finite():
    x, w = normal(1, 64, 16, 16, dtype=np.float32), normal(64, 64, 3, 3, dtype=np.float32)
    window = sliding_window(x.shape[2:], (3, 3), pads=(1, 1, 1, 1))
    inputs, weights = Operand(x.shape, x.dtype), Operand(w.shape, w.dtype, w)
    safe = channels_last_step(inputs, weights, window)
    step = winograd_step(inputs, weights, window, done, safe)
    assert step.bind is not None
    out = zeros(x.shape, x.dtype, True)
    compute = step.bind(x, w, out=out, scratch=aligned_bytes(step.scratch_bytes))
    for special in (0, np.inf, 1, np.nan, 2):
        x[0, 5, 3, 3] = special
        compute()
        wanted = step.run(x, w, scratch=aligned_bytes(step.scratch_bytes))
        assert out.tobytes() == wanted.tobytes()
        assert np.isfinite(out).all() == np.isfinite(special)
        assert np.isfinite(out[:, :, 5:]).all()


@pytest.mark.parametrize(
    ("kernel", "keywords", "channels"),
    [
        ((3, 3), {"strides": (2, 1)}, 128),
        ((3, 3), {"dilations": (1, 2)}, 128),
        ((3, 1), {}, 128),
        ((3, 3), {}, 31),
    ],
)
def test_what_it_leaves_alone(kernel, keywords, channels):
    assert suits_winograd(128, 128, sliding_window((20, 20), (3, 3)))
    assert not suits_winograd(channels, 128, sliding_window((20, 20), kernel, **keywords))
    assert not suits_winograd(128, 128, sliding_window((7, 7), (3, 3)))
    assert suits_winograd(32, 64, sliding_window((20, 20), (3, 3)))
    assert not suits_winograd(32, 63, sliding_window((20, 20), (3, 3)))
