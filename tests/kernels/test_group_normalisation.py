"""Instance and group normalisation against float64."""

import numpy as np
import pytest

from foldline.kernels.group_normalisation import (
    group_normalization,
    group_normalization_18,
    instance_normalization,
)
from tests.kernels.normalised import FAR, FAR_EXACT, FLOATS, close, normal, standard


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(2, 6, 3, 4), (2, 6), (2, 6, 5), (0, 6, 3)])
@pytest.mark.parametrize("groups", [1, 2, 6])
def test_group_normalization(dtype, shape, groups):
    x = normal(*shape, dtype=dtype)
    scale, bias = normal(6, dtype=dtype, seed=1), normal(6, dtype=dtype, seed=2)
    rows = x.astype(float).reshape(shape[0], groups, 6 // groups, int(np.prod(shape[2:])))
    exact = standard(rows, (2, 3), 1e-2)[0].reshape(shape)
    along = (1, 6, *(1,) * (len(shape) - 2))
    exact = exact * scale.astype(float).reshape(along) + bias.astype(float).reshape(along)
    steps = 4 if dtype in FLOATS[:2] else 16
    close(group_normalization(x, scale, bias, num_groups=groups, epsilon=1e-2), exact, dtype, steps)
    if groups == 6:
        close(instance_normalization(x, scale, bias, epsilon=1e-2), exact, dtype, steps)


def test_scales_of_version_18_are_per_group():
    x, scale, bias = normal(2, 6, 3), normal(3, seed=1), normal(3, seed=2)
    for options in ({}, {"epsilon": 0.5}):
        old = group_normalization_18(x, scale, bias, num_groups=3, **options)
        new = group_normalization(x, scale.repeat(2), bias.repeat(2), num_groups=3, **options)
        np.testing.assert_array_equal(old, new)


def test_normalisations_work_in_place():
    x, scale, bias = normal(2, 6, 3), normal(6, seed=1), normal(6, seed=2)
    for function, keywords in (
        (group_normalization, {"num_groups": 2}),
        (instance_normalization, {}),
    ):
        wanted = function(x, scale, bias, **keywords)
        buffer = x.copy()
        assert function(buffer, scale, bias, out=buffer, **keywords) is buffer
        np.testing.assert_array_equal(buffer, wanted)


def test_groups_with_a_stash_type_of_double():
    x = np.repeat(FAR, 2, axis=0).reshape(1, 4, 2)
    scale, bias = np.array([1, 2, 3, 4], np.float32), np.ones(4, np.float32)
    out = np.empty_like(x)
    group_normalization(x, scale, bias, num_groups=2, stash_type=11, out=out)
    rows = np.repeat(FAR_EXACT, 2, axis=0).reshape(1, 4, 2)
    close(out, rows * scale[:, None] + 1, np.float32)
    narrow = group_normalization(x, scale, bias, num_groups=2, stash_type=1)
    assert abs(narrow - out).max() > 0.01


def test_a_narrow_stash_type_never_narrows():
    x, scale = np.array([[300, 400]], np.float32), np.ones(2, np.float32)  # their squares overflow
    plain = group_normalization(x, scale, scale, num_groups=1)
    narrow = group_normalization(x, scale, scale, num_groups=1, stash_type=10)
    assert narrow.tolist() == plain.tolist()
