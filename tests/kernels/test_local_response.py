import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.local_response import lrn

FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]


def normal(*shape):
    return np.random.default_rng(0).standard_normal(shape)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("beta", [0.75, 0.5])
def test_lrn(dtype, size, beta):
    x = (3 * normal(2, 5, 2, 3)).astype(dtype)
    wide = x.astype(float)
    squares = np.stack(
        [
            (wide[:, max(0, c - (size - 1) // 2) : c + size // 2 + 1] ** 2).sum(axis=1)
            for c in range(5)
        ],
        axis=1,
    )
    exact = wide / (2 + 0.5 / size * squares) ** beta
    out = np.empty_like(x)
    assert lrn(x, size=size, alpha=0.5, beta=beta, bias=2.0, out=out) is out
    eps = float(ml_dtypes.finfo(dtype).eps)
    np.testing.assert_allclose(out.astype(float), exact, rtol=4 * eps, atol=4 * eps)
