import math

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto

from foldline.kernels.attention import attention_reference
from foldline.kernels.flex_attention import flex_attention


def normal(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


QKV = normal(2, 4, 3, 8), normal(2, 2, 5, 8, seed=1), normal(2, 2, 5, 6, seed=2)


@pytest.mark.parametrize("scale", [None, 0.2])
def test_without_graphs_it_is_attention(scale):
    expected = attention_reference(*QKV, scale=scale)
    np.testing.assert_allclose(flex_attention(*QKV, scale=scale), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("dtype", "softmax_precision", "seen"),
    [
        (np.float32, None, np.float32),
        (np.float16, None, np.float32),
        (ml_dtypes.bfloat16, None, np.float32),
        (np.float64, None, np.float64),
        (np.float32, TensorProto.DOUBLE, np.float64),
        (np.float32, TensorProto.FLOAT16, np.float16),
        (np.float64, TensorProto.BFLOAT16, ml_dtypes.bfloat16),
    ],
)
def test_graphs_see_the_softmax_precision(dtype, softmax_precision, seen):
    kinds = []

    def body(x):
        kinds.append(x.dtype)
        assert x.shape == (2, 4, 3, 5)
        return (x,)

    arrays = [x.astype(dtype) for x in QKV]
    y = flex_attention(*arrays, score_mod=body, prob_mod=body, softmax_precision=softmax_precision)
    assert kinds == [seen, seen]
    assert y.dtype == dtype
    plain = flex_attention(*QKV)
    tolerance = 0.05 if {dtype, seen} & {ml_dtypes.bfloat16} else 5e-3
    np.testing.assert_allclose(y.astype(float), plain, rtol=tolerance, atol=tolerance)


def test_graphs_change_scores_and_shares():
    def causal(scores):
        hidden = np.triu(np.ones(scores.shape[-2:], bool), 1)
        return (np.where(hidden, -np.inf, scores).astype(np.float64),)  # cast back

    expected = 2 * attention_reference(*QKV, is_causal=1)
    y = flex_attention(*QKV, score_mod=causal, prob_mod=lambda p: (2 * p,))
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


def test_a_row_without_keys_is_nan():
    y = flex_attention(*QKV, score_mod=lambda s: (np.full_like(s, -np.inf),))
    assert np.isnan(y).all()


def test_errors():
    with pytest.raises(ValueError, match="prob_mod turned shape"):
        flex_attention(*QKV, prob_mod=lambda p: (p[0],))
    with pytest.raises(ValueError, match="4 heads of queries cannot share 3"):
        flex_attention(QKV[0], normal(2, 3, 5, 8), normal(2, 3, 5, 8))


def test_default_scale():
    q = np.array([[[[2.0, 0, 0, 0]]]], np.float32)
    seen = []

    def record(scores):
        seen.append(scores.tolist())
        return (scores,)

    flex_attention(q, q, q, score_mod=record)
    np.testing.assert_allclose(seen, [[[[[4 / math.sqrt(4)]]]]], rtol=1e-6)
