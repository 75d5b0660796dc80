from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import threadpoolctl

from foldline.kernels import blas
from foldline.kernels.blas import libraries, one_blas_thread


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    """What the caller has set must not be what is set here, else nothing is shown."""
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        yield


def _counts() -> list[int]:
    info = threadpoolctl.threadpool_info()
    return [entry["num_threads"] for entry in info if entry["user_api"] == "blas"]


def test_there_is_a_library_to_limit() -> None:
    assert libraries()
    assert _counts() == [2] * len(libraries())


def test_one_thread_inside_and_the_callers_number_after() -> None:
    with one_blas_thread():
        assert set(_counts()) == {1}
        with one_blas_thread():
            assert set(_counts()) == {1}
        assert set(_counts()) == {1}
    assert set(_counts()) == {2}


def test_restored_after_an_exception() -> None:
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        raise ZeroDivisionError
    assert set(_counts()) == {2}


def test_the_last_of_concurrent_blocks_restores() -> None:
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with one_blas_thread():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait(10)
    with one_blas_thread():
        pass
    assert set(_counts()) == {1}
    leave.set()
    thread.join()
    assert set(_counts()) == {2}


class _Other:
    """A library that is not an OpenBLAS of plain threads."""

    threading_layer = "openmp"

    def __init__(self) -> None:
        self.said: list[object] = []

    def get_num_threads(self) -> int:
        return 4

    def set_num_threads(self, num_threads: int) -> None:
        self.said.append(num_threads)

    def clear_controlling_thread(self, *, force: bool) -> None:
        self.said.append(force)


def test_another_library_is_set_through_threadpoolctl(monkeypatch: pytest.MonkeyPatch) -> None:
    other = _Other()
    monkeypatch.setattr(blas, "libraries", lambda: (blas._limit(other),))
    with one_blas_thread():
        assert other.said == [True, 1, True]
    assert other.said == [True, 1, True, True, 4, True]
