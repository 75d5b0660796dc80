"""Reductions in exact mode: values, slices, types, NaN, no elements."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.registry import compute, find_kernel


def run(grade: Any, op_type: str, *inputs: Any, since: int = 18, **attributes: Any) -> Any:
    entry = find_kernel("", op_type, since, [grade])
    assert entry is not None
    with np.errstate(all="ignore"):
        return compute(entry, inputs, **attributes)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).random(shape).astype(np.float32) + np.float32(0.5)


OPERATORS = (
    "ReduceSum ReduceMean ReduceProd ReduceMax ReduceMin ReduceL1 ReduceL2 ReduceLogSum "
    "ReduceLogSumExp ReduceSumSquare"
).split()


@pytest.mark.parametrize("op_type", OPERATORS)
def test_values_and_slices(op_type: str) -> None:
    x = numbers(4, 9, 5)
    found = run("exact", op_type, x, np.array([1]))
    np.testing.assert_allclose(found, run("reference", op_type, x, np.array([1])), rtol=1e-5)
    assert found.dtype == np.float32
    assert found.shape == (4, 1, 5)
    assert run("exact", op_type, x[1:3], np.array([1])).tobytes() == found[1:3].tobytes()
    by_attribute = run("exact", op_type, x, since=1, axes=[1])
    assert by_attribute.tobytes() == found.tobytes()


@pytest.mark.parametrize("op_type", OPERATORS)
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_integers(op_type: str, dtype: Any) -> None:
    x = np.array([[3, 7, 2], [5, 1, 9]], dtype)
    found = run("exact", op_type, x, np.array([1]))
    np.testing.assert_array_equal(found, run("reference", op_type, x, np.array([1])))
    assert found.dtype == dtype


@pytest.mark.parametrize("op_type", OPERATORS)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_types(op_type: str, dtype: Any) -> None:
    x = numbers(3, 7).astype(dtype)
    wide = run("exact", op_type, x.astype(np.float32), np.array([1]))
    assert run("exact", op_type, x, np.array([1])).tobytes() == wide.astype(dtype).tobytes()


@pytest.mark.parametrize("op_type", OPERATORS)
def test_nan(op_type: str) -> None:
    x = np.array([[0xFFC00001, 0x3F800000], [0x3F800000] * 2], np.uint32).view(np.float32)
    found = run("exact", op_type, x, np.array([1]), keepdims=0)
    assert found[:1].view(np.uint32).tolist() == [0x7FC00000]
    assert np.isfinite(found[1])


@pytest.mark.parametrize("op_type", OPERATORS)
def test_no_elements(op_type: str) -> None:
    x = np.zeros((2, 0), np.float32)
    found = run("exact", op_type, x, np.array([1]))
    np.testing.assert_array_equal(found, run("reference", op_type, x, np.array([1])))
