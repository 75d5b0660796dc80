"""Casts of float16: NumPy's bits, for every half and around every tie."""

import numpy as np
import pytest

from foldline.kernels.channels_last import channels_last, is_channels_last
from foldline.kernels.half import LEAST_SIZE, TILE, onto_halves, round_to_half, widen_half
from foldline.kernels.parallel import use_threads
from foldline.kernels.precision import rounded, stepped, widened

ALL = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
FINITE = ALL[np.isfinite(ALL)]


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


def bits(array):
    return array.view({2: np.uint16, 4: np.uint32}[array.itemsize])


def same(found, wanted):
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    np.testing.assert_array_equal(bits(found), bits(wanted))


def singles():
    """What may go wrong: halves, ties, their neighbours, and any bits."""
    halves = np.sort(FINITE.astype(np.float64))
    middles = np.concatenate([halves, (halves[1:] + halves[:-1]) / 2, [65520, -65520]])
    middles = middles.astype(np.float32)
    up, down = (np.nextafter(middles, np.float32(end)) for end in (np.inf, -np.inf))
    random = np.random.default_rng(0)
    any_bits = random.integers(0, 1 << 32, 1 << 20, dtype=np.uint32).view(np.float32)
    tiny = (random.standard_normal(1 << 17) * 1e-5).astype(np.float32)
    return np.concatenate([middles, up, down, tiny, any_bits])


@pytest.mark.parametrize("halves", [ALL, FINITE, np.resize(FINITE, TILE * 2 + 77)])
def test_widened(halves):
    same(widen_half(halves), halves.astype(np.float32))


@pytest.mark.parametrize("is_finite", [False, True])
def test_rounded(is_finite):
    x = singles()
    if is_finite:
        x = x[np.abs(x) < 65520]
    assert x.size > LEAST_SIZE
    same(round_to_half(x), x.astype(np.float16))
    same(onto_halves(x), x.astype(np.float16).astype(np.float32))


@pytest.mark.parametrize("special", [np.nan, -np.nan, np.inf, -np.inf, 65520, -1e30])
def test_a_tile_with_what_is_no_finite_half(special):
    x = np.linspace(-3, 3, LEAST_SIZE + 5, dtype=np.float32)
    x[70] = special
    same(round_to_half(x), x.astype(np.float16))
    same(onto_halves(x), x.astype(np.float16).astype(np.float32))
    halves = x.astype(np.float16)
    same(widen_half(halves), halves.astype(np.float32))


@pytest.mark.parametrize("shape", [(), (0,), (3,), (LEAST_SIZE,), (130, 127)])
def test_shapes_and_destinations(shape):
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    halves = x.astype(np.float16)
    for function, source, wanted in (
        (widen_half, halves, halves.astype(np.float32)),
        (round_to_half, x, halves),
    ):
        same(np.asarray(function(source)), np.asarray(wanted))
        out = np.empty(shape, wanted.dtype)
        assert function(source, out) is out
        same(out, np.asarray(wanted))
    same(np.asarray(onto_halves(x)), np.asarray(halves, np.float32))


def test_strides():
    x = np.random.default_rng(2).standard_normal((200, 300)).astype(np.float32)
    halves = x.astype(np.float16)
    same(widen_half(halves.T), np.ascontiguousarray(halves.T).astype(np.float32))
    same(round_to_half(x[:, ::2]), np.ascontiguousarray(halves[:, ::2]))
    out = np.zeros((200, 600), np.float16)
    round_to_half(x, out[:, ::2])
    np.testing.assert_array_equal(out[:, ::2], halves)
    assert not out[:, 1::2].any()


def test_threads():
    x = np.random.default_rng(3).standard_normal(TILE * 3 + 1).astype(np.float32)
    with use_threads(3):
        same(round_to_half(x), x.astype(np.float16))
        same(widen_half(x.astype(np.float16)), x.astype(np.float16).astype(np.float32))


def test_in_place_and_channels_innermost():
    x = singles()[: 8 * 131 * 127].reshape(1, 8, 131, 127)
    wanted = x.astype(np.float16)
    last = channels_last(np.empty(x.size, np.float32), x.shape)
    last[...] = x
    assert is_channels_last(round_to_half(last))
    same(np.ascontiguousarray(round_to_half(last)), wanted)
    assert is_channels_last(widen_half(round_to_half(last)))
    odd = np.empty((*x.shape, 2), np.float32)[..., 0]
    for array in (x.copy(), last, odd):
        array[...] = x
        assert onto_halves(array, array) is array
        same(np.ascontiguousarray(array), wanted.astype(np.float32))


def test_precision_uses_them():
    x = singles()
    halves = x.astype(np.float16)
    same(rounded(x, halves.dtype), halves)
    same(widened(halves), halves.astype(np.float32))
    same(stepped(x, halves.dtype), halves.astype(np.float32))
    assert widened(halves, 11).dtype == np.float64
    np.testing.assert_array_equal(widened(halves, 11), halves.astype(np.float64))
