"""Normalisation in exact mode: values, images, NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from foldline.kernels.exact_normalisation import (
    group_normalization,
    group_normalization_18,
    instance_normalization,
    layer_normalization,
    lp_normalization,
    mean_variance_normalization,
    rms_normalization,
)
from foldline.kernels.registry import compute, find_kernel


def run(grade: Any, op_type: str, *inputs: Any, since: int = 18, **attributes: Any) -> Any:
    entry = find_kernel("", op_type, since, [grade])
    assert entry is not None
    with np.errstate(all="ignore"):
        return compute(entry, inputs, **attributes)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).random(shape).astype(np.float32) + np.float32(0.5)


@pytest.mark.parametrize(
    ("function", "op_type", "attributes", "scales"),
    [
        (layer_normalization, "LayerNormalization", {"axis": 2}, (3, 4)),
        (rms_normalization, "RMSNormalization", {"axis": -1}, (4,)),
        (instance_normalization, "InstanceNormalization", {}, (6,)),
        (group_normalization, "GroupNormalization", {"num_groups": 3}, (6,)),
        (group_normalization_18, "GroupNormalization", {"num_groups": 3}, (3,)),
        (mean_variance_normalization, "MeanVarianceNormalization", {}, None),
        (lp_normalization, "LpNormalization", {"axis": 1, "p": 1}, None),
        (lp_normalization, "LpNormalization", {"axis": 1, "p": 2}, None),
    ],
)
def test_normalisation(function: Any, op_type: str, attributes: Any, scales: Any) -> None:
    x = numbers(2, 6, 3, 4)
    given = [] if scales is None else [numbers(*scales)]
    if scales is not None and function is not rms_normalization:
        given.append(numbers(*scales) - 1)
    since = 18 if function is group_normalization_18 else 23
    expected = run("reference", op_type, x, *given, since=since, **attributes)
    found = function(x, *given, **attributes)
    if isinstance(found, tuple):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
        found = found[0]
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    if function is not mean_variance_normalization:
        alone = function(x[1:], *given, **attributes)
        alone = alone[0] if isinstance(alone, tuple) else alone
        assert alone.tobytes() == found[1:].tobytes()
    odd = x.copy()
    odd[0, 0, 0, 0] = -np.float32(np.nan)
    with np.errstate(all="ignore"):
        results = function(odd, *given, **attributes)
    first = results[0] if isinstance(results, tuple) else results
    assert np.isnan(first).any()
    assert (first[np.isnan(first)].view(np.uint32) == 0x7FC00000).all()


def test_batch_normalisation() -> None:
    x, s, b, m, v = numbers(2, 3, 4), *(numbers(3) * n for n in (1, 2, 3, 4))
    found = run("exact", "BatchNormalization", x, s, b, m, v, since=15)
    inverse = 1 / np.sqrt(v + np.float32(1e-5))
    by_hand = (x - m[:, None]) * (inverse * s)[:, None] + b[:, None]
    assert found.tobytes() == by_hand.tobytes()
    trained = run("exact", "BatchNormalization", x, s, b, m, v, since=15, training_mode=1)
    assert [part.shape for part in trained] == [(2, 3, 4), (3,), (3,)]
