import numpy as np

from foldline.kernels.registry import Operand, aligned_bytes
from foldline.kernels.window_passes import separable_step
from foldline.kernels.windows import sliding_window


def test_maps_before_and_after():
    x = np.arange(12, dtype=np.float64).reshape(1, 1, 12) - 6
    window = sliding_window((12,), (3,), strides=(2,), pads=(1, 1))
    step = separable_step(
        Operand(x.shape, x.dtype),
        window,
        np.add,
        0,
        before=lambda source, target: np.square(source, out=target),
        after=lambda source, target: np.negative(source, out=target),
    )
    scratch = aligned_bytes(step.scratch_bytes)
    scratch[:] = 255  # NaN
    kept = x.copy()
    result = step.run(x, scratch=scratch)
    padded = np.pad(x[0, 0] ** 2, 1)
    assert result[0, 0].tolist() == [-padded[i : i + 3].sum() for i in range(0, 12, 2)]
    np.testing.assert_array_equal(x, kept)


def test_nothing_to_combine():
    x = np.arange(8.0).reshape(1, 2, 4)
    step = separable_step(
        Operand(x.shape, x.dtype), sliding_window((4,), (1,), strides=(3,)), np.maximum, -np.inf
    )
    result = step.run(x, scratch=aligned_bytes(step.scratch_bytes))
    assert result.tolist() == [[[0, 3], [4, 7]]]
