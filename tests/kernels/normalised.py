"""Numbers to normalise, and what they become in float64."""

import ml_dtypes
import numpy as np

FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
GRADES = ("fast", "reference")


def normal(*shape, dtype=np.float64, seed=0):
    return (np.random.default_rng(seed).standard_normal(shape) + 0.5).astype(dtype)


def close(result, exact, dtype, steps=2):
    assert result.dtype == dtype
    eps = float(ml_dtypes.finfo(dtype).eps)
    np.testing.assert_allclose(
        result.astype(float), exact, rtol=steps * eps, atol=max(steps * eps, 1e-12)
    )


def standard(x, axes, epsilon):
    mean = x.mean(axis=axes, keepdims=True)
    variance = x.var(axis=axes, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon), mean, 1 / np.sqrt(variance + epsilon)


FAR = np.array([[1e8, 1e8 + 8, 1e8 - 8, 1e8 + 16]], np.float32)
"""Each a float32, their sum is not."""
FAR_EXACT = [[-4, 4, -12, 12]] / np.sqrt(80 + 1e-5)
