from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.channels_last import (
    channels_last,
    contiguous_pixels,
    deliver,
    is_channels_last,
    pixels,
    zeros,
)
from foldline.kernels.registry import aligned_bytes


@pytest.mark.parametrize(
    ("shape", "is_last"),
    [((2, 3, 4, 5), True), ((1, 3, 1, 1), False), ((2, 1, 4, 5), False), ((0, 3, 4, 5), False)],
)
def test_only_what_is_not_in_c_order_counts(shape, is_last):
    assert is_channels_last(zeros(shape, np.dtype(np.float32), True)) is is_last
    assert not is_channels_last(zeros(shape, np.dtype(np.float32), False))


def test_other_ranks_and_orders_are_not_channels_last():
    assert not is_channels_last(np.zeros((3, 4, 5)).transpose(1, 2, 0))
    assert not is_channels_last(np.zeros((2, 3, 4, 5)).transpose(0, 2, 1, 3))


def test_memory_is_seen_pixel_by_pixel():
    memory = np.arange(24)
    array = channels_last(memory, (1, 2, 3, 4))
    assert array.shape == (1, 2, 3, 4)
    np.testing.assert_array_equal(array[0, 1], np.arange(1, 24, 2).reshape(3, 4))
    assert np.shares_memory(array, memory)


@pytest.mark.parametrize("is_last", [False, True])
def test_results_are_delivered_in_either_order(is_last):
    out = zeros((2, 3, 4, 5), np.dtype(np.float64), is_last)
    scratch = aligned_bytes(out.nbytes + 64)
    result = contiguous_pixels(out, scratch, 64)
    assert np.shares_memory(result, out) is is_last
    wanted = np.random.default_rng(0).standard_normal(out.shape)
    result[...] = pixels(wanted)
    assert deliver(result, out) is out
    np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("is_last", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.bool_, ml_dtypes.bfloat16])
def test_large_zeros_take_no_memory(is_last, dtype):
    def resident():
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))

    before = resident()
    kept = [zeros((1, 16, 256, 256), np.dtype(dtype), is_last) for _ in range(40)]
    assert resident() - before < 10_000
    assert kept[0].shape == (1, 16, 256, 256)
    assert kept[0].dtype == dtype
    assert is_channels_last(kept[0]) is is_last
    assert not np.shares_memory(kept[0], kept[1])
    assert not kept[0].any()
