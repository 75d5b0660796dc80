"""How two values differ: bit for bit, and by how much where they may."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

SCALE_FLOOR = 1e-3
"""Errors are relative to the largest value of an output, but at least to this."""


@dataclass(frozen=True)
class Allowed:
    """Differences that are none."""

    rtol: float | None
    steps: int


def difference(x: Any, y: Any, allowed: Allowed) -> tuple[float, str]:
    """The error of `y` against `x`, and what differs ('' when nothing does)."""
    if x is None or y is None:
        return (0.0, "") if x is y else (np.inf, "present against absent")
    if all(isinstance(value, list) for value in (x, y)):
        return _of_sequences(x, y, allowed)
    a, b = np.asarray(x), np.asarray(y)
    if a.dtype != b.dtype or a.shape != b.shape:
        return np.inf, f"{a.dtype}{list(a.shape)} against {b.dtype}{list(b.shape)}"
    same = _same_bits(a, b)
    if same.all():
        return 0.0, ""
    error = np.inf if a.dtype == np.object_ else _error(_wide(a), _wide(b))
    if allowed.rtol is not None and error <= allowed.rtol:
        return error, ""
    if allowed.steps and a.dtype.kind in "iu" and _apart(a, b) <= allowed.steps:
        return error, ""
    where = tuple(int(i) for i in np.argwhere(~same)[0])
    count = same.size - int(same.sum())
    return error, f"{count} of {same.size} values differ, {list(where)}: {a[where]} and {b[where]}"


def _of_sequences(x: list[Any], y: list[Any], allowed: Allowed) -> tuple[float, str]:
    if len(x) != len(y):
        return np.inf, f"{len(x)} elements against {len(y)}"
    worst = 0.0
    for index, pair in enumerate(zip(x, y, strict=True)):
        error, what = difference(*pair, allowed)
        worst = max(worst, error)
        if what:
            return worst, f"element {index}: {what}"
    return worst, ""


def _same_bits(a: Array, b: Array) -> npt.NDArray[np.bool_]:
    """Where two arrays of one dtype hold the same bits, or NaNs."""
    if a.dtype == np.object_ or a.dtype.kind in "iub":
        return np.asarray(a == b)
    if a.dtype.kind == "c":
        return _same_bits(np.real(a), np.real(b)) & _same_bits(np.imag(a), np.imag(b))
    bits = np.dtype(f"u{a.dtype.itemsize}")
    equal = np.ascontiguousarray(a).view(bits) == np.ascontiguousarray(b).view(bits)
    both_nan = np.isnan(_wide(a)) & np.isnan(_wide(b))
    return equal.reshape(a.shape) | both_nan


def _apart(a: Array, b: Array) -> int:
    """The largest difference of two arrays of integers."""
    return int((np.maximum(a, b).astype(np.int64) - np.minimum(a, b).astype(np.int64)).max())


def _wide(a: Array) -> Array:
    return a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)


def _error(a: Array, b: Array) -> float:
    """max|Δ| / max(max|a|, 1e-3); NaNs and infinities must stand in the same places."""
    finite = np.isfinite(a) & np.isfinite(b)
    special = ~finite
    if not np.array_equal(a[special], b[special], equal_nan=True):
        return np.inf
    if not finite.any():
        return 0.0
    scale = max(float(np.abs(a[finite]).max()), SCALE_FLOOR)
    return float(np.abs(a[finite] - b[finite]).max()) / scale
