"""float16 that is held in float32: values of the one in the memory of the other.

Between steps that compute in float32 such a value is neither narrowed nor widened, only rounded
where it lies. The bits are those of the step on float16.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from foldline.kernels.half import HALF, SINGLE, like, onto_halves, round_to_half
from foldline.kernels.precision import widened, widened_operand
from foldline.kernels.registry import Array, Kernel, Operand, Step


def held_step(
    kernel: Kernel,
    operands: Sequence[Operand | None],
    keywords: Mapping[str, Any],
) -> Step:
    """What `kernel` does, on float16 inputs and an `out` of which any may be held in float32."""
    assert kernel.in_single is not None
    wide = [x and widened_operand(x) for x in operands]
    made: Any = partial(kernel.in_single, **keywords)
    if kernel.is_maker:
        made = made(*wide)
    step = made if isinstance(made, Step) else Step(made)
    constants = [x and x.value for x in wide]

    def inputs(arrays: Sequence[Array | None]) -> list[Array | None]:
        pairs = zip(arrays, constants, strict=True)
        return [y if x is None or y is not None else widened(x) for x, y in pairs]

    def run(*arrays: Array | None, out: Array | None = None, **scratch: Array) -> Array:
        if out is None:
            return round_to_half(step.run(*inputs(arrays), **scratch))
        total = like(out, SINGLE) if out.dtype == HALF else out
        step.run(*inputs(arrays), out=total, **scratch)
        return onto_halves(out, out) if total is out else round_to_half(total, out)

    def bind(*arrays: Array | None, out: Array, **scratch: Array) -> Callable[[], Any]:
        moving = [x for x, y in zip(arrays, constants, strict=True) if y is None]
        if step.bind is None or any(x is not None and x.dtype == HALF for x in (out, *moving)):
            return partial(run, *arrays, out=out, **scratch)
        compute = step.bind(*inputs(arrays), out=out, **scratch)

        def bound() -> None:
            compute()
            onto_halves(out, out)

        return bound

    return Step(run, step.scratch_bytes, step.channels_last, bind)
