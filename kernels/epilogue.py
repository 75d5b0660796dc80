"""What is done to a tile of a product while it is in cache: a bias is added, an activation applied.

A product calls `apply(tile, row0, col0, rows, cols)` once for each of its tiles, when that is
finished, on the thread that computed it and in no set order. It may write to the tile only, which
is elements `[row0:row0 + rows, col0:col0 + cols]` of the result.

The activation is the kernel of its operator, and NumPy's loops give an element the same bits
wherever it stands, so a tile at a time is the same as the whole array at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from foldline.kernels.half import HALF, SINGLE, onto_halves, round_to_half, widen_half
from foldline.kernels.registry import GRADES, LATEST, Array, Kernel, find_kernel
from foldline.kernels.thread_memory import own_buffer
from foldline.kernels.ufuncs import (
    ATTRIBUTE_RECIPES,
    GATES,
    NATIVE_FLOATS,
    RECIPES,
    Steps,
    steps_of,
)

Apply: TypeAlias = Callable[[Array, int, int, int, int], None]
"""(tile, row0, col0, rows, cols)"""

PARAMETERS: dict[str, tuple[str, ...]] = {
    "Clip": ("min", "max"),
    "Gelu": ("approximate",),
    "HardSigmoid": ("alpha", "beta"),
    "HardSwish": (),
    "LeakyRelu": ("alpha",),
    "Relu": (),
    "Sigmoid": (),
    "Swish": ("alpha",),
    "Tanh": (),
}
"""What may be applied to the result of a product: operators of ONNX, and what the numbers given
with them mean. `approximate` of Gelu is 0 for none, 1 for tanh."""

CHUNK_BYTES = 256 << 10
"""So much of a tile goes through many steps at a time, to stay in cache; less is not worth the
calls."""


@dataclass(frozen=True)
class Activation:
    """An operator with its attributes, as a function of arrays of one dtype."""

    run: Callable[..., Array]
    """(x, out=) -> result"""
    inplace: bool
    """Whether `out` may be `x`."""


@dataclass(frozen=True)
class Epilogue:
    """A bias of one element a column, or one for all, and an activation."""

    bias: Array | None
    activation: Activation | None
    of_halves: bool = False
    """For float16 held in float32: what an operator hands to the next is rounded."""

    @property
    def apply(self) -> Apply | None:
        """What a product calls; None if there is nothing to do."""
        bias = None if self.bias is None else self.bias.reshape(-1)
        activation = self.activation
        if self.of_halves and (bias is not None or activation is not None):
            return partial(_one_by_one, bias, activation)
        if activation is None:
            return None if bias is None else partial(_add, bias)
        return partial(_activate, bias, activation)


def activation_of(name: str, params: Sequence[float], dtype: np.dtype[np.generic]) -> Activation:
    """The activation of fast mode. ValueError for a name that is not among PARAMETERS."""
    kernel, values, keywords = _resolved(name, tuple(params), dtype, "fast")
    run = partial(_with_values, kernel.function, values) if values else kernel.function
    return Activation(partial(run, **keywords), 0 in kernel.inplace)


def activation_of_halves(name: str, params: Sequence[float]) -> Activation:
    """The same for float16 that is held in float32; the result is not rounded yet."""
    kernel, values, keywords = _resolved(name, tuple(params), SINGLE, "fast")
    if kernel.in_single is None:
        return Activation(partial(_through_half, activation_of(name, params, HALF).run), True)
    run = partial(_with_values, kernel.in_single, values) if values else kernel.in_single
    return Activation(partial(run, **keywords), 0 in kernel.inplace)


def _through_half(function: Callable[..., Array], x: Array, *, out: Array) -> Array:
    half = round_to_half(x)
    return widen_half(function(half, out=np.empty_like(half)), out)


def in_place(
    name: str, params: Sequence[float], dtype: np.dtype[np.generic]
) -> Callable[[Array], object] | None:
    """The same for an array it overwrites, straight to the ufuncs; None if it is more than those.

    A part of a small layer takes as long as the calls around its ufuncs. Of what is not contiguous
    or larger than KEPT_BYTES, only some at a time should be given.
    """
    kernel, values, keywords = _resolved(name, tuple(params), dtype, "fast")
    if dtype not in NATIVE_FLOATS or values:
        return None
    function = kernel.function
    if function in GATES:
        recipe, gate = GATES[function]
        return partial(_gated, steps_of(recipe, dtype), gate)
    if function in ATTRIBUTE_RECIPES:
        return partial(_stepped, steps_of(ATTRIBUTE_RECIPES[function](**keywords), dtype))
    if function in RECIPES and not keywords:
        return partial(_stepped, steps_of(RECIPES[function], dtype))
    return None


def _stepped(steps: Steps, x: Array) -> None:
    for ufunc, numbers in steps:
        ufunc(x, *numbers, x)


def _gated(steps: Steps, gate: np.ufunc, x: Array) -> None:
    y = own_buffer(x.shape, x.dtype)
    (first, numbers), *others = steps
    first(x, *numbers, y)
    for ufunc, numbers in others:
        ufunc(y, *numbers, y)
    gate(x, y, x)


def _with_values(
    function: Callable[..., Array], values: tuple[Array, ...], x: Array, *, out: Array
) -> Array:
    """An operator that takes its parameters as inputs."""
    return function(x, *values, out=out)


def exactly_activated(x: Array, name: str, params: Sequence[float]) -> Array:
    """`x` after the activation of exact mode; `x` itself where there is no name."""
    if not name:
        return x
    kernel, values, keywords = _resolved(name, tuple(params), x.dtype, "exact")
    return kernel.function(x, *values, **keywords)


@functools.lru_cache(maxsize=256)
def _resolved(
    name: str, params: tuple[float, ...], dtype: np.dtype[np.generic], mode: str
) -> tuple[Kernel, tuple[Array, ...], dict[str, float | str]]:
    """The kernel of an operator, its inputs beside the array, and its attributes."""
    if name not in PARAMETERS:
        raise ValueError(f"unknown activation {name!r}, expected one of {sorted(PARAMETERS)}")
    kernel = find_kernel("", name, LATEST - 1, GRADES[mode])
    if kernel is None:
        raise ValueError(f"there is no {mode} kernel of {name}")
    if name == "Clip":
        return kernel, tuple(np.array(value, dtype) for value in params), {}
    if name == "Gelu":
        return kernel, (), {"approximate": "tanh" if params and params[0] else "none"}
    return kernel, (), dict(zip(PARAMETERS[name], params, strict=True))


def scaled(scale: Array, bias: Array | None = None, bias_first: int = 0) -> Apply:
    """What multiplies by a scale and adds a bias: one number, or one for each column."""
    scale = scale.reshape(-1)
    bias = None if bias is None else bias.reshape(-1)

    def apply(tile: Array, row0: int, col0: int, rows: int, cols: int) -> None:
        np.multiply(tile, scale if scale.size == 1 else scale[col0 : col0 + cols], out=tile)
        if bias is not None:
            part = bias if bias.size == 1 else bias[col0 : col0 + cols]
            terms = (part, tile) if bias_first else (tile, part)
            np.add(*terms, out=tile)

    return apply


def _add(bias: Array, tile: Array, row0: int, col0: int, rows: int, cols: int) -> None:
    np.add(tile, _columns(bias, col0, cols), out=tile)


def _one_by_one(
    bias: Array | None,
    activation: Activation | None,
    tile: Array,
    row0: int,
    col0: int,
    rows: int,
    cols: int,
) -> None:
    onto_halves(tile, tile)
    if bias is not None:
        np.add(tile, _columns(bias, col0, cols), out=tile)
    if bias is not None and activation is not None:
        onto_halves(tile, tile)
    if activation is not None:
        _activate(None, activation, tile, row0, col0, rows, cols)


def _activate(
    bias: Array | None,
    activation: Activation,
    tile: Array,
    row0: int,
    col0: int,
    rows: int,
    cols: int,
) -> None:
    part = None if bias is None else _columns(bias, col0, cols)
    if activation.inplace:
        if part is not None:
            np.add(tile, part, out=tile)
        activation.run(tile, out=tile)
    elif tile.nbytes <= CHUNK_BYTES:
        _through_memory(tile, part, activation)
    else:
        step = max(1, CHUNK_BYTES // (cols * tile.itemsize))
        for top in range(0, rows, step):
            _through_memory(tile[top : top + step], part, activation)


def _through_memory(tile: Array, bias: Array | None, activation: Activation) -> None:
    """An activation that reads its input to the end: that has to be elsewhere."""
    before = np.empty(tile.shape, tile.dtype)
    if bias is None:
        np.copyto(before, tile)
    else:
        np.add(tile, bias, out=before)
    if tile.flags.c_contiguous:
        activation.run(before, out=tile)
    else:
        # Many steps in short rows cost more than one copy.
        np.copyto(tile, activation.run(before, out=np.empty(tile.shape, tile.dtype)))


def _columns(bias: Array, col0: int, cols: int) -> Array:
    return bias if bias.size in (1, cols) else bias[col0 : col0 + cols]
