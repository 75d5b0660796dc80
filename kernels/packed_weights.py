"""Copies of constant weights in the order that a kernel reads them in, shared by all plans.

`packed` is for an array, and holds a copy as long as somebody uses it; `kept_with` is for memory,
of which each routine may make a view of its own, and holds a form as long as the memory lives.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, TypeVar

import numpy as np

from foldline.kernels.registry import Array

Form = TypeVar("Form")
_Key = tuple[int, str]

_lock = threading.Lock()
_copies: weakref.WeakValueDictionary[_Key, Array] = weakref.WeakValueDictionary()
_sources: dict[_Key, weakref.ref[Array]] = {}
_kept: dict[Hashable, tuple[weakref.ref[Array], Any]] = {}


def packed(weights: Array, purpose: str, pack: Callable[[Array], Array]) -> Array:
    """`pack(weights)`, or what an earlier call for the same array and purpose gave if it lives."""
    key = (id(weights), purpose)
    with _lock:
        copy, source = _copies.get(key), _sources.get(key)
        if copy is not None and source is not None and source() is weights:
            return copy
        copy = pack(weights)
        copy.flags.writeable = False
        _copies[key] = copy
        _sources[key] = weakref.ref(weights, lambda _: _sources.pop(key, None))
        return copy


def kept_with(array: Array, purpose: Hashable, make: Callable[[], Form]) -> Form:
    """`make()`, or what it gave before for the same elements in the same memory, while that lives.

    What `make` gives may not keep that memory alive.
    """
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    key = (array.ctypes.data, array.shape, array.strides, array.dtype, purpose)
    found = _kept.get(key)
    if found is not None and found[0]() is owner:
        return found[1]
    form = make()
    # `pop` is given the dead reference for a default. It is bound here, for at exit the names of
    # this module may be gone before the last array is.
    _kept[key] = weakref.ref(owner, partial(_kept.pop, key)), form
    return form
