"""Digests of what exact functions give on a fixed grid: `python -m tests.kernels.exact_digests`.

The grid goes through all bit patterns, so it holds subnormal, huge and special numbers.
"""

import hashlib
import json

import numpy as np

from foldline.kernels import exact_functions
from foldline.kernels.exact_steps import Elementwise

NAMES = sorted(name for name in vars(exact_functions) if name.isupper())


def grid(dtype):
    """20,000 numbers spread over all bit patterns, and 20,000 from -8 to 8."""
    unsigned = np.dtype(f"u{np.dtype(dtype).itemsize}")
    step = (1 << 8 * unsigned.itemsize) // 20_011
    patterns = (np.arange(20_011, dtype=np.uint64) * np.uint64(step)).astype(unsigned)
    near = ((np.arange(20_001) - 10_000) * 0.0008).astype(dtype)
    return np.concatenate([patterns.view(dtype), near])


def digest(name, dtype):
    function: Elementwise = getattr(exact_functions, name)
    x = grid(dtype)
    arguments = (x, x[::-1].copy()) if name == "POWER" else (x,)
    with np.errstate(all="ignore"):
        return hashlib.sha256(function(*arguments).tobytes()).hexdigest()[:16]


def digests():
    return {name: [digest(name, dtype) for dtype in (np.float32, np.float64)] for name in NAMES}


if __name__ == "__main__":
    print(json.dumps(digests()))
