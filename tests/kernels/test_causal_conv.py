import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.causal_conv import causal_conv_with_state


def row(*values, dtype=np.float32):
    return np.array(values, dtype).reshape(1, 1, -1)


def test_only_the_past_is_seen():
    y, state = causal_conv_with_state(row(1, 2, 4), row(100, 10, 1))
    assert y.tolist() == [[[1, 12, 124]]]
    assert state.tolist() == [[[2, 4]]]


def test_bias_and_past():
    bias = np.array([1000], np.float32)
    y, state = causal_conv_with_state(row(1), row(100, 10, 1), bias, row(7, 8))
    assert y.tolist() == [[[1781]]]
    assert state.tolist() == [[[8, 1]]]


def test_channels_have_their_own_weights():
    x = np.array([[[1, 2], [3, 4]]] * 2, np.float32)
    w = np.array([[[0, 2]], [[1, 0]]], np.float32)
    y, state = causal_conv_with_state(x, w)
    assert y.tolist() == [[[2, 4], [0, 3]]] * 2
    assert state.shape == (2, 2, 1)


def test_one_tap_has_no_state():
    y, state = causal_conv_with_state(row(1, 2), row(3))
    assert y.tolist() == [[[3, 6]]]
    assert state.shape == (1, 1, 0)


def test_nothing_keeps_the_state():
    past = row(7, 8)
    y, state = causal_conv_with_state(row(), row(1, 1, 1), None, past)
    assert y.shape == (1, 1, 0)
    assert state.tolist() == past.tolist()
    assert not np.shares_memory(state, past)


@pytest.mark.parametrize("activation", ["silu", "swish"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_activation_follows_the_rounded_sum(activation, dtype):
    x, w = row(0.1, 0.7, -2, dtype=dtype), row(0.3, 1.7, dtype=dtype)
    plain, _ = causal_conv_with_state(x, w)
    y, state = causal_conv_with_state(x, w, activation=activation)
    assert y.dtype == state.dtype == dtype
    wide = plain.astype(np.float32)
    expected = (wide / (1 + np.exp(-wide))).astype(dtype)
    np.testing.assert_allclose(y.astype(float), expected.astype(float), rtol=1e-6)


def test_narrow_sums_are_rounded_once():
    x, w = row(2048, 1, 1, dtype=np.float16), row(1, 1, 1, dtype=np.float16)
    assert causal_conv_with_state(x, w)[0].ravel()[2] == 2050  # 2048 + 1 stays 2048 in float16


def test_unknown_activation():
    with pytest.raises(ValueError, match="activation is 'relu'"):
        causal_conv_with_state(row(1), row(1), activation="relu")
