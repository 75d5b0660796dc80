"""What a caller is given: arrays that are the caller's alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, cast

import numpy as np

from foldline.lowering.steps import Frame, is_array

_SCALARS = frozenset((float, int, str))
"""What the elements of a map mostly are."""
_COPY, _VALUES = dict[Any, Any].copy, dict[Any, Any].values


def handed_out(
    frame: Frame, slots: Sequence[int], owned: Sequence[bool], wanted: Sequence[int]
) -> list[Any]:
    """The outputs at positions `wanted`, in that order: writable and free of aliases."""
    given: set[int] = set()
    results: list[Any] = []
    for position in wanted:
        value = frame[slots[position]]
        alone = owned[position] and position not in given and _is_whole(value)
        results.append(value if alone else copied(value))
        given.add(position)
    return results


def copied(value: Any) -> Any:
    """A copy in C order; of a sequence or map, of its elements too."""
    if is_array(value):
        return np.array(value, order="C")
    if isinstance(value, dict):
        elements = cast("dict[Any, Any]", value)
        if _SCALARS.issuperset(map(type, elements.values())):
            return elements.copy()
        return {key: copied(element) for key, element in elements.items()}
    if isinstance(value, list):
        elements = cast("list[Any]", value)
        if _are_maps_of_scalars(elements):
            return [*map(_COPY, elements)]
        return [copied(element) for element in elements]
    if isinstance(value, np.generic):
        return np.asarray(cast(Any, value))
    return value


def _are_maps_of_scalars(elements: list[Any]) -> bool:
    """What a classifier answers, a map for each row: looked at together, in half the time."""
    if {*map(type, elements)} != {dict}:
        return False
    return _SCALARS.issuperset(map(type, chain.from_iterable(map(_VALUES, elements))))


def _is_whole(value: Any) -> bool:
    """Whether an array can leave as it is: not read-only, strided, or part of a larger one."""
    if type(value) is not np.ndarray or not value.flags.carray:
        return False
    base: Any = value.base
    return base is None or (is_array(base) and base.nbytes == value.nbytes)
