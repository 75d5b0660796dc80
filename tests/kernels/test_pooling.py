import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import foldline.kernels.window_passes
from foldline.kernels.parallel import use_threads
from foldline.kernels.pooling import lowest
from foldline.kernels.registry import compute, find_kernel

FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]


def both(op_type, x, **attributes):
    fast, plain = (
        compute(find_kernel("", op_type, 22, (grade,)), (x,), **attributes)
        for grade in ("fast", "reference")
    )
    assert fast.dtype == plain.dtype == x.dtype
    assert fast.shape == plain.shape
    return fast, plain


def normal(*shape, dtype=np.float64):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_grades_agree(data):
    draw = data.draw
    rank = draw(st.integers(1, 3))
    axes = {"min_size": rank, "max_size": rank}
    kernel = draw(st.lists(st.integers(1, 4), **axes))
    dilations = draw(st.lists(st.integers(1, 2), **axes))
    room = draw(st.lists(st.integers(0, 5), **axes))
    x = normal(
        draw(st.integers(0, 2)),
        draw(st.integers(1, 3)),
        *((k - 1) * d + 1 + r for k, d, r in zip(kernel, dilations, room, strict=True)),
    )
    attributes = {
        "kernel_shape": tuple(kernel),
        "dilations": tuple(dilations),
        "strides": tuple(draw(st.lists(st.integers(1, 3), **axes))),
        "pads": tuple(draw(st.sampled_from([0, k - 1])) for k in kernel * 2),
        "ceil_mode": draw(st.integers(0, 1)),
        "auto_pad": draw(st.sampled_from(["NOTSET", "NOTSET", "VALID", "SAME_LOWER"])),
    }
    np.testing.assert_array_equal(*both("MaxPool", x, **attributes))
    count = draw(st.integers(0, 1))
    np.testing.assert_allclose(
        *both("AveragePool", x, count_include_pad=count, **attributes), rtol=1e-12, atol=1e-12
    )
    p = draw(st.sampled_from([1, 2, 3]))
    np.testing.assert_allclose(*both("LpPool", x, p=p, **attributes), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("tile_bytes", [1, 2000])
def test_many_small_tiles(monkeypatch, tile_bytes):
    monkeypatch.setattr(foldline.kernels.window_passes, "TILE_BYTES", tile_bytes)
    x = normal(2, 5, 7, 6)
    for pads in ((0, 0, 0, 0), (1, 0, 1, 2)):
        attributes = {"kernel_shape": (3, 3), "strides": (2, 1), "pads": pads}
        with use_threads(2):
            np.testing.assert_array_equal(*both("MaxPool", x, **attributes))


@pytest.mark.parametrize("dtype", [*FLOATS, np.int8, np.uint8])
def test_max_of_every_dtype(dtype):
    x = (normal(1, 2, 6, 6) * 50).astype(dtype) if dtype != np.uint8 else np.uint8([[[[0, 255]]]])
    attributes = {"kernel_shape": (1, 2), "pads": (0, 1, 0, 1)}
    np.testing.assert_array_equal(*both("MaxPool", x, **attributes))


def test_max_with_special_values():
    x = np.float32([[[-np.inf, -np.inf, np.nan, 1, np.inf, -0.0]]])
    for result in both("MaxPool", x, kernel_shape=(2,), pads=(1, 0)):
        np.testing.assert_array_equal(
            result[0, 0], np.float32([-np.inf, -np.inf, np.nan, np.nan, np.inf, np.inf])
        )


@pytest.mark.parametrize(("count_include_pad", "expected"), [(0, [1.5, 3, 4.5]), (1, [1, 3, 3])])
def test_average_counts_what_it_is_told_to(count_include_pad, expected):
    x = np.float32([[[1, 2, 3, 4, 5]]])
    attributes = {"kernel_shape": (3,), "strides": (2,), "pads": (1, 1)}
    for result in both("AveragePool", x, count_include_pad=count_include_pad, **attributes):
        assert result[0, 0].tolist() == expected


def test_a_last_window_beyond_the_padding_is_not_counted():
    x = np.float32([[[1, 2, 3, 4, 5, 6]]])
    attributes = {"kernel_shape": (4,), "strides": (4,), "pads": (1, 1), "ceil_mode": 1}
    for result in both("AveragePool", x, count_include_pad=1, **attributes):
        assert result[0, 0].tolist() == [1.5, 3.75]


@pytest.mark.parametrize("dtype", FLOATS)
def test_average_of_every_dtype(dtype):
    x = np.full((1, 1, 64, 64), 100, dtype)  # the sum overflows a float16
    for kernel in ((64, 64), (64, 63)):
        for result in both("AveragePool", x, kernel_shape=kernel):
            assert (result == 100).all()


def test_lp_pool_of_version_1_needs_no_kernel_shape():
    x = np.float32([[[3, -4]]])
    for grade in ("fast", "reference"):
        result = compute(find_kernel("", "LpPool", 1, (grade,)), (x,), p=2.0)
        assert result.tolist() == [[[5]]]


def test_out_is_written():
    x = normal(1, 2, 6, 6)
    for op_type in ("MaxPool", "AveragePool", "LpPool"):
        wanted = compute(find_kernel("", op_type, 22, ("reference",)), (x,), kernel_shape=(2, 2))
        out = np.full(wanted.shape, np.nan)
        entry = find_kernel("", op_type, 22)
        assert compute(entry, (x,), kernel_shape=(2, 2), out=out) is out
        np.testing.assert_allclose(out, wanted, rtol=1e-12)


def test_lowest():
    assert lowest(np.dtype(np.int8)) == -128
    assert lowest(np.dtype(np.float32)) == -np.inf
