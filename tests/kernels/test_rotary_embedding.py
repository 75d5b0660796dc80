import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.rotary_embedding import rotary_embedding


def angles(*shape):
    random = np.random.default_rng(1)
    angle = random.uniform(0, 6, shape)
    return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)


X = np.random.default_rng(0).standard_normal((2, 3, 5, 8)).astype(np.float32)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("count", [0, 4])
@pytest.mark.parametrize("with_positions", [False, True])
def test_pairs_are_rotated_as_complex_numbers(interleaved, count, with_positions):
    half = (count or 8) // 2
    cos, sin = angles(11, half) if with_positions else angles(2, 5, half)
    positions = np.random.default_rng(2).integers(0, 11, (2, 5)) if with_positions else None
    turn = (cos + 1j * sin)[positions] if with_positions else cos + 1j * sin
    size = 2 * half
    first = X[..., 0:size:2] if interleaved else X[..., :half]
    second = X[..., 1:size:2] if interleaved else X[..., half:size]
    turned = (first + 1j * second) * turn[:, None]
    expected = X.copy()
    if interleaved:
        expected[..., 0:size:2], expected[..., 1:size:2] = turned.real, turned.imag
    else:
        expected[..., :half], expected[..., half:size] = turned.real, turned.imag
    options = {"interleaved": interleaved, "rotary_embedding_dim": count}
    y = rotary_embedding(X, cos, sin, positions, **options)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
    packed = X.transpose(0, 2, 1, 3).reshape(2, 5, 24)
    result = rotary_embedding(packed, cos, sin, positions, num_heads=3, **options)
    assert result.tolist() == y.transpose(0, 2, 1, 3).reshape(2, 5, 24).tolist()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_floats_are_rounded_once(dtype):
    cos, sin = (c.astype(dtype) for c in angles(2, 5, 4))
    x = X.astype(dtype)
    out = np.empty(x.shape, dtype)
    assert rotary_embedding(x, cos, sin, out=out) is out
    wide = rotary_embedding(*(a.astype(np.float32) for a in (x, cos, sin)))
    assert out.tobytes() == wide.astype(dtype).tobytes()


def test_errors_and_nothing():
    cos, sin = angles(2, 5, 4)
    with pytest.raises(ValueError, match="needs the number of heads"):
        rotary_embedding(X[:, 0], cos, sin)
    with pytest.raises(ValueError, match="caches of 4 and 4 angles do not fit 6"):
        rotary_embedding(X, cos, sin, rotary_embedding_dim=6)
    assert rotary_embedding(X[:0], cos[:0], sin[:0]).shape == (0, 3, 5, 8)
    assert rotary_embedding(X[:0, 0], cos[:0], sin[:0], num_heads=1).shape == (0, 5, 8)
