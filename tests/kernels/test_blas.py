from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import threadpoolctl

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
