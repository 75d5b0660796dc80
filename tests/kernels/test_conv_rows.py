import numpy as np
import pytest

import foldline.kernels.conv_rows
from foldline.kernels.conv import conv, conv_reference
from foldline.kernels.conv_columns import Case
from foldline.kernels.conv_finish import done, finisher
from foldline.kernels.conv_rows import rows_step, suits_rows
from foldline.kernels.parallel import use_threads
from foldline.kernels.registry import Operand, aligned_bytes, run_once
from foldline.kernels.windows import sliding_window

CASES = [
    (4, 1, {}),
    (1, 3, {"pads": (1, 1)}),
    (4, 3, {"pads": (1, 1), "strides": (2,)}),
    (9, 4, {"pads": (0, 5)}),
    (9, 3, {"pads": (3, 0), "dilations": (3,), "strides": (2,)}),
    (40, 16, {"strides": (8,)}),
    (7, 2, {"strides": (5,)}),
    (1, 5, {"pads": (2, 2), "strides": (3,)}),
    (2, 5, {"pads": (8, 8), "dilations": (3,), "strides": (4,)}),
    (3, 3, {"pads": (1, 6), "dilations": (3,), "strides": (20,)}),
    (3, 2, {"pads": (7, 0), "strides": (9,)}),
]


def normal(*shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def case_of(x, w, **keywords):
    window = sliding_window(x.shape[2:], w.shape[2:], **keywords)
    return Case.of(Operand(x.shape, x.dtype), Operand(w.shape, w.dtype), 1, window)


def run(x, w, b=None, *, is_constant=False, out=None, is_bound=False, finish=done, **keywords):
    weights = Operand(w.shape, w.dtype, w if is_constant else None)
    step = rows_step(case_of(x, w, **keywords), weights, finish)
    scratch = aligned_bytes(step.scratch_bytes)
    scratch[:] = 255  # NaN
    if not is_bound:
        return step.run(x, w, b, scratch=scratch, out=out)
    compute = step.bind(x, w, b, scratch=scratch, out=out)
    scratch[:] = 255
    compute()
    return out


@pytest.mark.parametrize("channels", [1, 5])
@pytest.mark.parametrize("maps", [1, 3, 20])
@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize(("size", "taps", "keywords"), CASES)
def test_equals_the_reference(monkeypatch, channels, maps, small, size, taps, keywords):
    if small:
        monkeypatch.setattr(foldline.kernels.conv_rows, "PIECE_BYTES", 1)
    x, w, b = normal(7, channels, size), normal(maps, channels, taps, seed=1), normal(maps)
    for is_constant in (False, True):
        for bias in (None, b):
            wanted = conv_reference(x, w, bias, **keywords)
            result = run(x, w, bias, is_constant=is_constant, **keywords)
            np.testing.assert_allclose(result, wanted, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(("size", "taps", "keywords"), CASES)
def test_what_is_bound_or_lies_otherwise_gives_the_same_bits(size, taps, keywords):
    x, w = normal(6, 8, size, dtype=np.float32), normal(16, 8, taps, dtype=np.float32, seed=1)
    b = normal(16, dtype=np.float32)
    expected = run(x, w, b, **keywords)
    out = np.full_like(expected, np.nan)
    assert run(x, w, b, is_constant=True, is_bound=True, out=out, **keywords) is out
    assert out.tobytes() == expected.tobytes()
    last = np.ascontiguousarray(x.transpose(0, 2, 1)).transpose(0, 2, 1)
    part = np.concatenate((x, x), axis=1)[:, 8:]
    for strided in (last, part, x[::-1].copy()[::-1]):
        assert run(strided, w, b, is_constant=True, **keywords).tobytes() == expected.tobytes()


def test_weights_that_see_only_padding_are_left_out():
    x, w = normal(3, 2, 1), normal(4, 2, 3, seed=1)
    expected = run(x, w, pads=(1, 1))
    w[..., [0, 2]] = np.inf
    assert np.array_equal(run(x, w, pads=(1, 1), is_constant=True), expected)


def test_where_nothing_is_seen_the_bias_is_left():
    b = normal(4)
    result = run(normal(3, 2, 1), normal(4, 2, 1), b, pads=(1, 0), strides=(2,))
    assert np.array_equal(result, np.broadcast_to(b[:, None], (3, 4, 1)))


def test_what_follows_is_applied_to_each_element_once():
    x, w, b = normal(5, 3, 6), normal(4, 3, 3, seed=1), normal(4)
    finish = finisher("LeakyRelu", (0.5,), x.dtype)
    wanted = conv_reference(x, w, b)
    result = run(x, w, b, finish=finish)
    np.testing.assert_allclose(result, np.where(wanted < 0, wanted / 2, wanted), rtol=1e-11)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_one_value_beyond_numbers_stays_where_it_is_seen(value):
    x, w = normal(4, 2, 8, dtype=np.float32), normal(3, 2, 3, dtype=np.float32, seed=1)
    expected = run(x, w, pads=(1, 1))
    x[2, 1, 5] = value
    with np.errstate(invalid="ignore"):
        result = run(x, w, pads=(1, 1))
    assert not np.isfinite(result[2, :, 4:7]).any()
    result[2, :, 4:7] = expected[2, :, 4:7]
    assert result.tobytes() == expected.tobytes()


@pytest.mark.parametrize("shape", [(0, 3, 5), (4, 0, 5)])
def test_nothing_to_sum_or_to_compute(shape):
    w, b = normal(6, shape[1], 2), normal(6)
    assert np.array_equal(run(normal(*shape), w), np.zeros((shape[0], 6, 4)))
    wanted = np.broadcast_to(b[:, None], (shape[0], 6, 4))
    assert np.array_equal(run(normal(*shape), w, b), wanted)


def test_threads_do_not_change_a_bit():
    x, w = normal(64, 64, 20, dtype=np.float32), normal(128, 64, 3, dtype=np.float32, seed=1)
    expected = run(x, w, pads=(1, 1), is_constant=True)
    with use_threads(3):
        assert run(x, w, pads=(1, 1), is_constant=True).tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("x", "w", "together"),
    [
        ((16, 129, 4), (128, 129, 3), True),
        ((16, 128, 1), (1, 128, 1), True),
        ((1, 129, 6), (128, 129, 3), True),
        ((1, 129, 7), (128, 129, 3), False),  # one image of some length
        ((1, 129, 4), (128, 129, 1), False),  # one that needs no copy
        ((2, 512, 100), (512, 512, 1), False),  # what is copied costs more than the calls
        ((4, 3, 5, 5), (8, 3, 3, 3), False),  # two axes
    ],
)
def test_which_images_are_computed_together(x, w, together):
    inputs, weights = normal(*x, dtype=np.float32), normal(*w, dtype=np.float32, seed=1)
    assert suits_rows(case_of(inputs, weights)) == together
    made = conv(Operand(x, inputs.dtype), Operand(w, inputs.dtype, weights))
    wanted = conv_reference(inputs, weights)
    np.testing.assert_allclose(run_once(made, [inputs, weights]), wanted, rtol=1e-4, atol=1e-4)


def test_groups_are_not_computed_together():
    window = sliding_window((4,), (1,))
    assert not suits_rows(Case(8, 6, 6, 2, window, np.dtype(np.float32)))
    assert suits_rows(Case(8, 6, 6, 1, window, np.dtype(np.float32)))
