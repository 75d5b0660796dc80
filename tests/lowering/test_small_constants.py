import ml_dtypes
import numpy as np

from foldline.lowering.small_constants import MOST_BYTES, gather_small


def test_small_arrays_are_copied_into_one_block_and_the_rest_stays():
    floats = np.arange(6, dtype=np.float32).reshape(2, 3)
    narrow = np.array([1.5, -0.0], ml_dtypes.bfloat16)
    scalar = np.array(-3, np.int64)
    large = np.zeros(MOST_BYTES + 1, np.uint8)
    texts = np.array(["a"], object)
    empty = np.empty((0, 3), np.float32)
    frame = [None, floats, narrow, scalar, large, texts, empty, [1]]
    before = list(frame)
    gather_small(frame)
    for slot in (1, 2, 3):
        assert frame[slot] is not before[slot]
        assert frame[slot].dtype == before[slot].dtype
        assert frame[slot].shape == before[slot].shape
        assert frame[slot].tobytes() == before[slot].tobytes()
        assert not frame[slot].flags.writeable
        assert frame[slot].ctypes.data % 64 == 0
    assert frame[2].ctypes.data - frame[1].ctypes.data == 64
    for slot in (0, 4, 5, 6, 7):
        assert frame[slot] is before[slot]


def test_a_frame_without_small_arrays_stays_as_it_is():
    frame = [None, "text"]
    gather_small(frame)
    assert frame == [None, "text"]
