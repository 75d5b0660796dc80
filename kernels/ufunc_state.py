"""How NumPy's ufuncs go about their work while kernels run: silently, and with small buffers.

Where an array does not lie in one piece, or is broadcast, NumPy gathers rows shorter than its
buffer in that first. By default it holds 8192 elements, and adding rows of 512 then takes twice as
long as without. Larger ones are never needed: conversions are as fast.

Buffers decide in what order strided arrays are summed along several axes, so kernels have the same
ones wherever they run. Both are context variables, which threads do not inherit.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import numpy as np

BUFFER = 768
"""Elements of a buffer: rows of 256 to 768 gain most, and short rows still share a loop."""


def set_ufuncs() -> None:
    """For the rest of this context."""
    np.seterr(all="ignore")
    np.setbufsize(BUFFER)


@contextmanager
def quiet_ufuncs() -> Generator[None]:
    """Inside the block."""
    with np.errstate():
        set_ufuncs()
        yield
