from itertools import product

import ml_dtypes
import numpy as np
import pytest

import foldline.kernels.col2im
from foldline.kernels.col2im import col2im
from foldline.kernels.registry import compute, find_kernel

FAST = find_kernel("", "ConvTranspose", 11, ("fast",))
PLAIN = find_kernel("", "ConvTranspose", 11, ("reference",))


def normal(*shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def check(x, w, b, **attributes):
    fast, plain = (compute(entry, (x, w, b), **attributes) for entry in (FAST, PLAIN))
    assert fast.dtype == plain.dtype == x.dtype
    rtol = 1e-10 if x.dtype == np.float64 else 2 * float(ml_dtypes.finfo(x.dtype).eps)
    np.testing.assert_allclose(fast.astype(float), plain.astype(float), rtol=rtol, atol=10 * rtol)
    return fast


def test_overlapping_columns_add_up():
    columns = np.arange(8, dtype=np.float32).reshape(1, 2, 4)
    result = col2im(columns, np.int64([5]), np.int64([2]))
    assert result[0, 0].tolist() == [0, 1 + 4, 2 + 5, 3 + 6, 7]


@pytest.mark.parametrize("dtype", [np.int8, np.float16, ml_dtypes.bfloat16, np.complex64])
def test_col2im_keeps_the_dtype(dtype):
    result = col2im(np.ones((1, 4, 4), dtype), np.int64([3, 3]), np.int64([2, 2]))
    assert result.dtype == dtype
    assert result[0, 0, 1, 1] == 4


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("group", [1, 2])
def test_grid(rank, group):
    x = normal(2, 4, *(4, 3, 2)[:rank])
    for size, stride, dilation, pad in product((1, 2, 3), (1, 2, 3), (1, 2), (0, 1)):
        w = normal(4, 3, *(size,) * rank, seed=1)
        if stride * ((4, 3, 2)[rank - 1] - 1) + (size - 1) * dilation + 1 <= 2 * pad:
            continue
        check(
            x,
            w,
            normal(3 * group),
            group=group,
            strides=(stride,) * rank,
            dilations=(dilation,) * rank,
            pads=(pad,) * (2 * rank),
            output_padding=(stride - 1,) * rank,
        )


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"])
@pytest.mark.parametrize("output_shape", [None, (9, 8), (1, 3, 9, 8), (12, 12)])
def test_output_shape(auto_pad, output_shape):
    result = check(
        normal(1, 4, 4, 3),
        normal(4, 3, 3, 3),
        None,
        strides=(2, 3),
        auto_pad=auto_pad,
        output_shape=output_shape,
    )
    natural = (9, 9)
    same = (8, 9) if auto_pad.startswith("SAME") else natural
    assert result.shape == (1, 3, *(output_shape[-2:] if output_shape else same))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_dtypes(dtype):
    check(normal(1, 4, 3, 3, dtype=dtype), normal(4, 2, 2, 2, dtype=dtype), normal(2, dtype=dtype))


def test_many_small_pieces(monkeypatch):
    monkeypatch.setattr(foldline.kernels.col2im, "COLUMN_BYTES", 1)
    check(normal(2, 4, 3, 3), normal(4, 5, 2, 2), normal(10), group=2, strides=(2, 2))


def test_zero_batch():
    assert check(normal(0, 4, 3, 3), normal(4, 2, 2, 2), None).shape == (0, 2, 4, 4)
