"""Softmax and LogSoftmax in exact mode: the definition, rows, half types, NaN."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.exact_softmax import log_softmax, log_softmax_11, softmax, softmax_11
from foldline.kernels.exact_sums import tree_sum
from foldline.kernels.registry import compute, find_kernel


def run(grade: Any, op_type: str, *inputs: Any, since: int = 18, **attributes: Any) -> Any:
    entry = find_kernel("", op_type, since, [grade])
    assert entry is not None
    with np.errstate(all="ignore"):
        return compute(entry, inputs, **attributes)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).random(shape).astype(np.float32) + np.float32(0.5)


def test_softmax_is_what_it_says() -> None:
    x = numbers(3, 11)
    shifted = x - x.max(axis=1, keepdims=True)
    exp = find_kernel("", "Exp", 13, ["exact"])
    assert exp is not None
    powers = exp.function(shifted)
    assert softmax(x).tobytes() == (powers / tree_sum(powers, (1,), True)).tobytes()
    np.testing.assert_allclose(np.exp(log_softmax(x)), softmax(x), rtol=1e-6)


def test_softmax_rows_and_old_versions() -> None:
    x = numbers(2, 3, 4)
    whole = softmax(x, axis=1)
    assert softmax(x[1:], axis=1).tobytes() == whole[1:].tobytes()
    assert softmax_11(x, axis=1).tobytes() == softmax(x.reshape(2, 12)).tobytes()
    assert log_softmax_11(x, axis=1).tobytes() == log_softmax(x.reshape(2, 12)).tobytes()


def test_softmax_of_what_is_not_finite() -> None:
    x = np.array([[-np.inf, 0], [np.inf, 0], [-np.inf, -np.inf]], np.float32)
    with np.errstate(all="ignore"):
        found = softmax(x)
        logs = log_softmax(x)
    assert found[0].tolist() == [0, 1]
    assert (found[1:][np.isnan(found[1:])].view(np.uint32) == 0x7FC00000).all()
    assert np.isnan(found[2]).all()
    assert (logs[np.isnan(logs)].view(np.uint32) == 0x7FC00000).all()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_softmax_of_half_types(dtype: Any) -> None:
    x = numbers(3, 5).astype(dtype)
    assert softmax(x).dtype == dtype
    np.testing.assert_allclose(
        softmax(x).astype(np.float32), softmax(x.astype(np.float32)), rtol=2e-2
    )
    assert log_softmax(x).tobytes() == log_softmax(x.astype(np.float32)).astype(dtype).tobytes()
