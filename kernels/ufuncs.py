"""How NumPy's ufuncs become kernels, and the primitives elementwise kernels are made of.

Three things differ between a ufunc and an ONNX operator: a ufunc gives a scalar for rank 0, the
operators of opset 1 and 6 broadcast by `broadcast` and `axis`, and some of version 1 carry
`consumed_inputs`, a hint about memory that no runtime ever needed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy._core import umath  # pyright: ignore[reportPrivateUsage]

from foldline.kernels.half import HALF, LEAST_SIZE, round_to_half, widen_half
from foldline.kernels.registry import Array, Grade, computes_in_single, kernel

CLIP: Any = vars(umath)["clip"]
"""The ufunc behind `numpy.clip`, which costs a microsecond more a call."""

NATIVE_FLOATS = frozenset((np.dtype(np.float32), np.dtype(np.float64)))
"""What NumPy computes without another dtype in between."""

Unary = Callable[..., Any]
"""(x, *, out) -> result, as a ufunc takes them."""
Binary = Callable[..., Any]
"""(a, b, *, out) -> result, as a ufunc takes them."""


UFUNCS: dict[Callable[..., Any], np.ufunc] = {}
"""Kernels that do no more than call a ufunc."""

Recipe: TypeAlias = tuple[tuple[Any, ...], ...]
"""Ufuncs, each with its numbers; the first takes an array, others the result of the one before."""

Steps: TypeAlias = list[tuple[Callable[..., Any], list[Any]]]
"""The same with the numbers as arrays of a dtype."""

RECIPES: dict[Callable[..., Any], Recipe] = {}
"""Kernels of one input that, for float32 and float64, do no more than follow a recipe."""

ATTRIBUTE_RECIPES: dict[Callable[..., Any], Callable[..., Recipe]] = {}
"""Recipes that hang on the attributes of the operator."""

GATES: dict[Callable[..., Any], tuple[Recipe, np.ufunc]] = {}
"""Kernels that combine their input with what a recipe makes of it: `ufunc(x, recipe(x))`."""


def steps_of(recipe: Recipe, dtype: np.dtype[Any]) -> Steps:
    """The ufuncs of a recipe with their numbers as arrays."""
    return [(ufunc, [constant(n, dtype) for n in numbers]) for ufunc, *numbers in recipe]


def bound_ufuncs(
    function: Callable[..., Any], arrays: Sequence[Array], out: Array
) -> list[Callable[[], Any]] | None:
    """The calls of ufuncs a kernel comes down to on these arrays; None if it is more than that.

    A plan makes them itself: without the kernel, and by position, they take a third of the time.
    """
    if function in UFUNCS and not (out.dtype == HALF and out.size >= LEAST_SIZE):
        return [partial(UFUNCS[function], *arrays, out)]
    if function not in RECIPES or out.dtype not in NATIVE_FLOATS:
        return None
    (x,) = arrays
    calls: list[Callable[[], Any]] = []
    for ufunc, numbers in steps_of(RECIPES[function], out.dtype):
        calls.append(partial(ufunc, x, *numbers, out))
        x = out
    return calls


def following_recipe(
    function: Callable[..., Any], dtype: np.dtype[Any]
) -> Callable[..., Array] | None:
    """`(x, *, out) -> out`, a kernel's recipe with its numbers made arrays; None if it has none.

    On few elements it takes half the time of the kernel.
    """
    if function not in RECIPES or dtype not in NATIVE_FLOATS:
        return None
    steps = steps_of(RECIPES[function], dtype)

    def run(x: Array, *, out: Array) -> Array:
        for ufunc, numbers in steps:
            ufunc(x, *numbers, out)
            x = out
        return out

    return run


def register_unary(
    op_type: str,
    function: Unary,
    *,
    since: int = 1,
    consumed_inputs: bool = False,
    inplace: Sequence[int] = (0,),
    grade: Grade = "reference",
    exact: bool = False,
    recipe: Recipe = (),
    in_single: bool = False,
) -> None:
    """Register `function` for `op_type`; `consumed_inputs` where its version 1 has that attribute.

    `inplace` is empty where the result has another dtype than the input, `exact` as for `kernel`,
    `in_single` as for `computes_in_single`.
    """
    mark = computes_in_single if in_single else _unmarked
    if consumed_inputs:

        @kernel(op_type, since=since, inplace=inplace, grade=grade, exact=exact)
        @mark
        def compute_legacy(
            x: Array, *, consumed_inputs: Sequence[int] | None = None, out: Array | None = None
        ) -> Array:
            return np.asarray(function(x, out=out))

        registered = compute_legacy
    else:

        @kernel(op_type, since=since, inplace=inplace, grade=grade, exact=exact)
        @mark
        def compute(x: Array, *, out: Array | None = None) -> Array:
            return np.asarray(function(x, out=out))

        registered = compute
    if isinstance(function, np.ufunc):
        UFUNCS[registered] = function
    if recipe:
        RECIPES[registered] = recipe


def register_binary(
    op_type: str,
    function: Binary,
    *,
    since: int = 1,
    inplace: Sequence[int] = (0, 1),
    grade: Grade = "reference",
    exact: bool = False,
    in_single: bool = False,
) -> None:
    """Register `function` for versions of `op_type` that broadcast as NumPy does.

    `in_single` as for `computes_in_single`.
    """
    if in_single:

        @kernel(op_type, since=since, inplace=inplace, grade=grade, exact=exact)
        @computes_in_single
        def compute_half(a: Array, b: Array, *, out: Array | None = None) -> Array:
            if a.dtype == HALF and max(a.size, b.size) >= LEAST_SIZE:
                return of_halves(function, a, b, out)
            return np.asarray(function(a, b, out=out))

        compute = compute_half
    else:

        @kernel(op_type, since=since, inplace=inplace, grade=grade, exact=exact)
        def compute_any(a: Array, b: Array, *, out: Array | None = None) -> Array:
            return np.asarray(function(a, b, out=out))

        compute = compute_any

    if isinstance(function, np.ufunc):
        UFUNCS[compute] = function


def of_halves(function: Binary, a: Array, b: Array, out: Array | None = None) -> Array:
    """A function of float16 by way of float32: 2 ns an element where NumPy's loop takes 6."""
    return round_to_half(np.asarray(function(widen_half(a), widen_half(b))), out)


def _unmarked(function: Unary) -> Unary:
    return function


def register_binary_before_7(
    op_type: str,
    function: Binary,
    *,
    consumed_inputs: bool = False,
    inplace: Sequence[int] = (0,),
    grade: Grade = "reference",
    exact: bool = False,
) -> None:
    """Register `function` for versions 1..6 of `op_type`, which have `broadcast` and `axis`."""
    if consumed_inputs:

        @kernel(op_type, until=7, inplace=inplace, grade=grade, exact=exact)
        def compute_legacy(
            a: Array,
            b: Array,
            *,
            axis: int | None = None,
            broadcast: int = 0,
            consumed_inputs: Sequence[int] | None = None,
            out: Array | None = None,
        ) -> Array:
            return np.asarray(function(a, aligned(a, b, axis, broadcast), out=out))

    else:

        @kernel(op_type, until=7, inplace=inplace, grade=grade, exact=exact)
        def compute(
            a: Array,
            b: Array,
            *,
            axis: int | None = None,
            broadcast: int = 0,
            out: Array | None = None,
        ) -> Array:
            return np.asarray(function(a, aligned(a, b, axis, broadcast), out=out))


def aligned(a: Array, b: Array, axis: int | None, broadcast: int) -> Array:
    """`b` reshaped so that NumPy broadcasts it to `a` as opset 1 and 6 define.

    The shape of `b` equals a run of dimensions of `a` that starts at `axis`, or ends with the
    last dimension when `axis` is absent or negative. ValueError when the shapes differ and
    `broadcast` is not set.
    """
    if a.shape == b.shape:
        return b
    if not broadcast:
        raise ValueError(f"shapes {a.shape} and {b.shape} differ and broadcast is 0")
    if axis is None or axis < 0:
        return b
    return b.reshape(b.shape + (1,) * (a.ndim - axis - b.ndim))


def is_native(dtype: np.dtype[Any]) -> bool:
    """Whether NumPy itself computes the dtype: ml_dtypes lacks loops for some ufuncs.

    A copy of a dtype, as arrays have that were pickled or read in a given byte order, is as good as
    the original, although `isbuiltin` is 0 then; 2 are those that others have registered.
    """
    return dtype.isbuiltin != 2


@functools.cache
def constant(value: float, dtype: np.dtype[Any]) -> Array:
    """A read-only rank 0 array: ufuncs take it three times faster than a Python number."""
    array = np.array(value).astype(dtype)
    array.flags.writeable = False
    return array


@functools.cache
def bounds(dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """The least and the greatest value of a numeric dtype; infinities for floats."""
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.array(info.min, dtype), np.array(info.max, dtype)
    return constant(-np.inf, dtype), constant(np.inf, dtype)


def clip(x: Array, low: Array, high: Array, out: Array | None = None) -> Any:
    """`Min(high, Max(low, x))`; a NaN of any of the three gives NaN.

    The clip ufunc is vectorised where `maximum` with a scalar is not: 3-4 times faster.
    """
    if is_native(x.dtype):
        return CLIP(x, low, high, out=out)
    return np.minimum(np.maximum(x, low, out=out), high, out=out)


def positive_part(x: Array, out: Array | None = None) -> Any:
    """`Max(x, 0)`."""
    return clip(x, constant(0, x.dtype), bounds(x.dtype)[1], out)


def mask_like(x: Array, scratch: Array | None) -> npt.NDArray[np.bool_]:
    """A mask of the shape of `x`, in memory for an array like it where there is some."""
    if scratch is None:
        return np.empty(x.shape, np.bool_)
    return np.ndarray(x.shape, np.bool_, scratch)


def destination(x: Array, out: Array | None) -> Array:
    """`out`, or a new array like `x`: kernels of several steps work in it."""
    return np.empty_like(x) if out is None else out
