"""Fixed tiles over an own thread pool: results never depend on the number of threads.

A kernel splits its work into tiles chosen from shapes and dtypes alone and calls
`parallel_for(count, body)`. Who runs the model decides with `use_threads` how many threads serve
the tiles; with one thread they run in order in the calling thread.

Workers sleep on a lock of their own: waking one and waiting for it costs a third of what an
executor with its queue and futures does (10 against 30 µs), which a layer of a network notices.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from operator import itemgetter
from time import perf_counter

from foldline.kernels.ufunc_state import set_ufuncs

SWITCH_SECONDS = 1e-4
"""A thread that waits for the interpreter asks for it after so long while threads share tiles.
Tiles are calls of 10 to 100 µs that let go of it and are done before a sleeping thread has woken:
with Python's 5 ms it sleeps through them all, and two threads take 5 to 15 % longer."""


class _Current(threading.local):
    """What holds for a thread; a default of the class is read in a sixth of getattr's time."""

    count = 1
    watch: Callable[[float, float], None] | None = None


_current = _Current()


class _Switching:
    """The interpreter's switch interval: shortened by the first to enter, put back by the last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._usual = 0.0

    def __enter__(self) -> None:
        with self._lock:
            if not self._users:
                self._usual = sys.getswitchinterval()
                sys.setswitchinterval(min(self._usual, SWITCH_SECONDS))
            self._users += 1

    def __exit__(self, *failure: object) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                sys.setswitchinterval(self._usual)


_switching = _Switching()


class use_threads:
    """Let `parallel_for` calls made by this thread, inside the block, use `count` threads."""

    __slots__ = ("_count", "_previous")

    def __init__(self, count: int):
        self._count = count
        self._previous = 1

    def __enter__(self) -> None:
        self._previous = _current.count
        _current.count = self._count

    def __exit__(self, *failure: object) -> None:
        _current.count = self._previous


def threads_in_use() -> int:
    """How many threads serve the `parallel_for` calls of this thread."""
    return _current.count


class watch_tiles:
    """Tell `watch` when each tile began and ended that this thread has run inside the block."""

    __slots__ = ("_previous", "_watch")

    def __init__(self, watch: Callable[[float, float], None]):
        self._watch = watch
        self._previous: Callable[[float, float], None] | None = None

    def __enter__(self) -> None:
        self._previous = _current.watch
        _current.watch = self._watch

    def __exit__(self, *failure: object) -> None:
        _current.watch = self._previous


def parallel_for(tiles: int, body: Callable[[int], None]) -> None:
    """Run `body(0) … body(tiles - 1)`; tiles must write to disjoint memory.

    Where tiles fail, the error of the lowest is raised, after all that began have ended. Workers
    that serve another call are not waited for.
    """
    watch = _current.watch
    if watch is not None and tiles > 1:
        body = partial(_timed, watch, body)
    threads = min(_current.count, tiles)
    if threads <= 1:
        for tile in range(tiles):
            body(tile)
        return
    queue = iter(range(tiles))
    with _switching:
        shares = [worker.begin(_Share(body, queue)) for worker in _free_workers(threads - 1)]
        own = _Share(body, queue)
        own.run()
        for share in shares:
            share.ended.acquire()
    failed = [(each.tile, each.error) for each in (own, *shares) if each.error is not None]
    if failed:
        raise min(failed, key=itemgetter(0))[1]


def _timed(watch: Callable[[float, float], None], body: Callable[[int], None], tile: int) -> None:
    start = perf_counter()
    body(tile)
    watch(start, perf_counter())


class _Share:
    """What one thread does of a call: it takes tiles until none is left, or one fails."""

    __slots__ = ("_body", "_queue", "ended", "error", "tile")

    def __init__(self, body: Callable[[int], None], queue: Iterator[int]):
        self._body = body
        self._queue = queue
        self.ended = threading.Lock()
        """Held until a worker has done its share."""
        self.error: BaseException | None = None
        self.tile = 0

    def run(self) -> None:
        """Taking a tile is a single step of the interpreter: no two threads get the same."""
        with self:
            for tile in self._queue:
                self.tile = tile
                self._body(tile)

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        self.error = error
        return True


class _Worker(threading.Thread):
    """A thread that sleeps until it is given a share."""

    def __init__(self) -> None:
        super().__init__(name="foldline-tile", daemon=True)
        self._wake = threading.Lock()
        self._wake.acquire()
        self._share: _Share | None = None
        self.start()

    def begin(self, share: _Share) -> _Share:
        """Let this worker do a share; `share.ended` is free again when it has."""
        share.ended.acquire()
        self._share = share
        self._wake.release()
        return share

    def run(self) -> None:
        set_ufuncs()
        while True:
            self._wake.acquire()
            self._work()

    def _work(self) -> None:
        share, self._share = self._share, None
        assert share is not None
        share.run()
        # Free before the caller goes on: its next call is to find this worker.
        _free.append(self)
        share.ended.release()


_free: list[_Worker] = []
_all: list[_Worker] = []
_hiring = threading.Lock()


def _free_workers(wanted: int) -> list[_Worker]:
    """At most so many that have nothing to do; there never are more than one call has asked for."""
    found: list[_Worker] = []
    while len(found) < wanted:
        try:
            found.append(_free.pop())
        except IndexError:
            break
    if len(found) < wanted and len(_all) < wanted:
        with _hiring:
            hired = [_Worker() for _ in range(min(wanted - len(found), wanted - len(_all)))]
            _all.extend(hired)
        found += hired
    return found


def _forget_workers() -> None:
    """A forked process has none of its parent's threads."""
    global _hiring
    _hiring = threading.Lock()
    _free.clear()
    _all.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_workers)
