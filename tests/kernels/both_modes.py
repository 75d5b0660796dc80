"""Operators in exact mode against those of fast mode: values, and the one NaN."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from foldline.kernels.registry import GRADES, compute, find_kernel

Case: TypeAlias = "tuple[str, list[Any], dict[str, Any]]"
"""An operator, its inputs and its attributes."""

MICROSOFT = "com.microsoft"


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def codes(*shape: int, dtype: Any = np.int8) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.random.default_rng(sum(shape)).integers(info.min, info.max, shape, dtype)


def scalar(value: float, dtype: Any = np.float32) -> np.ndarray:
    return np.asarray(dtype(value))


def run(mode: str, op_type: str, *inputs: Any, domain: str = MICROSOFT, **attributes: Any) -> Any:
    entry = find_kernel(domain, op_type, 1, GRADES[mode])
    assert entry is not None
    if "output_count" not in entry.reserved:
        attributes.pop("output_count", None)
    with np.errstate(all="ignore"):
        results = compute(entry, inputs, **attributes)
    return results if isinstance(results, tuple) else (results,)


def agree(case: Case, tolerance: float = 1e-4, domain: str = MICROSOFT) -> tuple[Any, ...]:
    """Both modes give nearly the same values, of the same types; returns those of exact mode."""
    op_type, inputs, attributes = case
    found = run("exact", op_type, *inputs, domain=domain, **attributes)
    expected = run("fast", op_type, *inputs, domain=domain, **attributes)
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if a.dtype.kind in "biuOU":
            np.testing.assert_array_equal(a, b)
        else:
            wide = (x.astype(np.float64) for x in (a, b))
            np.testing.assert_allclose(*wide, rtol=tolerance, atol=tolerance / 10)
    return found


def has_the_one_nan(case: Case, domain: str = MICROSOFT) -> None:
    """A NaN with a payload in the first floats gives results whose NaNs are 0x7FC00000."""
    op_type, inputs, attributes = case
    given = [x.copy() if isinstance(x, np.ndarray) else x for x in inputs]
    first = next(x for x in given if x is not None and x.dtype == np.float32)
    first.reshape(-1).view(np.uint32)[0] = 0xFFC00001
    seen = 0
    for part in run("exact", op_type, *given, domain=domain, **attributes):
        if part.dtype == np.float32:
            bits = part[np.isnan(part)].view(np.uint32)
            assert (bits == 0x7FC00000).all()
            seen += bits.size
    assert seen
