"""Tiles over threads: every tile once, failures as with one thread, workers shared."""

import os
import sys
import threading
import time
import warnings

import numpy as np
import pytest

from foldline.kernels.parallel import SWITCH_SECONDS, parallel_for, use_threads, watch_tiles

THREADS = [1, 2, 3, 8]


class _TileFailed(Exception):
    pass


def _await(meeting: threading.Barrier) -> None:
    meeting.wait()


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("tiles", [0, 1, 2, 7, 100])
def test_every_tile_runs_once(threads: int, tiles: int):
    done: list[int] = []
    with use_threads(threads):
        parallel_for(tiles, done.append)
    assert sorted(done) == list(range(tiles))


def test_two_threads_work_at_the_same_time():
    meeting = threading.Barrier(2, timeout=20)
    with use_threads(2):
        parallel_for(2, lambda tile: _await(meeting))


def test_one_thread_runs_tiles_in_order_in_the_calling_thread():
    seen: list[tuple[int, int]] = []
    parallel_for(3, lambda tile: seen.append((tile, threading.get_ident())))
    assert seen == [(tile, threading.get_ident()) for tile in range(3)]


@pytest.mark.parametrize("threads", THREADS)
def test_the_error_of_the_lowest_tile_is_raised(threads: int):
    def body(tile: int) -> None:
        if tile in (2, 3, 5):
            time.sleep(0.02 if tile == 2 else 0)
            raise ValueError(tile)

    with use_threads(threads), pytest.raises(ValueError, match=r"^2$"):
        parallel_for(8, body)


def test_all_that_began_has_ended_when_an_error_is_raised():
    running: list[int] = []

    def body(tile: int) -> None:
        if tile == 0:
            raise _TileFailed
        running.append(tile)
        time.sleep(0.05)
        running.remove(tile)

    with use_threads(2), pytest.raises(_TileFailed):
        parallel_for(2, body)
    assert running == []


def test_workers_go_on_after_an_error():
    def fail(tile: int) -> None:
        raise _TileFailed

    for _ in range(20):
        with use_threads(2), pytest.raises(_TileFailed):
            parallel_for(2, fail)
    test_two_threads_work_at_the_same_time()


def test_a_call_within_a_tile_of_a_worker_runs_there():
    caller, meeting = threading.get_ident(), threading.Barrier(3, timeout=20)
    owners: dict[int, set[int]] = {}

    def body(tile: int) -> None:
        meeting.wait()
        inner = owners[threading.get_ident()] = set()
        parallel_for(4, lambda _: inner.add(threading.get_ident()))

    with use_threads(3):
        parallel_for(3, body)
    assert len(owners) == 3
    assert all(inner == {thread} for thread, inner in owners.items() if thread != caller)


def test_callers_share_the_workers_and_none_waits_for_another():
    """While the only worker is held by one caller, another still gets through."""
    held, release = threading.Event(), threading.Event()

    def hold(tile: int) -> None:
        held.set()
        assert release.wait(20)

    def first() -> None:
        with use_threads(2):
            parallel_for(2, hold)

    caller = threading.Thread(target=first)
    caller.start()
    assert held.wait(20)
    done: list[int] = []
    with use_threads(2):
        parallel_for(10, done.append)
    release.set()
    caller.join(20)
    assert sorted(done) == list(range(10))


def test_no_more_threads_than_a_call_has_asked_for():
    def workers() -> int:
        return sum(thread.name == "foldline-tile" for thread in threading.enumerate())

    with use_threads(4):
        for _ in range(30):
            parallel_for(8, lambda tile: time.sleep(0.0005))
    callers = [threading.Thread(target=test_every_tile_runs_once, args=(4, 100)) for _ in range(6)]
    before = workers()
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(20)
    assert workers() == before


def test_workers_ignore_floating_point_errors():
    meeting = threading.Barrier(2, timeout=20)

    def body(tile: int) -> None:
        meeting.wait()
        np.divide(np.ones(3), np.zeros(3))

    with warnings.catch_warnings(), np.errstate(all="ignore"), use_threads(2):
        warnings.simplefilter("error")
        parallel_for(2, body)


def test_python_switches_sooner_only_while_threads_share_tiles():
    usual, seen = sys.getswitchinterval(), list[float]()

    def body(tile: int) -> None:
        seen.append(sys.getswitchinterval())

    with use_threads(2):
        assert sys.getswitchinterval() == usual
        parallel_for(4, body)
        parallel_for(1, lambda tile: body(tile))
    assert seen == [pytest.approx(SWITCH_SECONDS, rel=0.01)] * 4 + [usual]
    assert sys.getswitchinterval() == usual


def test_the_last_of_several_callers_puts_the_switch_interval_back():
    usual, both = sys.getswitchinterval(), threading.Barrier(2, timeout=20)
    release, seen = threading.Event(), list[float]()

    def long(tile: int) -> None:
        if tile == 0:
            both.wait()
            assert release.wait(20)
            seen.append(sys.getswitchinterval())

    def first() -> None:
        with use_threads(2):
            parallel_for(2, long)

    caller = threading.Thread(target=first)
    caller.start()
    both.wait()
    with use_threads(2):
        parallel_for(2, lambda tile: None)
    release.set()
    caller.join(20)
    assert seen == [pytest.approx(SWITCH_SECONDS, rel=0.01)]
    assert sys.getswitchinterval() == usual


def test_a_switch_interval_that_is_shorter_stays():
    usual = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS / 10)
    try:
        shorter, seen = sys.getswitchinterval(), list[float]()
        with use_threads(2):
            parallel_for(2, lambda tile: seen.append(sys.getswitchinterval()))
        assert seen == [shorter] * 2
    finally:
        sys.setswitchinterval(usual)


def test_tiles_are_watched_in_any_thread():
    times: list[tuple[float, float]] = []
    with use_threads(2), watch_tiles(lambda start, end: times.append((start, end))):
        parallel_for(5, lambda tile: None)
    assert len(times) == 5
    assert all(start <= end for start, end in times)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_has_workers_of_its_own():
    test_two_threads_work_at_the_same_time()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            test_two_threads_work_at_the_same_time()
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert status == 0
