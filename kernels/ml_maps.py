"""Operators of ai.onnx.ml on maps, which are Python dicts: CastMap, DictVectorizer, ZipMap."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from foldline.kernels.ml_scores import ML, class_labels
from foldline.kernels.registry import Array, kernel

_CASTS: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {
    "TO_FLOAT": (float, np.float32, 0.0),
    "TO_INT64": (int, np.int64, 0),
    "TO_STRING": (lambda value: value if isinstance(value, str) else f"{value:f}", object, "0.f"),
}
"""cast_to -> how a value is converted, dtype, and what fills gaps, as in ONNX Runtime."""


@kernel("CastMap", domain=ML, exact=True)
def cast_map(
    x: Mapping[int, Any], *, cast_to: str = "TO_FLOAT", map_form: str = "DENSE", max_map: int = 1
) -> Array:
    """CastMap 1: `(1, n)`, the values of a map in the order of its keys.

    DENSE takes the values alone; SPARSE puts each at its key among `max_map` places. Numbers
    become strings of six decimals.

    Raises ValueError for a key out of range or a value that is no number.
    """
    convert, dtype, gap = _CASTS[cast_to]
    keys = sorted(x)
    if map_form == "DENSE":
        return np.array([[convert(x[key]) for key in keys]], dtype).reshape(1, len(keys))
    if keys and not 0 <= keys[0] <= keys[-1] < max_map:
        raise ValueError(f"CastMap: keys {keys[0]} to {keys[-1]} are not within 0 to {max_map - 1}")
    result = np.full((1, max_map), gap, dtype)
    for key in keys:
        result[0, key] = convert(x[key])
    return result


@kernel("DictVectorizer", domain=ML, exact=True)
def dict_vectorizer(
    x: Mapping[Any, Any],
    *,
    int64_vocabulary: Sequence[int] | None = None,
    string_vocabulary: Sequence[str] | None = None,
    output_dtypes: Sequence[np.dtype[Any] | None] | None = None,
) -> Array:
    """DictVectorizer 1: `(1, n)`, the values of the keys of a vocabulary of n; 0 or "" for none.

    Keys that are not in the vocabulary are left out. Where the dtype of the map's values is not
    known, it is taken from one of them: strings, int64, or float32.
    """
    vocabulary = class_labels(int64_vocabulary, string_vocabulary).tolist()
    known = output_dtypes[0] if output_dtypes else None
    dtype = _value_dtype(next(iter(x.values()), 0.0)) if known is None else known
    gap = "" if dtype == np.object_ else 0
    return np.array([[x.get(key, gap) for key in vocabulary]], dtype)


def _value_dtype(value: Any) -> np.dtype[Any]:
    if hasattr(value, "dtype"):
        return value.dtype
    if isinstance(value, str):
        return np.dtype(object)
    return np.dtype(np.int64 if isinstance(value, int) else np.float32)


@kernel("ZipMap", domain=ML, exact=True)
def zip_map(
    x: Array,
    *,
    classlabels_int64s: Sequence[int] | None = None,
    classlabels_strings: Sequence[str] | None = None,
) -> list[dict[Any, float]]:
    """ZipMap 1: a dict from label to number for each row of X; a vector is one row.

    Raises ValueError when there are not as many labels as columns.
    """
    labels: Sequence[Any] | None = classlabels_int64s or classlabels_strings
    if not labels or (classlabels_int64s and classlabels_strings):
        raise ValueError("exactly one of integer and string labels must be given")
    rows = x if x.ndim == 2 else np.atleast_2d(x)
    if rows.shape[1] != len(labels):
        raise ValueError(f"there are {len(labels)} labels for {rows.shape[1]} columns")
    return [*map(dict, map(zip, repeat(labels), rows.tolist()))]
