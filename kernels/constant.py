"""Constant, ConstantOfShape and Identity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from foldline.kernels.arguments import ints
from foldline.kernels.registry import Array, kernel


@kernel("Constant", until=11, exact=True)
def constant_of_value(*, value: Array) -> Array:
    """Constant 1 and 9: a copy of `value`."""
    return value.copy()


@kernel("Constant", since=11, until=12, exact=True)
def constant_of_tensor(*, value: Array | None = None, sparse_value: Array | None = None) -> Array:
    """Constant 11: a copy of `value`, or of `sparse_value`, which arrives as its dense array."""
    return _only(value=value, sparse_value=sparse_value)


@kernel("Constant", since=12, exact=True)
def constant(
    *,
    value: Array | None = None,
    sparse_value: Array | None = None,
    value_float: float | None = None,
    value_floats: Sequence[float] | None = None,
    value_int: int | None = None,
    value_ints: Sequence[int] | None = None,
    value_string: str | None = None,
    value_strings: Sequence[str] | None = None,
) -> Array:
    """Constant 12+: the value of the one attribute given; a vector for the plural forms.

    ValueError unless exactly one attribute is given.
    """
    return _only(
        value=value,
        sparse_value=sparse_value,
        value_float=_typed(value_float, np.float32),
        value_floats=_typed(value_floats, np.float32),
        value_int=_typed(value_int, np.int64),
        value_ints=_typed(value_ints, np.int64),
        value_string=_typed(value_string, np.object_),
        value_strings=_typed(value_strings, np.object_),
    )


def _typed(value: Any, dtype: Any) -> Array | None:
    return None if value is None else np.array(value, dtype)


def _only(**values: Array | None) -> Array:
    given = {name: value for name, value in values.items() if value is not None}
    if len(given) != 1:
        raise ValueError(f"Constant needs exactly one value, got {', '.join(given) or 'none'}")
    (value,) = given.values()
    return value.copy()


@kernel("ConstantOfShape", exact=True)
def constant_of_shape(
    shape: Array, *, value: Array | None = None, out: Array | None = None
) -> Array:
    """ConstantOfShape 9+: an array of `shape` filled with the one element of `value`, or 0.0f."""
    fill = np.zeros(1, np.float32) if value is None else value
    if out is not None:
        out[...] = fill.reshape(())
        return out
    if fill.dtype != np.object_ and not fill.tobytes().strip(b"\0"):
        # Pages of zeros cost nothing until they are touched; real models ask for 400 MB of them.
        return np.zeros(ints(shape), fill.dtype)
    return np.full(ints(shape), fill.reshape(()), fill.dtype)


@kernel("Identity", view=True, exact=True)
def identity(x: Any) -> Any:
    """Identity 1+: the tensor, sequence or optional itself."""
    return x
