"""Kernels that take weights in a half type: each run widens them to float32 first.

The bits are those of the same kernel on weights that were rounded beforehand. What a kernel makes
of constant weights when a plan is made, packed or transformed copies, would undo the saving, so it
is not told that they are constant.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from foldline.kernels.registry import Array, Kernel, Operand, Step
from foldline.kernels.windows import aligned_size

_WIDE = np.dtype(np.float32)


def widening_inputs(kernel: Kernel, positions: Collection[int]) -> Kernel:
    """A maker that does what `kernel` does, with the inputs at `positions` widened to float32."""

    def make(*operands: Operand | None, **keywords: Any) -> Step:
        wide = [
            x if x is None or place not in positions else Operand(x.shape, _WIDE)
            for place, x in enumerate(operands)
        ]
        step = _made(kernel, wide, keywords)
        return _widening(step, {place: wide[place] for place in positions if place < len(wide)})

    return replace(kernel, function=make, is_maker=True, in_single=None)


def _made(kernel: Kernel, operands: list[Operand | None], keywords: dict[str, Any]) -> Step:
    if not kernel.is_maker:
        return Step(partial(kernel.function, **keywords))
    made = kernel.function(*operands, **keywords)
    return made if isinstance(made, Step) else Step(made)


def _widening(step: Step, widened: dict[int, Operand | None]) -> Step:
    shapes = {place: x.shape for place, x in widened.items() if x is not None}
    sizes = {place: aligned_size(shape, _WIDE.itemsize) for place, shape in shapes.items()}
    own = sum(sizes.values())

    def run(*arrays: Array | None, scratch: Array | None = None, **keywords: Any) -> Any:
        inputs, start = list(arrays), 0
        for place, shape in shapes.items():
            source = inputs[place]
            assert scratch is not None
            assert source is not None
            memory = scratch[start : start + math.prod(shape) * _WIDE.itemsize]
            inputs[place] = wide = memory.view(_WIDE).reshape(shape)
            np.copyto(wide, source)
            start += sizes[place]
        if step.scratch_bytes:
            assert scratch is not None
            keywords["scratch"] = scratch[own:]
        return step.run(*inputs, **keywords)

    return Step(run, own + step.scratch_bytes, step.channels_last)
