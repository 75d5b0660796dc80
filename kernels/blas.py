"""Hold BLAS to one thread while runs are in flight.

Parallelism is Foldline's own (`foldline.kernels.parallel`); BLAS threads under it would
oversubscribe the machine and make results depend on their number.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from typing import Any, Protocol, cast

import threadpoolctl


class _Library(Protocol):
    """What of threadpoolctl's library controllers is used here."""

    filepath: str

    def get_num_threads(self) -> int | None: ...
    def set_num_threads(self, num_threads: int) -> None: ...


@dataclass(frozen=True)
class _Limit:
    """How the number of threads of one library is read and set."""

    get: Callable[[], int | None]
    set: Callable[[int], Any]


@lru_cache(maxsize=1)
def _controllers() -> list[_Library]:
    controller = cast(Any, threadpoolctl.ThreadpoolController()).select(user_api="blas")
    return controller.lib_controllers


@lru_cache(maxsize=1)
def libraries() -> tuple[_Limit, ...]:
    """The BLAS libraries of the process whose threads can be set; found once."""
    found = _controllers()
    return tuple(_limit(library) for library in found if library.get_num_threads() is not None)


def architectures() -> frozenset[str]:
    """For which processors the BLAS libraries of the process work, in OpenBLAS's names."""
    return frozenset(getattr(library, "architecture", "") for library in _controllers())


_lock = threading.Lock()
# Called by name, the lock takes half the time that it does as a context.
_acquire, _release = _lock.acquire, _lock.release
_inside = 0
_before: list[tuple[_Limit, int]] = []


def limit_blas() -> None:
    """Keep BLAS at one thread until `unlimit_blas`, which must be called as often.

    The first of nested or concurrent calls sets the limit, the last `unlimit_blas` puts back what
    was there. Functions, as they serve every run: a context takes half as long again.
    """
    global _inside
    _acquire()
    try:
        if not _inside:
            for library in libraries():
                count = library.get()
                if count != 1 and count is not None:
                    library.set(1)
                    _before.append((library, count))
        _inside += 1
    finally:
        _release()


def unlimit_blas() -> None:
    """Take back one `limit_blas`."""
    global _inside
    _acquire()
    try:
        _inside -= 1
        if not _inside:
            while _before:
                library, count = _before.pop()
                library.set(count)
    finally:
        _release()


@contextmanager
def one_blas_thread() -> Generator[None]:
    """Keep BLAS at one thread inside the block, for the whole process.

    The first of nested or concurrent blocks to enter sets the limit, the last to leave puts back
    what was there, also when the block raises. An OpenBLAS built on OpenMP counts its threads for
    each caller, so there the limit holds for the thread that enters first.
    """
    limit_blas()
    try:
        yield
    finally:
        unlimit_blas()


def _limit(library: _Library) -> _Limit:
    """OpenBLAS's own functions where they are all there is to it: 0.1 µs a call instead of 2.

    Neither waits for anything, so the interpreter's lock is kept meanwhile.
    """
    if getattr(library, "threading_layer", "") == "pthreads":
        symbols = ctypes.PyDLL(library.filepath)
        for prefix, suffix in product(("", "scipy_"), ("", "64_", "_64")):
            get = getattr(symbols, f"{prefix}openblas_get_num_threads{suffix}", None)
            put = getattr(symbols, f"{prefix}openblas_set_num_threads{suffix}", None)
            if get is not None and put is not None:
                put.restype = None
                return _Limit(get, put)
    return _Limit(library.get_num_threads, partial(_set, library))


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
