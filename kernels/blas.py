"""Hold BLAS to one thread while runs are in flight.

Parallelism is Foldline's own (`foldline.kernels.parallel`); BLAS threads under it would
oversubscribe the machine and make results depend on their number.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any, Protocol, cast

import threadpoolctl


class _Library(Protocol):
    """What of threadpoolctl's library controllers is used here."""

    def get_num_threads(self) -> int | None: ...
    def set_num_threads(self, num_threads: int) -> None: ...


@lru_cache(maxsize=1)
def libraries() -> tuple[_Library, ...]:
    """The BLAS libraries of the process whose threads can be set; found once."""
    controller = cast(Any, threadpoolctl.ThreadpoolController()).select(user_api="blas")
    found: list[_Library] = controller.lib_controllers
    return tuple(library for library in found if library.get_num_threads() is not None)


class _OneThread:
    """A context that counts who is inside; a class, as it is entered at every run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before: list[int | None] = []

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._before = [library.get_num_threads() for library in libraries()]
                for library, count in zip(libraries(), self._before, strict=True):
                    if count != 1:
                        _set(library, 1)
            self._inside += 1

    def __exit__(self, *failure: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                for library, count in zip(libraries(), self._before, strict=True):
                    if count is not None and count != 1:
                        _set(library, count)


_one_thread = _OneThread()


def one_blas_thread() -> AbstractContextManager[None]:
    """Keep BLAS at one thread inside the block, for the whole process.

    The first of nested or concurrent blocks to enter sets the limit, the last to leave puts back
    what was there, also when the block raises. An OpenBLAS built on OpenMP counts its threads for
    each caller, so there the limit holds for the thread that enters first.
    """
    return _one_thread


def _set(library: _Library, count: int) -> None:
    """Set the number whichever thread asks.

    threadpoolctl 3.8 lets only the thread that was first set the threads of an OpenBLAS, and
    ignores others in silence; here any thread may be the first to enter or the last to leave.
    """
    release: Callable[..., None] = getattr(library, "clear_controlling_thread", _nothing)
    release(force=True)
    library.set_num_threads(count)
    release(force=True)


def _nothing(*, force: bool) -> None:
    """Versions of threadpoolctl before 3.8 have nothing to release."""
