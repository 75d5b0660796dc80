"""Fixed tiles over an own thread pool: results never depend on the number of threads.

A kernel splits its work into tiles chosen from shapes and dtypes alone and calls
`parallel_for(count, body)`. Who runs the model decides with `use_threads` how many threads serve
the tiles; with one thread they run in order in the calling thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial

import numpy as np

_current = threading.local()
_pools: dict[int, ThreadPoolExecutor] = {}
_pools_lock = threading.Lock()


@contextmanager
def use_threads(count: int) -> Generator[None]:
    """Let `parallel_for` calls made by this thread, inside the block, use `count` threads."""
    previous = getattr(_current, "count", 1)
    _current.count = count
    try:
        yield
    finally:
        _current.count = previous


def parallel_for(tiles: int, body: Callable[[int], None]) -> None:
    """Run `body(0) … body(tiles - 1)`; tiles must write to disjoint memory.

    The first exception of the lowest tile is raised after all tiles have ended.
    """
    threads = min(getattr(_current, "count", 1), tiles)
    if threads <= 1:
        for tile in range(tiles):
            body(tile)
        return
    pool = _pool(threads - 1)
    futures = [pool.submit(_every, body, tiles, threads, first) for first in range(1, threads)]
    try:
        _every(body, tiles, threads, 0)
    finally:
        wait(futures)
    for future in futures:
        future.result()


def _every(body: Callable[[int], None], tiles: int, step: int, first: int) -> None:
    for tile in range(first, tiles, step):
        body(tile)


def _pool(workers: int) -> Executor:
    with _pools_lock:
        if workers not in _pools:
            # NumPy's error state is a context variable, which workers do not inherit.
            quiet = partial(np.seterr, all="ignore")
            _pools[workers] = ThreadPoolExecutor(workers, "foldline-tile", initializer=quiet)
        return _pools[workers]
