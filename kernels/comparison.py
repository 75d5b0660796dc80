"""Comparison, logic and bits: Equal … Xor, IsNaN, IsInf, the Bitwise operators and Where."""

from __future__ import annotations

from typing import Any

import numpy as np

from foldline.kernels.arguments import copy_of
from foldline.kernels.registry import Array, kernel
from foldline.kernels.ufuncs import register_binary, register_binary_before_7, register_unary

for _op_type, _function in (
    ("Equal", np.equal),
    ("Less", np.less),
    ("Greater", np.greater),
    ("And", np.logical_and),
    ("Or", np.logical_or),
    ("Xor", np.logical_xor),
):
    # A result of bool may overwrite an input only where that is bool too; the planner compares.
    register_binary(_op_type, _function, since=7, exact=True)
    register_binary_before_7(_op_type, _function, exact=True)

register_binary("LessOrEqual", np.less_equal, exact=True)
register_binary("GreaterOrEqual", np.greater_equal, exact=True)
register_binary("BitwiseAnd", np.bitwise_and, exact=True)
register_binary("BitwiseOr", np.bitwise_or, exact=True)
register_binary("BitwiseXor", np.bitwise_xor, exact=True)

register_unary("Not", np.logical_not, exact=True)
register_unary("BitwiseNot", np.invert, exact=True)
register_unary("IsNaN", np.isnan, inplace=(), exact=True)


@kernel("IsInf", exact=True)
def is_inf(
    x: Array, *, detect_negative: int = 1, detect_positive: int = 1, out: Array | None = None
) -> Array:
    """IsInf 10+: bool, which elements are an infinity of a detected sign."""
    found: Any = np.isinf(x, out=out)
    if detect_negative and detect_positive:
        return np.asarray(found)
    if not detect_negative:
        found = np.logical_and(found, np.logical_not(np.signbit(x)), out=out)
    if not detect_positive:
        found = np.logical_and(found, np.signbit(x), out=out)
    return np.asarray(found)


@kernel("BitShift", inplace=(0, 1), exact=True)
def bit_shift(x: Array, y: Array, *, direction: str, out: Array | None = None) -> Array:
    """BitShift 11+: `x` shifted by `y` bits, arithmetically to the right.

    A shift that is negative or not below the width leaves what the sign extends to: -1 for a
    negative `x` shifted right, else 0. ValueError when `direction` is neither LEFT nor RIGHT.
    """
    if direction not in ("LEFT", "RIGHT"):
        raise ValueError(f"direction is {direction!r}, expected LEFT or RIGHT")
    # NumPy defines shifts out of range just as ONNX does.
    return np.asarray((np.left_shift if direction == "LEFT" else np.right_shift)(x, y, out=out))


@kernel("Where", inplace=(1, 2), exact=True)
def where(condition: Array, x: Array, y: Array, *, out: Array | None = None) -> Array:
    """Where 9+: `x` where `condition` holds, else `y`, all three broadcast; any element type."""
    # Selecting and copying takes a third of the time of copying under a mask.
    selected = np.where(condition, x, y)
    return selected if out is None else copy_of(selected, out)
