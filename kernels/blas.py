"""Hold BLAS to one thread while runs are in flight.

Parallelism is Foldline's own (`foldline.kernels.parallel`); BLAS threads under it would
oversubscribe the machine and make results depend on their number.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
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


_lock = threading.Lock()
_in_flight = 0
_before: list[int | None] = []


@contextmanager
def one_blas_thread() -> Generator[None]:
    """Keep BLAS at one thread inside the block, for the whole process.

    The first of nested or concurrent blocks to enter sets the limit, the last to leave puts back
    what was there, also when the block raises.
    """
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    global _in_flight
    with _lock:
        if _in_flight == 0:
            _before[:] = [library.get_num_threads() for library in libraries()]
            for library in libraries():
                _set(library, 1)
        _in_flight += 1


def _leave() -> None:
    global _in_flight
    with _lock:
        _in_flight -= 1
        if _in_flight == 0:
            for library, count in zip(libraries(), _before, strict=True):
                if count is not None:
                    _set(library, count)


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
