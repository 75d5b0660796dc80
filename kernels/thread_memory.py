"""Memory that a thread keeps for what is short-lived within one call."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from foldline.kernels.registry import Array

KEPT_BYTES = 256 << 10
"""What a thread keeps; of more, new memory is a small part of the cost."""

_own = threading.local()


def own_buffer(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """An array with no set contents, which the next call by this thread may hand out again."""
    if math.prod(shape) * dtype.itemsize > KEPT_BYTES:
        return np.empty(shape, dtype)
    memory: Array | None = getattr(_own, "memory", None)
    if memory is None:
        memory = _own.memory = np.empty(KEPT_BYTES, np.uint8)
    return np.ndarray(shape, dtype, memory)
