from itertools import product

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import foldline.kernels.conv_columns
from foldline.kernels.parallel import use_threads
from foldline.kernels.registry import compute, find_kernel

FAST = find_kernel("", "Conv", 11, ("fast",))
PLAIN = find_kernel("", "Conv", 11, ("reference",))


def normal(*shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def check(x, w, b, **attributes):
    fast, plain = (compute(entry, (x, w, b), **attributes) for entry in (FAST, PLAIN))
    assert fast.dtype == plain.dtype == x.dtype
    assert fast.shape == plain.shape
    rtol = 1e-10 if x.dtype == np.float64 else 2 * float(ml_dtypes.finfo(x.dtype).eps)
    np.testing.assert_allclose(
        fast.astype(float), plain.astype(float), rtol=rtol, atol=10 * rtol, err_msg=str(attributes)
    )


def test_one_value_by_hand():
    x = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)
    w = np.float32([[1, 2], [3, 4]]).reshape(1, 1, 2, 2)
    for entry in (FAST, PLAIN):
        result = compute(entry, (x, w, np.float32([10])), pads=(0, 0, 1, 1))
        assert result[0, 0].tolist() == [[37, 47, 27], [67, 77, 39], [30, 33, 18]]


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("group", [1, 2, 6])
def test_grid(rank, group):
    x = normal(2, 6, *(7, 6, 5)[:rank])
    for size, stride, dilation, pads in product((1, 2, 3), (1, 2), (1, 2), ((0, 0), (1, 2))):
        for maps in (group, 2 * group):
            check(
                x,
                normal(maps, 6 // group, *(size,) * rank, seed=1),
                normal(maps, seed=2),
                group=group,
                strides=(stride,) * rank,
                dilations=(dilation,) * rank,
                pads=(pads[0],) * rank + (pads[1],) * rank,
            )


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_anything(data):
    draw = data.draw
    rank, group = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    axes = {"min_size": rank, "max_size": rank}
    kernel = draw(st.lists(st.integers(1, 3), **axes))
    dilations = draw(st.lists(st.integers(1, 2), **axes))
    strides = draw(st.lists(st.integers(1, 3), **axes))
    pads = draw(st.lists(st.integers(0, 3), min_size=2 * rank, max_size=2 * rank))
    room = draw(st.lists(st.integers(0, 4), **axes))
    spatial = [(k - 1) * d + 1 + r for k, d, r in zip(kernel, dilations, room, strict=True)]
    channels, maps = group * draw(st.integers(1, 2)), group * draw(st.integers(1, 2))
    check(
        normal(draw(st.integers(0, 2)), channels, *spatial),
        normal(maps, channels // group, *kernel, seed=1),
        draw(st.sampled_from([None, normal(maps, seed=2)])),
        group=group,
        strides=tuple(strides),
        dilations=tuple(dilations),
        pads=tuple(pads),
        auto_pad=draw(st.sampled_from(["NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"])),
    )


@pytest.mark.parametrize("pads", [(0, 0, 0, 0), (1, 1, 1, 1)])
@pytest.mark.parametrize("group", [1, 3, 6])
def test_many_small_pieces(monkeypatch, pads, group):
    for name, size in (("COLUMN_BYTES", 900), ("GROUP_COLUMN_BYTES", 500), ("LEAST_COLUMNS", 4)):
        monkeypatch.setattr(foldline.kernels.conv_columns, name, size)
    x, w = normal(2, 6, 11, 7), normal(12, 6 // group, 3, 2, seed=1)
    for strides in ((1, 1), (2, 1), (3, 2)):
        check(x, w, normal(12), group=group, pads=pads, strides=strides)


@pytest.mark.parametrize("shape", [(1, 64, 56, 56), (2, 96, 20, 20)])
@pytest.mark.parametrize("kernel", [1, 3])
def test_threads_do_not_change_the_result(shape, kernel):
    x = normal(*shape, dtype=np.float32)
    for group in (1, shape[1]):
        w = normal(shape[1], shape[1] // group, kernel, kernel, dtype=np.float32, seed=1)
        results = []
        for threads in (1, 2, 3):
            with use_threads(threads):
                results.append(compute(FAST, (x, w), group=group, pads=(1, 1, 1, 1)).tobytes())
        assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_dtypes(dtype):
    for group, kernel in ((1, 1), (1, 3), (4, 3)):
        w = normal(4, 4 // group, kernel, kernel, dtype=dtype, seed=1)
        check(normal(2, 4, 5, 6, dtype=dtype), w, normal(4, dtype=dtype), group=group)


def test_halves_are_rounded_once():
    x = np.full((1, 4097, 1, 1), 1, np.float16)
    result = compute(FAST, (x, x, np.float16([-4096])))
    assert result.dtype == np.float16
    assert result.item() == 1


def test_nothing_leaks_from_padding_or_neighbours():
    x = np.full((1, 2, 5, 5), np.nan)
    x[0, 0, 2, 2] = np.inf
    x[0, 1] = 1
    w = np.ones((2, 1, 3, 3))
    result = compute(FAST, (x, w), group=2, pads=(1, 1, 1, 1))
    assert np.isnan(result[0, 0]).all()
    assert result[0, 1, 0].tolist() == [4, 6, 6, 6, 4]


def test_out_is_written():
    x, w, b = normal(1, 4, 6, 6), normal(4, 4, 3, 3), normal(4)
    for weights, group in ((w, 1), (w[:, :1], 4), (w[..., :1, :1], 1)):
        weights = np.ascontiguousarray(weights)
        wanted = compute(PLAIN, (x, weights, b), group=group)
        out = np.full(wanted.shape, np.nan)
        assert compute(FAST, (x, weights, b), group=group, out=out) is out
        np.testing.assert_allclose(out, wanted, rtol=1e-10, atol=1e-10)


def test_misfits_are_named():
    x, w = normal(1, 4, 5, 5), normal(4, 3, 3, 3)
    with pytest.raises(ValueError, match=r"X \(1, 4, 5, 5\) and W \(4, 3, 3, 3\) do not fit"):
        compute(FAST, (x, w))
    with pytest.raises(ValueError, match=r"kernel_shape=\(2, 2\)"):
        compute(FAST, (x, w), kernel_shape=(2, 2))


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3e38])
def test_one_value_beyond_numbers_stays_where_it_is_seen(value):
    """Winograd's tiles would spread it; 3e38 overflows in their sums, not in the direct ones."""
    x = normal(1, 128, 20, 20, dtype=np.float32)
    x[0, 5, 9, 9] = value
    w = normal(128, 128, 3, 3, dtype=np.float32, seed=1) * np.float32(1e-3)
    with np.errstate(all="ignore"):
        fast, plain = (compute(entry, (x, w), pads=(1, 1, 1, 1)) for entry in (FAST, PLAIN))
    np.testing.assert_array_equal(np.isfinite(fast), np.isfinite(plain))
    np.testing.assert_array_equal(np.isnan(fast), np.isnan(plain))
    seen = np.zeros((20, 20), bool)
    seen[8:11, 8:11] = True
    assert np.isfinite(fast[0, :, ~seen]).all()
