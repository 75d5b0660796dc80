"""What a caller is given: arrays that are the caller's alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any, cast

import numpy as np

from foldline.lowering.steps import Frame, is_array

_SCALARS = frozenset((float, int, str))
"""What the elements of a map mostly are."""
_COPY, _VALUES = dict[Any, Any].copy, dict[Any, Any].values


def handing_out(
    slots: Sequence[int], owned: Sequence[bool], wanted: Sequence[int] | None = None
) -> Callable[[Frame], list[Any]]:
    """What takes the outputs at positions `wanted`, by default all, from a frame that has run.

    They are in that order, writable and free of aliases. `owned`: which outputs are fresh arrays
    that nothing else holds; what is asked for again is copied.
    """
    positions = range(len(slots)) if wanted is None else wanted
    leaving = [
        (slots[position], owned[position] and position not in positions[:turn])
        for turn, position in enumerate(positions)
    ]
    return partial(_handed_out, leaving)


def _handed_out(leaving: Sequence[tuple[int, bool]], frame: Frame) -> list[Any]:
    results: list[Any] = []
    for slot, is_alone in leaving:
        value = frame[slot]
        results.append(value if is_alone and _is_whole(value) else copied(value))
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
    """Whether what is fresh can leave as it is.

    So can an array that is not read-only, strided, or part of a larger one, and a sequence of
    maps: no kernel has maps to share, but for views.
    """
    if type(value) is list:
        elements = cast("list[Any]", value)
        return len(elements) > 0 and type(elements[0]) is dict
    if type(value) is not np.ndarray or not value.flags.carray:
        return False
    base: Any = value.base
    return base is None or (is_array(base) and base.nbytes == value.nbytes)
