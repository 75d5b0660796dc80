"""Losses and scattering in exact mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from foldline.kernels.registry import compute, find_kernel


def run(grade: Any, op_type: str, *inputs: Any, since: int = 22, **attributes: Any) -> Any:
    entry = find_kernel("", op_type, since, [grade])
    assert entry is not None
    if "output_count" in attributes and "output_count" not in entry.reserved:
        del attributes["output_count"]
    with np.errstate(all="ignore"):
        return compute(entry, inputs, **attributes)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_losses(reduction: str) -> None:
    scores, labels, weights = numbers(3, 4, 2), np.array([[0, 3], [1, 2], [2, 2]]), numbers(4)
    attributes: dict[str, Any] = {"reduction": reduction, "ignore_index": 2}
    for op_type in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"):
        found = run("exact", op_type, scores, labels, weights, **attributes)
        expected = run("reference", op_type, scores, labels, weights, **attributes)
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        assert found.dtype == np.float32
    loss, logs = run(
        "exact", "SoftmaxCrossEntropyLoss", scores, labels, weights, output_count=2, **attributes
    )
    assert loss.tobytes() == found.tobytes()
    assert logs.tobytes() == run("exact", "LogSoftmax", scores, axis=1).tobytes()


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
def test_scattering(reduction: str, dtype: Any) -> None:
    data = np.array([[1, -2, 3], [4, 5, -6]], dtype)
    indices, updates = np.array([[1, 1, 0], [1, 0, 0]]), np.array([[7, -8, 2], [-3, 0, 9]], dtype)
    found = run("exact", "ScatterElements", data, indices, updates, reduction=reduction)
    expected = run("reference", "ScatterElements", data, indices, updates, reduction=reduction)
    np.testing.assert_array_equal(found, expected)
    places = np.array([[0, 1], [1, 2], [0, 1]])
    found = run("exact", "ScatterND", data, places, updates[0], reduction=reduction)
    expected = run("reference", "ScatterND", data, places, updates[0], reduction=reduction)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == dtype


def test_scattered_zeros_and_nans() -> None:
    zeros = np.array([0.0, -0.0], np.float32)
    updates = np.array([-0.0, 0.0], np.float32)
    at = np.array([0, 1])
    assert not np.signbit(
        run("exact", "ScatterElements", zeros, at, updates, reduction="max")
    ).any()
    assert np.signbit(run("exact", "ScatterElements", zeros, at, updates, reduction="min")).all()
    for reduction in ("max", "min", "add"):
        nans = np.array([0xFFC00001, 0x3F800000], np.uint32).view(np.float32)
        found = run("exact", "ScatterElements", zeros, at, nans, reduction=reduction)
        assert found.view(np.uint32)[0] == 0x7FC00000
