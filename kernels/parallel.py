"""Fixed tiles over an own thread pool: results never depend on the number of threads.

A kernel splits its work into tiles chosen from shapes and dtypes alone and calls
`parallel_for(count, body)`. Who runs the model decides with `use_threads` how many threads serve
the tiles; with one thread they run in order in the calling thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from functools import partial
from time import perf_counter

import numpy as np

_current = threading.local()
_pools: dict[int, ThreadPoolExecutor] = {}
_pools_lock = threading.Lock()


class use_threads:
    """Let `parallel_for` calls made by this thread, inside the block, use `count` threads."""

    __slots__ = ("_count", "_previous")

    def __init__(self, count: int):
        self._count = count
        self._previous = 1

    def __enter__(self) -> None:
        self._previous = getattr(_current, "count", 1)
        _current.count = self._count

    def __exit__(self, *failure: object) -> None:
        _current.count = self._previous


class watch_tiles:
    """Tell `watch` when each tile began and ended that this thread has run inside the block."""

    __slots__ = ("_previous", "_watch")

    def __init__(self, watch: Callable[[float, float], None]):
        self._watch = watch
        self._previous: Callable[[float, float], None] | None = None

    def __enter__(self) -> None:
        self._previous = getattr(_current, "watch", None)
        _current.watch = self._watch

    def __exit__(self, *failure: object) -> None:
        _current.watch = self._previous


def parallel_for(tiles: int, body: Callable[[int], None]) -> None:
    """Run `body(0) … body(tiles - 1)`; tiles must write to disjoint memory.

    The first exception of the lowest tile is raised after all tiles have ended.
    """
    watch = getattr(_current, "watch", None)
    if watch is not None and tiles > 1:
        body = partial(_timed, watch, body)
    threads = min(getattr(_current, "count", 1), tiles)
    if threads <= 1:
        for tile in range(tiles):
            body(tile)
        return
    pool = _pool(threads - 1)
    queue = iter(range(tiles))
    futures = [pool.submit(_every, body, queue) for _ in range(1, threads)]
    try:
        _every(body, queue)
    finally:
        wait(futures)
    for future in futures:
        future.result()


def _timed(watch: Callable[[float, float], None], body: Callable[[int], None], tile: int) -> None:
    start = perf_counter()
    body(tile)
    watch(start, perf_counter())


def _every(body: Callable[[int], None], queue: Iterator[int]) -> None:
    """Run tiles that no other thread has taken: taking one is a single step of the interpreter."""
    for tile in queue:
        body(tile)


def _pool(workers: int) -> Executor:
    with _pools_lock:
        if workers not in _pools:
            # NumPy's error state is a context variable, which workers do not inherit.
            quiet = partial(np.seterr, all="ignore")
            _pools[workers] = ThreadPoolExecutor(workers, "foldline-tile", initializer=quiet)
        return _pools[workers]
