"""Parts of a convolution's result are finished once each."""

from __future__ import annotations

import numpy as np
import pytest

from foldline.kernels.conv import conv_step, conv_window
from foldline.kernels.conv_finish import SPAN_ELEMENTS, add_bias, done, finish_all, finisher
from foldline.kernels.parallel import use_threads
from foldline.kernels.registry import Array, Operand, run_once

SHAPES: dict[str, tuple[tuple[int, ...], tuple[int, ...], int]] = {
    "pointwise": ((2, 16, 70, 70), (20, 16, 1, 1), 1),
    "gathered in bands": ((1, 64, 60, 60), (64, 64, 3, 3), 1),
    "depthwise": ((1, 33, 40, 40), (33, 1, 3, 3), 33),
    "Winograd": ((1, 128, 30, 30), (130, 128, 3, 3), 1),
}


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("way", SHAPES)
def test_parts_tile_the_result(way: str, threads: int) -> None:
    x_shape, w_shape, group = SHAPES[way]
    x, w = np.ones(x_shape, np.float32), np.ones(w_shape, np.float32)
    window = conv_window(x_shape, w_shape, None, None, None, None, "NOTSET")

    def mark(part: Array) -> None:
        assert (part > 0).all()
        np.negative(part, out=part)

    step = conv_step(Operand(x_shape, x.dtype), Operand(w_shape, w.dtype), group, window, mark)
    with use_threads(threads):
        result = run_once(step, (x, w))
    assert (result < 0).all()


@pytest.mark.parametrize("threads", [1, 3])
def test_a_whole_is_finished_in_spans(threads: int) -> None:
    sizes: list[int] = []
    result = np.zeros((3, SPAN_ELEMENTS - 1), np.float32)
    added = np.arange(result.size, dtype=np.float32).reshape(result.shape)

    def note(part: Array) -> None:
        sizes.append(part.size)
        part += 1

    with use_threads(threads):
        finish_all(result, note, added)
    assert sorted(sizes) == [SPAN_ELEMENTS - 3, SPAN_ELEMENTS, SPAN_ELEMENTS]
    np.testing.assert_array_equal(result, added + 1)


def test_nothing_is_done_where_nothing_is_to_be_done() -> None:
    read_only = np.zeros(4)
    read_only.flags.writeable = False
    finish_all(read_only, done)
    assert finisher("", (), read_only.dtype) is done


@pytest.mark.parametrize("shape", [(0, 3), (5, 3), (3001, 3), (701, 127), (400, 200)])
@pytest.mark.parametrize("is_strided", [False, True])
def test_a_bias_is_added_to_every_row(shape: tuple[int, int], is_strided: bool) -> None:
    rng = np.random.default_rng(0)
    part = rng.standard_normal((shape[0], 2 * shape[1])).astype(np.float32)
    part = part[:, : shape[1]] if is_strided else np.ascontiguousarray(part[:, : shape[1]])
    bias = rng.standard_normal(shape[1]).astype(np.float32)
    wanted = part + bias
    add_bias(part, bias)
    assert part.tobytes() == wanted.tobytes()
