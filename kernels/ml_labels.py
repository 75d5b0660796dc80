"""Operators of ai.onnx.ml that translate categories: LabelEncoder, CategoryMapper, OneHotEncoder.

All look up keys: of a key that occurs twice the last counts, NaN is equal to NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from foldline.kernels.ml_scores import ML
from foldline.kernels.registry import Array, Operand, maker

Positions = npt.NDArray[np.intp]


@maker("LabelEncoder", domain=ML, until=2, grade="reference", exact=True)
def label_encoder_1(
    x: Operand,
    *,
    classes_strings: Sequence[str] | None = None,
    default_int64: int = -1,
    default_string: str = "_Unused",
) -> Callable[..., Array]:
    """LabelEncoder 1: strings to their positions in `classes_strings`, int64 to the strings."""
    strings = np.array(classes_strings or (), object)
    places = np.arange(len(strings), dtype=np.int64)
    if x.dtype == np.object_:
        return _encoder(strings, places, default_int64)
    return _encoder(places, strings, default_string)


@maker("LabelEncoder", domain=ML, since=2, until=4, grade="reference", exact=True)
def label_encoder_2(
    x: Operand,
    *,
    default_float: float = -0.0,
    default_int64: int = -1,
    default_string: str = "_Unused",
    keys_floats: Sequence[float] | None = None,
    keys_int64s: Sequence[int] | None = None,
    keys_strings: Sequence[str] | None = None,
    values_floats: Sequence[float] | None = None,
    values_int64s: Sequence[int] | None = None,
    values_strings: Sequence[str] | None = None,
) -> Callable[..., Array]:
    """LabelEncoder 2: as LabelEncoder 4, without tensors."""
    keys = _one_of(keys_floats, keys_int64s, keys_strings)
    values = _one_of(values_floats, values_int64s, values_strings)
    defaults = {"f": default_float, "i": default_int64, "O": default_string}
    return _encoder(keys, values, defaults[values.dtype.kind])


@maker("LabelEncoder", domain=ML, since=4, grade="reference", exact=True)
def label_encoder_4(
    x: Operand,
    *,
    default_float: float = -0.0,
    default_int64: int = -1,
    default_string: str = "_Unused",
    default_tensor: Array | None = None,
    keys_floats: Sequence[float] | None = None,
    keys_int64s: Sequence[int] | None = None,
    keys_strings: Sequence[str] | None = None,
    keys_tensor: Array | None = None,
    values_floats: Sequence[float] | None = None,
    values_int64s: Sequence[int] | None = None,
    values_strings: Sequence[str] | None = None,
    values_tensor: Array | None = None,
) -> Callable[..., Array]:
    """LabelEncoder 4: the value whose key is the element of X, else the default; shape of X.

    `default_tensor` goes before the default of the values' kind. ValueError unless there is one
    list of keys and one of values, as long as each other.
    """
    keys = _one_of(keys_floats, keys_int64s, keys_strings, keys_tensor)
    values = _one_of(values_floats, values_int64s, values_strings, values_tensor)
    defaults = {"f": default_float, "i": default_int64, "O": default_string}
    default = defaults[values.dtype.kind] if default_tensor is None else default_tensor.item()
    return _encoder(keys, values, default)


@maker("CategoryMapper", domain=ML, grade="reference", exact=True)
def category_mapper(
    x: Operand,
    *,
    cats_int64s: Sequence[int] | None = None,
    cats_strings: Sequence[str] | None = None,
    default_int64: int = -1,
    default_string: str = "_Unused",
) -> Callable[..., Array]:
    """CategoryMapper 1: strings to int64 or back, by two lists of equal length."""
    numbers = np.array(cats_int64s or (), np.int64)
    strings = np.array(cats_strings or (), object)
    if x.dtype == np.object_:
        return _encoder(strings, numbers, default_int64)
    return _encoder(numbers, strings, default_string)


@maker("OneHotEncoder", domain=ML, grade="reference", exact=True)
def one_hot_encoder(
    x: Operand,
    *,
    cats_int64s: Sequence[int] | None = None,
    cats_strings: Sequence[str] | None = None,
    zeros: int = 1,
) -> Callable[..., Array]:
    """OneHotEncoder 1: float32 with a new last axis that is 1 at the place of the category.

    Numbers are cut to int64 first. An unknown category is all zeros, or ValueError if `zeros` is 0.
    """
    keys = _one_of(None, cats_int64s, cats_strings)
    find = _finder(keys)

    def run(x: Array) -> Array:
        place = find(x if x.dtype == np.object_ else x.astype(np.int64))
        if not zeros and (place < 0).any():
            raise ValueError(f"OneHotEncoder: {x[place < 0].flat[0]!r} is no known category")
        return np.equal(place[..., np.newaxis], np.arange(len(keys))).astype(np.float32)

    return run


def _one_of(
    floats: Sequence[float] | None,
    int64s: Sequence[int] | None,
    strings: Sequence[str] | None,
    tensor: Array | None = None,
) -> Array:
    given = [
        np.array(values, dtype).reshape(-1)
        for values, dtype in (
            (floats, np.float32),
            (int64s, np.int64),
            (strings, object),
            (tensor, None if tensor is None else tensor.dtype),
        )
        if values is not None
    ]
    if len(given) != 1:
        raise ValueError(f"{len(given)} lists of keys, values or categories, expected one of each")
    return given[0]


def _encoder(keys: Array, values: Array, default: Any) -> Callable[..., Array]:
    if len(keys) != len(values):
        raise ValueError(f"there are {len(keys)} keys but {len(values)} values")
    find = _finder(keys)
    # Not found is position -1: the default, put at the end.
    results = np.append(values, np.array([default], values.dtype))

    def run(x: Array) -> Array:
        return results[find(x).reshape(-1)].reshape(x.shape)

    return run


def _finder(keys: Array) -> Callable[[Array], Positions]:
    """For each element the position of the last equal key, -1 if there is none."""
    if keys.dtype == np.object_:
        table = {key: place for place, key in enumerate(keys.tolist())}
        return lambda x: np.array([table.get(key, -1) for key in x.flat], np.intp).reshape(x.shape)
    ordered, from_end = np.unique(keys[::-1], return_index=True)
    place = len(keys) - 1 - from_end

    def find(x: Array) -> Positions:
        if not len(keys):
            return np.full(x.shape, -1, np.intp)
        at = np.minimum(np.searchsorted(ordered, x), len(ordered) - 1)
        found = (ordered[at] == x) | (np.isnan(ordered[at]) & np.isnan(x))
        return np.where(found, place[at], -1)

    return find
