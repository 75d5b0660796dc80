import numpy as np
import pytest

import foldline.kernels.pool_channels_last
from foldline.kernels.channels_last import channels_last, pixels, zeros
from foldline.kernels.pooling import average_pool, lp_pool, max_pool
from foldline.kernels.registry import Operand, aligned_bytes

WINDOWS = [
    {"kernel_shape": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)},
    {"kernel_shape": (3, 2), "strides": (1, 2), "pads": (1, 0, 0, 1), "ceil_mode": 1},
    {"kernel_shape": (2, 2), "strides": (2, 2)},
    {"kernel_shape": (1, 3), "dilations": (1, 2)},
    {"kernel_shape": (1, 1), "strides": (2, 3)},
    {"kernel_shape": (9, 11)},
]


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("pool", [max_pool, average_pool, lp_pool])
@pytest.mark.parametrize("window", WINDOWS)
def test_the_bits_are_those_of_the_other_order(monkeypatch, pool, window, small):
    if small:
        monkeypatch.setattr(foldline.kernels.pool_channels_last, "BAND_BYTES", 1)
    x = np.random.default_rng(0).standard_normal((2, 5, 9, 11)).astype(np.float32)
    x[0, 1, 2, 3], x[0, 2, 3, 1], x[1, 0, 1, 1] = np.inf, np.nan, -0.0
    wanted = run(pool(Operand(x.shape, x.dtype), **window), x)
    step = pool(Operand(x.shape, x.dtype, None, True), **window)
    last = channels_last(np.ascontiguousarray(pixels(x)), x.shape)
    for out in (None, np.empty_like(wanted), zeros(wanted.shape, x.dtype, True)):
        result = run(step, last, out)
        np.testing.assert_array_equal(result, wanted)
        kept = ~np.isnan(wanted)
        assert result[kept].tobytes() == wanted[kept].tobytes()


def run(step, x, out=None):
    scratch = {"scratch": aligned_bytes(step.scratch_bytes)} if step.scratch_bytes else {}
    return step.run(x, out=out, **scratch)
