"""Steps bound to arrays that do not move compute what the unbound ones do."""

from __future__ import annotations

import numpy as np
import pytest

from foldline.kernels.channels_last import zeros
from foldline.kernels.conv import conv_reference, conv_step, conv_window
from foldline.kernels.conv_finish import finisher
from foldline.kernels.parallel import use_threads
from foldline.kernels.pixel_parts import MOST_BOUND, bound_parts
from foldline.kernels.registry import Operand, aligned_bytes

F32 = np.dtype(np.float32)
WAYS = {
    "pointwise": ((1, 24, 9, 8), (16, 24, 1, 1), 1, 1),
    "pointwise in spans": ((2, 64, 60, 50), (40, 64, 1, 1), 1, 1),
    "gathered": ((1, 9, 9, 8), (7, 9, 3, 3), 1, 2),
    "gathered in bands": ((2, 16, 60, 50), (24, 16, 3, 3), 1, 1),
    "by channel": ((1, 3, 20, 21), (8, 3, 3, 3), 1, 2),
    "depthwise": ((1, 12, 3, 20), (12, 1, 5, 5), 12, 1),
    "depthwise in bands": ((1, 96, 60, 50), (96, 1, 3, 3), 96, 2),
    "winograd": ((1, 64, 15, 16), (64, 64, 3, 3), 1, 1),
    "winograd in bands": ((2, 64, 40, 29), (65, 64, 3, 3), 1, 1),
    "more parts than are bound": ((MOST_BOUND + 1, 5, 4, 4), (5, 1, 3, 3), 5, 1),
    "empty": ((0, 5, 4, 4), (5, 1, 3, 3), 5, 1),
}


@pytest.mark.parametrize("out_is_last", [False, True])
@pytest.mark.parametrize("in_is_last", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_a_bound_step_follows_its_arrays(way: str, in_is_last: bool, out_is_last: bool) -> None:
    x_shape, w_shape, group, stride = WAYS[way]
    rng = np.random.default_rng(0)
    pads = (w_shape[2] // 2, w_shape[3] // 2) * 2
    window = conv_window(x_shape, w_shape, None, (stride, stride), None, pads, "NOTSET")
    w = rng.standard_normal(w_shape).astype(F32)
    x, b = zeros(x_shape, F32, in_is_last), np.zeros(w_shape[0], F32)
    out = zeros((x_shape[0], w_shape[0], *window.output), F32, out_is_last)
    known = Operand(x_shape, F32, None, in_is_last), Operand(w_shape, F32, w)
    step = conv_step(*known, group, window, finisher("Relu", (), F32))
    assert step.bind is not None
    scratch = aligned_bytes(step.scratch_bytes)
    compute = step.bind(x, w, b, scratch=scratch, out=out)
    for threads in (1, 3):
        x[...], b[...] = rng.standard_normal(x_shape), rng.standard_normal(b.shape)
        scratch[:] = 255  # NaN
        with use_threads(threads):
            compute()
        plain = step.run(x, w, b, scratch=aligned_bytes(step.scratch_bytes))
        assert out.tobytes() == plain.tobytes()
        attributes = {"group": group, "strides": (stride, stride), "pads": pads}
        wanted = np.maximum(conv_reference(x, w, b, **attributes), 0)
        np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-4)


def test_weights_that_are_not_constant_are_not_bound() -> None:
    window = conv_window((1, 4, 5, 5), (6, 4, 3, 3), None, None, None, None, "NOTSET")
    step = conv_step(Operand((1, 4, 5, 5), F32), Operand((6, 4, 3, 3), F32), 1, window)
    assert step.bind is None


@pytest.mark.parametrize("items", [1, 3, 9])
def test_every_part_is_made_once_for_each_lane_it_runs_in(items: int) -> None:
    made: list[tuple[int, int]] = []
    done: list[int] = []

    def make(item: int, lane: int):
        made.append((item, lane))
        return lambda: done.append(item)

    compute = bound_parts(items, make)
    for _ in range(2):
        compute()
    assert done == [*range(items)] * 2
    assert made == [(item, 0) for item in range(items)]
    with use_threads(4):
        for _ in range(20):
            compute()
    assert len(made) == len(set(made)) <= items * min(items, 4)
