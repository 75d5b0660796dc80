import threading

import numpy as np
import pytest

from foldline.kernels.parallel import use_threads
from foldline.kernels.windows import (
    LANES,
    PaddedCopy,
    aligned_size,
    even_spans,
    for_lanes,
    lane_scratch,
    lanes_for,
    row_major,
    sliding_window,
)


@pytest.mark.parametrize(
    ("size", "taps", "keywords", "before", "after", "output"),
    [
        (7, 3, {}, 0, 0, 5),
        (7, 3, {"strides": (2,), "pads": (1, 0)}, 1, 0, 3),
        (7, 3, {"dilations": (2,)}, 0, 0, 3),
        (6, 3, {"strides": (2,)}, 0, 0, 2),
        (6, 3, {"strides": (2,), "ceil_mode": 1}, 0, 0, 3),
        # The third window would start in the padding at the end.
        (3, 1, {"strides": (2,), "pads": (0, 1), "ceil_mode": 1}, 0, 1, 2),
        (5, 3, {"strides": (2,), "auto_pad": "SAME_UPPER"}, 1, 1, 3),
        (6, 3, {"strides": (2,), "auto_pad": "SAME_UPPER"}, 0, 1, 3),
        (6, 3, {"strides": (2,), "auto_pad": "SAME_LOWER"}, 1, 0, 3),
        (5, 1, {"strides": (3,), "auto_pad": "SAME_UPPER"}, 0, 0, 2),
        (6, 3, {"auto_pad": "VALID", "pads": (9, 9)}, 0, 0, 4),
    ],
)
def test_onnx_rules(size, taps, keywords, before, after, output):
    window = sliding_window((size,), (taps,), **keywords)
    assert (window.before, window.after, window.output) == ((before,), (after,), (output,))


def test_wrong_attributes_are_named():
    with pytest.raises(ValueError, match=r"2 spatial axes.*strides=\(1, 1, 1\)"):
        sliding_window((5, 5), (3, 3), strides=(1, 1, 1))
    with pytest.raises(ValueError, match="window of 5 does not fit 3 elements"):
        sliding_window((3,), (3,), dilations=(2,))


def test_hits_are_the_taps_inside():
    for stride, dilation, before, after in np.ndindex(3, 3, 4, 4):
        window = sliding_window(
            (5,), (2,), strides=(stride + 1,), dilations=(dilation + 1,), pads=(before, after)
        )
        for tap in range(2):
            outputs, inputs = window.hits(0, tap)
            pairs = list(zip(np.arange(99)[outputs], np.arange(5)[inputs], strict=True))
            expected = [
                (o, i)
                for o in range(window.output[0])
                if 0 <= (i := o * (stride + 1) + tap * (dilation + 1) - before) < 5
            ]
            assert pairs == expected


def test_padded_copy():
    source = np.arange(1, 13).reshape(1, 3, 4)
    target = np.full((1, 4, 3), -1)
    PaddedCopy.of((3, 4), (-1, 2), (4, 3))(source, target)
    np.testing.assert_array_equal(target[0], [[0, 0, 0], [3, 4, 0], [7, 8, 0], [11, 12, 0]])
    PaddedCopy.of((3, 4), (5, -9), (4, 3))(source, target, 7)
    assert (target == 7).all()


def test_even_spans_cover_the_range():
    assert even_spans(10, 3) == [(0, 4), (4, 8), (8, 10)]
    assert even_spans(2, 5) == [(0, 1), (1, 2)]
    assert even_spans(0, 3) == []
    assert even_spans(3, 0) == [(0, 3)]


@pytest.mark.parametrize("threads", [1, 3])
def test_items_of_a_lane_do_not_overlap(threads):
    busy = [threading.Lock() for _ in range(LANES)]
    done = []

    def body(item, lane):
        assert busy[lane].acquire(blocking=False)
        done.append(item)
        busy[lane].release()

    with use_threads(threads):
        for_lanes(11, body)
        for_lanes(0, body)
    assert sorted(done) == list(range(11))
    assert (lanes_for(0), lanes_for(2), lanes_for(99)) == (1, 2, LANES)
    assert (lane_scratch(2, 100), lane_scratch(0, 0)) == (200, 64)


def test_layout():
    assert row_major((2, 3, 4), 8) == np.zeros((2, 3, 4)).strides
    assert row_major((5,), 4) == (4,)
    assert aligned_size((3, 5), 4) == 64
    assert aligned_size((0, 5), 4) == 0
