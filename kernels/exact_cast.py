"""Cast and CastLike in exact mode: what processors do differently is settled beforehand.

    float -> integer   truncated toward zero; NaN gives 0, what is out of range the nearer end;
                       into less than 8 bits, what is finite wraps around instead
    NaN -> NaN         positive, quiet, no payload

All else is the same everywhere: integers wrap around, floats are rounded to the nearest even.
"""

from __future__ import annotations

import functools
from typing import Any, TypeVar, cast

import numpy as np

from foldline.kernels import cast as reference
from foldline.kernels.exact_bits import canonical
from foldline.kernels.registry import LATEST, Array, kernel
from foldline.support.dtypes import BY_CODE, BY_NAME, BY_NUMPY

Function = TypeVar("Function")


def settled(x: Array, dtype: np.dtype[Any]) -> Array:
    """`x` in a form that no processor converts to `dtype` in a way of its own."""
    if x.dtype == dtype or x.dtype == np.object_ or dtype == np.object_:
        return x
    source, target = BY_NUMPY[x.dtype].name, BY_NUMPY[dtype].name
    if target.startswith(("int", "uint")):
        values = np.real(x) if x.dtype.kind == "c" else x
        return values if _is_exact(source) else _settled_floats(values, dtype)
    return x if _is_exact(source) or x.dtype.kind == "c" else canonical(x.copy())


def _is_exact(name: str) -> bool:
    return name.startswith(("int", "uint", "bool"))


def _settled_floats(x: Array, dtype: np.dtype[Any]) -> Array:
    bounded = _saturated(x, dtype)
    if BY_NUMPY[dtype].bits >= 8:
        return bounded
    # ONNX's own tests wrap numbers beyond less than 8 bits around, as integers are.
    return np.where(np.isinf(x), bounded, _saturated(x, np.dtype(np.int64)))


def _saturated(x: Array, dtype: np.dtype[Any]) -> Array:
    """Floats as integers within the range of `dtype`, in a dtype that NumPy itself computes."""
    if x.dtype.isbuiltin == 2:
        x = x.astype(np.float32)
    target = BY_NUMPY[dtype]
    is_signed = target.name.startswith("int")
    limit = 1 << (target.bits - is_signed)
    least, carrier = (-limit, np.int8) if is_signed else (0, np.uint8)
    whole = np.trunc(x.astype(np.float64))
    # The greatest integer may not be a float64, but the power of two behind it is.
    is_below, is_above = whole < float(least), whole >= float(limit)
    is_outside = is_below | is_above | (whole != whole)
    result = np.where(is_outside, 0.0, whole).astype(carrier if dtype.isbuiltin == 2 else dtype)
    np.copyto(result, least, where=is_below)
    np.copyto(result, limit - 1, where=is_above)
    return result


def _settling(function: Function) -> Function:
    """Decorator: a kernel of Cast or CastLike that is given settled arrays."""

    @functools.wraps(cast(Any, function))
    def wrapper(x: Array, *target: Array, **keywords: Any) -> Array:
        dtype = target[0].dtype if target else _named(keywords["to"])
        return cast(Any, function)(settled(x, dtype), *target, **keywords)

    return cast(Any, wrapper)


def _named(to: int | str) -> np.dtype[Any]:
    return (BY_CODE[to] if isinstance(to, int) else BY_NAME[to.lower()]).numpy


for _op_type, _since, _until, _function in (
    ("Cast", 1, 6, reference.cast_to_name),
    ("Cast", 6, 19, reference.cast),
    ("Cast", 19, 24, reference.cast_saturating),
    ("Cast", 24, LATEST, reference.cast_rounding),
    ("CastLike", 1, 19, reference.cast_like),
    ("CastLike", 19, 24, reference.cast_like_saturating),
    ("CastLike", 24, LATEST, reference.cast_like_rounding),
):
    kernel(_op_type, since=_since, until=_until, grade="exact")(_settling(_function))
