import gc

import numpy as np

from foldline.kernels.packed_weights import kept_with, packed


def test_a_copy_is_shared_while_it_lives():
    weights = np.arange(6.0).reshape(2, 3)
    first = packed(weights, "transposed", np.transpose)
    assert packed(weights, "transposed", lambda w: w + 1) is first
    assert not first.flags.writeable
    other = packed(weights, "doubled", lambda w: 2 * w)
    np.testing.assert_array_equal(other, 2 * weights)


def test_nothing_is_kept_for_arrays_that_are_gone():
    for value in range(50):
        weights = np.full(7, float(value))
        copy = packed(weights, "negated", np.negative)
        np.testing.assert_array_equal(copy, np.full(7, -float(value)))
        del weights
        gc.collect(0)


def test_a_copy_that_nobody_holds_is_made_again():
    weights = np.ones(3)
    calls = []

    def pack(w):
        calls.append(1)
        return w + 1

    for _ in range(2):
        packed(weights, "plus one", pack)
    assert len(calls) == 2


def test_what_is_kept_with_memory_is_shared_by_views_and_purposes_are_apart():
    matrix = np.arange(12.0).reshape(3, 4)
    first = kept_with(matrix, "sum", lambda: [matrix.sum()])
    assert kept_with(matrix[:], "sum", list) is first
    assert kept_with(matrix.T, "sum", list) is not first
    assert kept_with(matrix.view(np.int64), "sum", list) is not first
    assert kept_with(matrix, "other", list) is not first
