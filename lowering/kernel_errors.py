"""What a kernel raises becomes KernelFailed, which says where and on what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import length_hint
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import numpy as np
import numpy.typing as npt

from foldline.support.errors import FoldlineError, KernelFailed

if TYPE_CHECKING:
    from foldline.lowering.steps import BoundCall


T = TypeVar("T")


class KernelErrors(Generic[T]):
    """Context of a loop over the steps that it gives, which may be entered again.

    The iterator knows by itself how far the loop came, so steps need not say so. Kernels may
    raise anything; errors that say where already are passed on, with the node around them.
    """

    __slots__ = ("_calls", "_frame", "_iterator", "_steps")

    def __init__(self, calls: Sequence[BoundCall], steps: Iterable[T], frame: Sequence[Any]):
        self._calls = calls
        self._steps = steps
        self._frame = frame
        self._iterator = iter(steps)

    def __enter__(self) -> Iterator[T]:
        self._iterator = iterator = iter(self._steps)
        return iterator

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None or not isinstance(error, Exception):
            return
        call = self._calls[len(self._calls) - length_hint(self._iterator) - 1]
        if isinstance(error, FoldlineError):
            error.add_note(f"in a body of {call.where}")
            return
        raise kernel_failed(call, [self._frame[slot] for slot in call.inputs], error) from error


def kernel_failed(call: BoundCall, inputs: Sequence[Any], error: Exception) -> KernelFailed:
    """The error for a kernel that raised on `inputs`."""
    given = ", ".join(map(described, inputs))
    return KernelFailed(
        f"{call.where} failed in {call.kernel.where}: {type(error).__name__}: {error}\n"
        f"  inputs: {given or 'none'}"
    )


def described(value: Any) -> str:
    """Dtype and shape of a value, for messages: `float32[2, 3]`."""
    if isinstance(value, np.ndarray):
        array = cast(npt.NDArray[Any], value)
        return f"{array.dtype.name}{list(array.shape)}"
    if isinstance(value, list):
        return f"sequence of {len(value)}"  # pyright: ignore[reportUnknownArgumentType]
    return "absent" if value is None else type(value).__name__
