import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.linear_attention import linear_attention

BATCH, STEPS, HEADS, GROUP, SIZE, V_SIZE = 2, 6, 2, 2, 3, 4
RULES = {"linear": (0, 0), "gated": (1, 0), "delta": (0, 1), "gated_delta": (1, 1)}


def inputs(rule, per_element=True, shared_rate=False, dtype=np.float32):
    random = np.random.default_rng(0)

    def normal(*shape):
        return (random.standard_normal(shape) * 0.5).astype(dtype)

    gated, delta = RULES[rule]
    decay = -abs(normal(BATCH, STEPS, HEADS * SIZE if per_element else HEADS))
    beta = abs(normal(BATCH, STEPS, 1 if shared_rate else HEADS))
    return [
        normal(BATCH, STEPS, HEADS * GROUP * SIZE),
        normal(BATCH, STEPS, HEADS * SIZE),
        normal(BATCH, STEPS, HEADS * V_SIZE),
        normal(BATCH, HEADS, SIZE, V_SIZE),
        decay if gated else None,
        beta if delta else None,
    ]


def by_loops(q, k, v, state, decay, beta, scale):
    state = np.zeros((BATCH, HEADS, SIZE, V_SIZE)) if state is None else state.astype(float)
    out = np.zeros((BATCH, STEPS, HEADS, GROUP, V_SIZE))
    for b, h in np.ndindex(BATCH, HEADS):
        s = state[b, h].copy()
        for t in range(STEPS):
            key = k[b, t].reshape(HEADS, SIZE)[h].astype(float)
            new = v[b, t].reshape(HEADS, V_SIZE)[h].astype(float)
            if decay is not None:
                gate = np.exp(decay[b, t].reshape(HEADS, -1)[h].astype(float))
                s = gate[:, None] * s
            if beta is not None:
                rate = beta[b, t].reshape(-1)[h if beta.shape[2] > 1 else 0]
                new = rate * (new - s.T @ key)
            s = s + np.outer(key, new)
            for g in range(GROUP):
                query = q[b, t].reshape(HEADS, GROUP, SIZE)[h, g]
                out[b, t, h, g] = scale * (s.T @ query)
        state[b, h] = s
    return out.reshape(BATCH, STEPS, -1), state


HEAD_COUNTS = {"q_num_heads": HEADS * GROUP, "kv_num_heads": HEADS}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("per_element", [False, True])
@pytest.mark.parametrize("shared_rate", [False, True])
@pytest.mark.parametrize("scale", [0.0, 0.25])
def test_rules(rule, per_element, shared_rate, scale):
    arrays = inputs(rule, per_element, shared_rate)
    for start in (arrays[3], None):
        arrays[3] = start
        before = [None if a is None else a.copy() for a in arrays]
        y, state = linear_attention(*arrays, update_rule=rule, scale=scale, **HEAD_COUNTS)
        expected = by_loops(*arrays, scale or SIZE**-0.5)
        np.testing.assert_allclose(y, expected[0], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(state, expected[1], rtol=1e-5, atol=1e-6)
        for array, old in zip(arrays, before, strict=True):
            assert array is old is None or (array == old).all()


def test_steps_can_be_taken_in_two_runs():
    q, k, v, start, decay, beta = inputs("gated_delta")
    whole = linear_attention(q, k, v, start, decay, beta, chunk_size=2, **HEAD_COUNTS)
    parts, state = [], start
    for some in (slice(0, 4), slice(4, 6)):
        y, state = linear_attention(
            *(x[:, some] for x in (q, k, v)), state, decay[:, some], beta[:, some], **HEAD_COUNTS
        )
        parts.append(y)
    assert np.concatenate(parts, axis=1).tobytes() == whole[0].tobytes()
    assert state.tobytes() == whole[1].tobytes()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_floats_are_rounded_at_the_end(dtype):
    arrays = inputs("gated_delta", dtype=dtype)
    arrays[3] = arrays[3].astype(np.float32)
    y, state = linear_attention(*arrays, **HEAD_COUNTS)
    assert (y.dtype, state.dtype) == (dtype, np.float32)
    wide = linear_attention(*(a.astype(np.float32) for a in arrays), **HEAD_COUNTS)
    assert y.tobytes() == wide[0].astype(dtype).tobytes()
    assert state.tobytes() == wide[1].tobytes()
    arrays[3] = None
    assert linear_attention(*arrays, **HEAD_COUNTS)[1].dtype == dtype


def test_errors_and_nothing():
    q, k, v, start, decay, beta = inputs("gated_delta")
    with pytest.raises(ValueError, match="'delta' forbids decay"):
        linear_attention(q, k, v, start, decay, beta, update_rule="delta", **HEAD_COUNTS)
    with pytest.raises(ValueError, match="'gated_delta' needs beta"):
        linear_attention(q, k, v, start, decay, **HEAD_COUNTS)
    with pytest.raises(ValueError, match="update_rule is 'fast'"):
        linear_attention(q, k, v, update_rule="fast", **HEAD_COUNTS)
    with pytest.raises(ValueError, match="not a positive multiple"):
        linear_attention(q, k, v, start, decay, beta, q_num_heads=3, kv_num_heads=2)
    y, state = linear_attention(
        q[:, :0], k[:, :0], v[:, :0], start, update_rule="linear", **HEAD_COUNTS
    )
    assert y.shape == (BATCH, 0, HEADS * GROUP * V_SIZE)
    assert state.tolist() == start.tolist()
