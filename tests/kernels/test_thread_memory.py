"""Memory that a thread keeps."""

from __future__ import annotations

from threading import Thread

import numpy as np

from foldline.kernels.thread_memory import KEPT_BYTES, own_buffer

SINGLE = np.dtype(np.float32)


def test_a_thread_has_one_buffer():
    first, second = own_buffer((3, 5), SINGLE), own_buffer((7,), np.dtype(np.float64))
    assert (first.shape, first.dtype, second.shape) == ((3, 5), SINGLE, (7,))
    assert np.shares_memory(first, second)
    assert first.flags.c_contiguous


def test_threads_do_not_share():
    mine, theirs = own_buffer((8,), SINGLE), []
    other = Thread(target=lambda: theirs.append(own_buffer((8,), SINGLE)))
    other.start()
    other.join()
    assert not np.shares_memory(mine, theirs[0])


def test_what_is_larger_is_new():
    large = own_buffer((KEPT_BYTES // 4 + 1,), SINGLE)
    assert large.size == KEPT_BYTES // 4 + 1
    assert not np.shares_memory(large, own_buffer((1,), SINGLE))
    assert own_buffer((0, 4), SINGLE).shape == (0, 4)
