import numpy as np
import pytest

import foldline.kernels.conv_depthwise
from foldline.kernels.conv import conv_reference
from foldline.kernels.conv_depthwise import depthwise_step
from foldline.kernels.registry import aligned_bytes
from foldline.kernels.windows import sliding_window


@pytest.mark.parametrize("block_bytes", [1, 3000, 1 << 20])
@pytest.mark.parametrize(
    ("spatial", "kernel", "pads", "dilations"),
    [
        ((6, 7), (3, 3), (1, 1, 1, 1), (1, 1)),
        ((6, 7), (1, 4), (0, 2, 0, 0), (1, 1)),
        ((8, 9), (2, 3), (0, 0, 3, 1), (3, 2)),
        ((4, 5, 6), (2, 3, 2), (1, 0, 1, 0, 1, 0), (1, 2, 1)),
        ((3, 3), (5, 5), (2, 2, 2, 2), (1, 1)),
    ],
)
def test_equals_the_reference(monkeypatch, block_bytes, spatial, kernel, pads, dilations):
    monkeypatch.setattr(foldline.kernels.conv_depthwise, "BLOCK_BYTES", block_bytes)
    rng = np.random.default_rng(0)
    x, w, b = (rng.standard_normal(s) for s in ((2, 5, *spatial), (5, 1, *kernel), (5,)))
    window = sliding_window(spatial, kernel, pads=pads, dilations=dilations)
    step = depthwise_step(2, 5, window, x.dtype)
    scratch = aligned_bytes(step.scratch_bytes)
    scratch[:] = 255  # NaN
    for bias in (None, b):
        wanted = conv_reference(x, w, bias, group=5, pads=pads, dilations=dilations)
        result = step.run(x, w, bias, scratch=scratch)
        np.testing.assert_allclose(result, wanted, rtol=1e-12, atol=1e-12)
