"""Make inputs for a model out of nothing but its interface: random ones and hard ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from foldline.support.dtypes import BY_NAME
from foldline.support.errors import InvalidArgumentError

Array = npt.NDArray[Any]

EDGES: dict[str, tuple[float, ...]] = {
    "random": (),
    "zeros": (0.0,),
    "nan": (np.nan, 1.0, -1.0),
    "inf": (np.inf, 1.0, -np.inf, -1.0),
    "negative zero": (-0.0, 0.0, 1.0, -1.0),
}
"""Kinds of input: the values that floats take in turn (none: normally distributed)."""

INDEX_LIMIT = 4
"""Wide integers stay below: they are mostly indices, and most dimensions are larger."""


SIZES = (2, 8, 32, 64, 128, 512)
"""Sizes of unknown dimensions to try: some networks halve images many times, or cut sounds."""
MOST_ELEMENTS = 1 << 22
"""Larger inputs are not tried."""


class Argument(Protocol):
    """An input of a session, as `get_inputs()` gives it."""

    @property
    def name(self) -> str:
        """Name in the model."""
        ...

    @property
    def type(self) -> str:
        """Type as onnxruntime spells it: `tensor(float)`."""
        ...

    @property
    def shape(self) -> Sequence[int | str | None] | None:
        """Dimensions; a name or None where unknown."""
        ...


def sample_feed(
    arguments: Iterable[Argument], kind: str = "random", unknown: int = 2, seed: int = 0
) -> dict[str, Array]:
    """One array for each input; unknown dimensions become `unknown`. `kind` is a key of EDGES.

    Raises `InvalidArgumentError` naming the inputs that are not tensors.
    """
    arguments = list(arguments)
    others = [f"{a.name} is a {a.type}" for a in arguments if _element(a.type) not in BY_NAME]
    if others:
        raise InvalidArgumentError(
            f"only tensors can be made up, but {', '.join(others)}; give these inputs"
        )
    generator = np.random.default_rng(seed)
    return {
        a.name: _values(
            generator,
            BY_NAME[_element(a.type)].numpy,
            tuple(d if isinstance(d, int) else unknown for d in a.shape or ()),
            kind,
        )
        for a in arguments
    }


def fitting_size(
    arguments: Iterable[Argument], accepts: Callable[[Mapping[str, Array]], bool], seed: int = 0
) -> int:
    """The first size of unknown dimensions with which random inputs are accepted; 2 if none is."""
    arguments = list(arguments)
    if not has_unknown_dimensions(arguments):
        return SIZES[0]
    for size in SIZES:
        try:
            feed = sample_feed(arguments, unknown=size, seed=seed)
        except InvalidArgumentError:
            break
        if sum(array.size for array in feed.values()) > MOST_ELEMENTS:
            break
        if accepts(feed):
            return size
    return SIZES[0]


def has_unknown_dimensions(arguments: Iterable[Argument]) -> bool:
    """Whether any input leaves a dimension to the caller."""
    return any(not isinstance(d, int) for a in arguments for d in a.shape or ())


def _element(type_text: str) -> str:
    return type_text.removeprefix("tensor(").removesuffix(")")


def _values(
    generator: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...], kind: str
) -> Array:
    if dtype == np.object_:
        words = np.array(["", "a", "b", "ab"] if kind != "zeros" else [""], object)
        return np.asarray(words[generator.integers(0, len(words), shape)], object)
    if dtype.kind == "b":
        return np.asarray(generator.integers(0, 2, shape)).astype(np.bool_)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        low, high = (info.min, info.max + 1) if dtype.itemsize == 1 else (0, INDEX_LIMIT)
        low, high = (0, 1) if kind == "zeros" else (low, high)
        return np.asarray(generator.integers(low, high, shape, np.int64)).astype(dtype)
    values = np.asarray(generator.standard_normal(shape))
    cycle = EDGES[kind]
    if cycle:
        values = np.resize(np.array(cycle), shape)
    if dtype.kind == "c":
        return np.asarray(values + 1j * generator.standard_normal(shape)).astype(dtype)
    return values.astype(dtype)
