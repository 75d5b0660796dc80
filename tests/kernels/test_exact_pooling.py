"""Pooling in exact mode, and LRN, which is seen in the same ways."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.exact_sums import tree_sum
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


POOLS: dict[str, dict[str, Any]] = {
    "AveragePool": {"kernel_shape": [3, 2], "pads": [1, 1, 1, 0], "strides": [2, 1]},
    "MaxPool": {"kernel_shape": [3, 2], "pads": [1, 1, 1, 0], "dilations": [1, 2]},
    "LpPool": {"kernel_shape": [2, 2], "p": 3},
    "GlobalAveragePool": {},
    "GlobalMaxPool": {},
    "GlobalLpPool": {"p": 3},
    "LRN": {"size": 3, "beta": 0.6, "bias": 1.5},
}


@pytest.mark.parametrize("op_type", POOLS)
def test_values_and_planes(op_type: str) -> None:
    x = numbers(2, 3, 6, 7)
    found = run("exact", op_type, x, **POOLS[op_type])
    np.testing.assert_allclose(found, run("reference", op_type, x, **POOLS[op_type]), rtol=1e-5)
    assert run("exact", op_type, x[1:], **POOLS[op_type]).tobytes() == found[1:].tobytes()


@pytest.mark.parametrize("op_type", POOLS)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_types(op_type: str, dtype: Any) -> None:
    x = numbers(1, 3, 6, 7).astype(dtype)
    wide = run("exact", op_type, x.astype(np.float32), **POOLS[op_type])
    assert run("exact", op_type, x, **POOLS[op_type]).tobytes() == wide.astype(dtype).tobytes()


@pytest.mark.parametrize("op_type", POOLS)
def test_nan(op_type: str) -> None:
    x = numbers(1, 3, 6, 7)
    x.view(np.uint32)[0, 1, 2, 3] = 0xFFC00007
    found = run("exact", op_type, x, **POOLS[op_type])
    assert np.isnan(found).any()
    assert (found[np.isnan(found)].view(np.uint32) == 0x7FC00000).all()


def test_a_mean_is_a_tree_over_the_kernel() -> None:
    x = numbers(1, 1, 3, 3)
    expected = tree_sum(x.reshape(1, 9), (1,)) / np.float32(9)
    for op_type, attributes in (
        ("AveragePool", {"kernel_shape": [3, 3]}),
        ("GlobalAveragePool", {}),
    ):
        assert run("exact", op_type, x, **attributes).tobytes() == expected.tobytes()


def test_maxima_of_zeros_integers_and_indices() -> None:
    x = np.array([[[-0.0, 0.0, -0.0, -0.0]]], np.float32)
    for order in (x, x[..., ::-1]):
        found = run("exact", "MaxPool", np.ascontiguousarray(order), kernel_shape=[2], strides=[2])
        assert sorted(np.signbit(found).reshape(-1).tolist()) == [False, True]
    ints = np.array([[[3, -7, 2]]], np.int8)
    assert run("exact", "MaxPool", ints, kernel_shape=[2]).tolist() == [[[3, 2]]]
    values, indices = run("exact", "MaxPool", ints, kernel_shape=[3], output_count=2)
    assert (values.tolist(), indices.tolist()) == ([[[3]]], [[[0]]])
