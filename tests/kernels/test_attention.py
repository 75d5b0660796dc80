"""Attention, both grades, against loops over single queries in float64."""

import math

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto

import foldline.kernels.attention_fast  # noqa: F401
from foldline.kernels.attention import attention_reference
from foldline.kernels.registry import compute, find_kernel

GRADES = {grade: find_kernel("", "Attention", 25, (grade,)) for grade in ("fast", "reference")}


def normal(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def by_loops(q, k, v, mask=None, past_k=None, past_v=None, lengths=None, *, is_causal=0,
             left_window_size=-1, right_window_size=-1, scale=None, softcap=0.0):  # fmt: skip
    """One query at a time over the keys it sees; `(batch, heads, length, size)`, float64."""
    q, k, v = (x.astype(float) for x in (q, k, v))
    past = 0
    if past_k is not None:
        past = past_k.shape[2]
        k, v = np.concatenate((past_k, k), axis=2), np.concatenate((past_v, v), axis=2)
    (batch, heads, queries, size), keys = q.shape, k.shape[2]
    scale = 1 / math.sqrt(size) if scale is None else scale
    if mask is not None:
        added = np.where(mask, 0.0, -np.inf) if mask.dtype == bool else mask.astype(float)
        full = np.full((batch, heads, queries, keys), -np.inf)
        full[..., : mask.shape[-1]] = added
    y = np.zeros((batch, heads, queries, v.shape[3]))
    for b, h, i in np.ndindex(batch, heads, queries):
        end = keys if lengths is None else lengths[b]
        position = i + (past if lengths is None else end - queries)
        scores = {}
        for j in range(end):
            if is_causal and j > position:
                continue
            if left_window_size >= 0 and j < position - left_window_size:
                continue
            if right_window_size >= 0 and j > position + right_window_size:
                continue
            g = h * k.shape[1] // heads
            score = q[b, h, i] @ k[b, g, j] * scale
            score = softcap * math.tanh(score / softcap) if softcap else score
            score += 0 if mask is None else full[b, h, i, j]
            if score > -np.inf:
                scores[j] = score
        if scores:
            weights = np.exp(np.array(list(scores.values())) - max(scores.values()))
            y[b, h, i] = weights @ v[b, g, list(scores)] / weights.sum()
    return y


def check(arrays, **attributes):
    expected = by_loops(*arrays, **attributes)
    for entry in GRADES.values():
        result = compute(entry, [*arrays, *[None] * (7 - len(arrays))], **attributes)
        assert result.dtype == arrays[0].dtype
        np.testing.assert_allclose(result, expected, rtol=2e-5, atol=2e-6, err_msg=entry.where)


QKV = normal(2, 4, 5, 8), normal(2, 2, 7, 8, seed=1), normal(2, 2, 7, 6, seed=2)
PAST = normal(2, 2, 3, 8, seed=3), normal(2, 2, 3, 6, seed=4)
OPTIONS = [
    {}, {"is_causal": 1}, {"softcap": 0.7}, {"scale": 0.3}, {"scale": 2.5, "is_causal": 1},
    {"left_window_size": 2}, {"right_window_size": 1}, {"left_window_size": 0},
    {"left_window_size": 2, "right_window_size": 1},
    {"left_window_size": 1, "right_window_size": 3, "is_causal": 1},
]  # fmt: skip


@pytest.mark.parametrize("attributes", OPTIONS)
@pytest.mark.parametrize("cache", ["none", "past", "lengths"])
def test_options_and_caches(attributes, cache):
    extra = {
        "none": (),
        "past": (None, *PAST),
        "lengths": (None, None, None, np.array([7, 3])),  # 3 keys for 5 queries: offset -2
    }
    check((*QKV, *extra[cache]), **attributes)


@pytest.mark.parametrize(
    "shape", [(7,), (1,), (5, 7), (1, 7), (5, 1), (4, 5, 7), (2, 1, 1, 7), (2, 4, 5, 7), (5, 4)]
)
@pytest.mark.parametrize("kind", [np.bool_, np.float32])
@pytest.mark.parametrize("attributes", [{}, {"is_causal": 1}, {"left_window_size": 2}])
def test_masks(shape, kind, attributes):
    if shape[-1] == 1:
        shape = (*shape[:-1], 7)
    mask = normal(*shape, seed=5)
    mask = mask > -0.2 if kind is np.bool_ else np.where(mask > 1, -np.inf, mask)
    check((*QKV, mask.astype(kind)), **attributes)
    check((*QKV, mask.astype(kind), None, None, np.array([6, 4])), **attributes)


def test_integer_masks_are_added():
    mask = np.arange(7, dtype=np.int64)
    check((*QKV, mask))


def test_queries_that_see_nothing_give_zeros():
    mask = np.zeros((5, 7), np.bool_)
    mask[1] = True
    check((*QKV, mask))
    q, k, v = (x.copy() for x in QKV)
    q[:, :, 0] = np.nan  # must not spread from a hidden row
    for entry in GRADES.values():
        result = compute(entry, [q, k, v, mask, None, None, None])
        assert not result[:, :, [0, 2, 3, 4]].any()
        assert result[:, :, 1].all()


@pytest.mark.parametrize("grade", GRADES)
def test_packed_inputs_are_the_same(grade):
    def pack(x):
        return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)

    options = {"is_causal": 1, "output_count": 3}
    inputs = [*QKV, None, *PAST]
    y, keys, values = compute(GRADES[grade], inputs, **options)
    packed = [*map(pack, QKV), None, *PAST]
    results = compute(GRADES[grade], packed, q_num_heads=4, kv_num_heads=2, **options)
    np.testing.assert_allclose(results[0], pack(y), rtol=1e-6)
    assert results[1].tolist() == keys.tolist()
    assert results[2].tolist() == values.tolist()
    assert keys.tolist() == np.concatenate((PAST[0], QKV[1]), axis=2).tolist()
    assert values.tolist() == np.concatenate((PAST[1], QKV[2]), axis=2).tolist()


@pytest.mark.parametrize("grade", GRADES)
def test_present_is_a_copy(grade):
    _, keys, values = compute(GRADES[grade], [*QKV], output_count=3)
    assert keys.tolist() == QKV[1].tolist()
    assert not np.shares_memory(keys, QKV[1])
    assert not np.shares_memory(values, QKV[2])


def test_asked_scores():
    q, k, v = QKV
    mask = normal(5, 7, seed=6)
    raw = q @ np.repeat(k, 2, axis=1).swapaxes(-1, -2) / math.sqrt(8)
    capped = 0.5 * np.tanh(raw / 0.5)
    biased = capped + mask
    shares = np.exp(biased) / np.exp(biased).sum(axis=-1, keepdims=True)
    for mode, expected in enumerate((raw, capped, biased, shares)):
        for entry in GRADES.values():
            *_, shown = compute(
                entry, [q, k, v, mask], softcap=0.5, qk_matmul_output_mode=mode, output_count=4
            )
            np.testing.assert_allclose(shown, expected, rtol=1e-4, atol=1e-5)


def test_softmax_precision():
    q, k, v = (x.astype(np.float32) for x in QKV)
    exact = attention_reference(q, k, v, softmax_precision=TensorProto.DOUBLE)
    rough = attention_reference(q, k, v, softmax_precision=TensorProto.FLOAT16)
    assert exact.dtype == rough.dtype == np.float32
    np.testing.assert_allclose(exact, by_loops(q, k, v), rtol=1e-5, atol=1e-6)
    assert np.abs(rough - exact).max() > 1e-5
    np.testing.assert_allclose(rough, exact, rtol=1e-2, atol=1e-3)
    fast = compute(GRADES["fast"], [q, k, v], softmax_precision=TensorProto.FLOAT16)
    assert fast.tolist() == rough.tolist()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_types(dtype):
    arrays = [x.astype(dtype) for x in QKV]
    results = [compute(entry, arrays, is_causal=1) for entry in GRADES.values()]
    tolerance = 4 * float(ml_dtypes.finfo(dtype).eps)
    for result in results:
        assert result.dtype == dtype
        expected = by_loops(*arrays, is_causal=1)
        np.testing.assert_allclose(result.astype(float), expected, rtol=tolerance, atol=tolerance)


def test_values_may_have_another_type():
    q, k, v = QKV
    for entry in GRADES.values():
        y, _, values = compute(entry, [q, k, v.astype(np.float64)], output_count=3)
        assert y.dtype == np.float32
        assert values.dtype == np.float64
        np.testing.assert_allclose(y, by_loops(q, k, v), rtol=2e-5, atol=2e-6)


def test_large_scores_do_not_overflow():
    q = np.full((1, 1, 1, 2), 1e18, np.float32)
    k = np.array([[[[1e18, 0], [0, 1e17]]]], np.float32)
    v = np.array([[[[1], [2]]]], np.float32)
    for entry in GRADES.values():
        assert compute(entry, [q, k, v]).tolist() == [[[[1.0]]]]


@pytest.mark.parametrize("shape", [(0, 5, 7), (2, 0, 7), (2, 5, 0)])
def test_nothing(shape):
    batch, queries, keys = shape
    q, k, v = (np.ones((batch, 2, n, 3), np.float32) for n in (queries, keys, keys))
    for entry in GRADES.values():
        result = compute(entry, [q, k, v])
        assert result.shape == q.shape
        assert not result.any() or keys


def test_errors():
    q, k, v = QKV
    for entry in GRADES.values():
        with pytest.raises(ValueError, match="given together"):
            compute(entry, [q, k, v, None, PAST[0]])
        with pytest.raises(ValueError, match="nonpad_kv_seqlen cannot be combined"):
            compute(entry, [q, k, v, None, *PAST, np.array([1, 1])])
        with pytest.raises(ValueError, match="needs the number of heads"):
            compute(entry, [q[:, 0], k[:, 0], v[:, 0]])
        with pytest.raises(ValueError, match="window sizes are -2 and -1"):
            compute(entry, [q, k, v], left_window_size=-2)
