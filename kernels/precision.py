"""The rule for narrow floats: widen to float32, compute, round once.

Elementwise kernels do not need it, for each of their results is rounded once anyway. Products,
sums and whatever takes more than one step do.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import ml_dtypes
import numpy as np

from foldline.kernels.registry import Array, Operand, Step

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


def working_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """float32 for a narrow float, else `dtype` itself."""
    return np.dtype(np.float32) if dtype in NARROW else dtype


def widened(array: Array) -> Array:
    """`array` in its working dtype; itself when it is there already."""
    return array.astype(np.float32) if array.dtype in NARROW else array


def rounded(array: Array, dtype: np.dtype[Any], out: Array | None = None) -> Array:
    """`array` as `dtype`, in `out` if given."""
    if out is None:
        return array.astype(dtype, copy=False)
    np.copyto(out, array, casting="unsafe")
    return out


def widening(function: Function) -> Function:
    """Decorator: a plain kernel that sees float32 where the node has narrow floats.

    The first result is rounded to the dtype of the first input.
    """

    @functools.wraps(function)
    def wrapper(*arrays: Array | None, **keywords: Any) -> Any:
        first = arrays[0]
        if first is None or first.dtype not in NARROW:
            return function(*arrays, **keywords)
        out = keywords.pop("out", None)
        results = function(*[None if x is None else widened(x) for x in arrays], **keywords)
        return _round_all(results, first.dtype, out)

    return cast(Any, wrapper)


def widening_maker(make: Function) -> Function:
    """The same for a maker; constants are widened once."""

    @functools.wraps(make)
    def wrapper(*operands: Operand | None, **keywords: Any) -> Any:
        first = operands[0]
        if first is None or first.dtype not in NARROW:
            return make(*operands, **keywords)
        wide = [None if x is None else _widened_operand(x) for x in operands]
        made = make(*wide, **keywords)
        step = made if isinstance(made, Step) else Step(made)
        constants = [None if x is None else x.value for x in wide]

        def run(*arrays: Array | None, out: Array | None = None, **scratch: Any) -> Any:
            inputs = [
                constant if constant is not None else None if x is None else widened(x)
                for x, constant in zip(arrays, constants, strict=True)
            ]
            return _round_all(step.run(*inputs, **scratch), first.dtype, out)

        return Step(run, step.scratch_bytes)

    return cast(Any, wrapper)


def _widened_operand(operand: Operand) -> Operand:
    value = None if operand.value is None else widened(operand.value)
    return Operand(operand.shape, working_dtype(operand.dtype), value)


def _round_all(
    results: Array | tuple[Array, ...], dtype: np.dtype[Any], out: Array | None
) -> Array | tuple[Array, ...]:
    if isinstance(results, np.ndarray):
        return rounded(results, dtype, out)
    return (rounded(results[0], dtype, out), *results[1:])
