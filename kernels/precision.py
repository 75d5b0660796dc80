"""The rule for narrow floats: widen to float32, compute, round once.

Elementwise kernels do not need it, for each of their results is rounded once anyway. Products,
sums and whatever takes more than one step do. A `stash_type` of double widens to float64; one that
is narrower than the data never narrows it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import ml_dtypes
import numpy as np

from foldline.kernels.half import HALF, SINGLE, onto_halves, round_to_half, widen_half
from foldline.kernels.registry import Array, Operand, Step

_DOUBLE = 11
"""Code of TensorProto.DataType."""

Function = TypeVar("Function", bound=Callable[..., Any])

NARROW = frozenset(
    np.dtype(narrow)
    for narrow in (
        np.float16,
        ml_dtypes.bfloat16,
        ml_dtypes.float8_e4m3fn,
        ml_dtypes.float8_e4m3fnuz,
        ml_dtypes.float8_e5m2,
        ml_dtypes.float8_e5m2fnuz,
    )
)
"""Float dtypes that are not computed in as they are."""


def working_dtype(dtype: np.dtype[Any], stash_type: int = 1) -> np.dtype[Any]:
    """float32 for a narrow float, float64 for any if `stash_type` is double, else `dtype`."""
    if stash_type == _DOUBLE and (dtype in NARROW or dtype == np.float32):
        return np.dtype(np.float64)
    return np.dtype(np.float32) if dtype in NARROW else dtype


def widened(array: Array, stash_type: int = 1) -> Array:
    """`array` in its working dtype; itself when it is there already."""
    working = working_dtype(array.dtype, stash_type)
    if array.dtype == HALF and working == SINGLE:
        return widen_half(array)
    return array.astype(working, copy=False)


def rounded(array: Array, dtype: np.dtype[Any], out: Array | None = None) -> Array:
    """`array` as `dtype`, in `out` if given."""
    if dtype == HALF and array.dtype == SINGLE:
        return round_to_half(array, out)
    if out is None:
        return array.astype(dtype, copy=False)
    np.copyto(out, array, casting="unsafe")
    return out


def stepped(x: Array, dtype: np.dtype[Any]) -> Array:
    """`x` rounded to `dtype`, in the working dtype of that: what a step of a body hands on."""
    if dtype == HALF and x.dtype == SINGLE:
        return onto_halves(x)
    return widened(x.astype(dtype, copy=False))


def widening(function: Function) -> Function:
    """Decorator: a plain kernel that sees arrays in their working dtypes.

    The first result is rounded to the dtype of the first input.
    """

    @functools.wraps(function)
    def wrapper(*arrays: Array | None, **keywords: Any) -> Any:
        first = arrays[0]
        stash_type = keywords.get("stash_type", 1)
        if first is None or first.dtype == working_dtype(first.dtype, stash_type):
            return function(*arrays, **keywords)
        out = keywords.pop("out", None)
        keywords.pop("scratch", None)
        wide = [None if x is None else widened(x, stash_type) for x in arrays]
        results = function(*wide, **keywords)
        return _round_all(results, first.dtype, out)

    cast(Any, wrapper).in_single = function
    return cast(Any, wrapper)


def widening_maker(make: Function) -> Function:
    """The same for a maker; constants are widened once."""

    @functools.wraps(make)
    def wrapper(*operands: Operand | None, **keywords: Any) -> Any:
        first = operands[0]
        stash_type = keywords.get("stash_type", 1)
        if first is None or first.dtype == working_dtype(first.dtype, stash_type):
            return make(*operands, **keywords)
        wide = [None if x is None else widened_operand(x, stash_type) for x in operands]
        made = make(*wide, **keywords)
        step = made if isinstance(made, Step) else Step(made)
        constants = [None if x is None else x.value for x in wide]

        def run(*arrays: Array | None, out: Array | None = None, **scratch: Any) -> Any:
            inputs = [
                constant if constant is not None else None if x is None else widened(x, stash_type)
                for x, constant in zip(arrays, constants, strict=True)
            ]
            return _round_all(step.run(*inputs, **scratch), first.dtype, out)

        return Step(run, step.scratch_bytes)

    cast(Any, wrapper).in_single = make
    return cast(Any, wrapper)


def widened_operand(operand: Operand, stash_type: int = 1) -> Operand:
    """What is known of an operand once it is in its working dtype."""
    value = None if operand.value is None else widened(operand.value, stash_type)
    dtype = working_dtype(operand.dtype, stash_type)
    return Operand(operand.shape, dtype, value, operand.channels_last)


def _round_all(
    results: Array | tuple[Array, ...], dtype: np.dtype[Any], out: Array | None
) -> Array | tuple[Array, ...]:
    if isinstance(results, np.ndarray):
        return rounded(results, dtype, out)
    return (rounded(results[0], dtype, out), *results[1:])
