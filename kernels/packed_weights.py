"""Copies of constant weights in the order that a kernel reads them in, shared by all plans."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable

from foldline.kernels.registry import Array

_Key = tuple[int, str]

_lock = threading.Lock()
_copies: weakref.WeakValueDictionary[_Key, Array] = weakref.WeakValueDictionary()
_sources: dict[_Key, weakref.ref[Array]] = {}


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
