"""Operators on strings: RegexFullMatch, StringConcat, StringNormalizer, StringSplit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from foldline.kernels.regex import compile_re2
from foldline.kernels.registry import Array, kernel

_CASE_CHANGES: dict[str, Callable[[str], str]] = {
    "NONE": str,
    "LOWER": str.lower,
    "UPPER": str.upper,
}


@kernel("RegexFullMatch", exact=True)
def regex_full_match(x: Array, *, pattern: str = "") -> Array:
    """RegexFullMatch 20: bool, whether `pattern`, in RE2 syntax, matches the whole string.

    Raises ValueError for a pattern that is not valid or not supported (see `kernels.regex`).
    """
    match = compile_re2(pattern).fullmatch
    return np.array([match(text) is not None for text in x.flat], np.bool_).reshape(x.shape)


@kernel("StringConcat", exact=True)
def string_concat(x: Array, y: Array) -> Array:
    """StringConcat 20: X followed by Y, element by element, broadcasting."""
    result = np.empty(np.broadcast_shapes(x.shape, y.shape), object)
    np.add(x, y, out=result)
    return result


@kernel("StringNormalizer", exact=True)
def string_normalizer(
    x: Array,
    *,
    case_change_action: str = "NONE",
    is_case_sensitive: int = 0,
    locale: str | None = None,
    stopwords: Sequence[str] | None = None,
) -> Array:
    """StringNormalizer 10: X `(C)` or `(1, C)` without the elements in `stopwords`, case changed.

    Unless `is_case_sensitive`, stop words are compared in lower case. When nothing is left, the
    result is one empty string. Case follows Unicode, `locale` has no effect.

    Raises ValueError for another shape or `case_change_action`.
    """
    if x.ndim != 1 and (x.ndim != 2 or len(x) != 1):
        raise ValueError(f"StringNormalizer: the shape is {x.shape}, expected (C,) or (1, C)")
    if case_change_action not in _CASE_CHANGES:
        raise ValueError(f"StringNormalizer: case_change_action is {case_change_action!r}")
    change = _CASE_CHANGES[case_change_action]
    compared: Callable[[str], str] = str if is_case_sensitive else str.lower
    stops = {compared(word) for word in stopwords or ()}
    kept = [change(text) for text in x.flat if compared(text) not in stops] or [""]
    return np.array(kept, object).reshape(*x.shape[:-1], len(kept))


@kernel("StringSplit", exact=True)
def string_split(
    x: Array, *, delimiter: str | None = None, maxsplit: int | None = None
) -> tuple[Array, Array]:
    """StringSplit 20: the parts of each string on a new last axis, and int64 how many there are.

    Rows are filled up with empty strings. Without a delimiter, or with an empty one, runs of white
    space separate and none is kept at the ends. At most `maxsplit` splits are made, from the left.
    """
    limit = -1 if maxsplit is None else maxsplit
    parts = [text.split(delimiter or None, limit) for text in x.flat]
    width = max(map(len, parts), default=0)
    table = np.full((x.size, width), "", object)
    for row, found in zip(table, parts, strict=True):
        row[: len(found)] = found
    counts = np.array([len(found) for found in parts], np.int64)
    return table.reshape(*x.shape, width), counts.reshape(x.shape)
