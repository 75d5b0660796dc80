"""What kernels find set while they run, whichever thread they are on."""

from threading import Barrier

import numpy as np

from foldline.kernels.parallel import parallel_for, use_threads
from foldline.kernels.ufunc_state import BUFFER, quiet_ufuncs


def test_a_block_is_quiet_and_leaves_nothing_behind():
    before = np.getbufsize(), np.geterr()
    with quiet_ufuncs():
        assert np.getbufsize() == BUFFER
        assert set(np.geterr().values()) == {"ignore"}
    assert (np.getbufsize(), np.geterr()) == before


def test_workers_have_the_buffers_of_the_caller():
    found: list[int] = []
    both = Barrier(2)

    def body(_: int) -> None:
        both.wait(10)
        found.append(np.getbufsize())

    with quiet_ufuncs(), use_threads(2):
        parallel_for(2, body)
    assert found == [BUFFER] * 2
