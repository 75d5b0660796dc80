import numpy as np
import pytest

from foldline.support.errors import KernelFailed
from tests.kernels.contrib import assert_close, both, normal, one_node, own_results, scalar

BATCH, HEADS, KV_HEADS, SIZE = 2, 4, 2, 16
POSITIONS = 20
HEAD_ATTRIBUTES = {"num_heads": HEADS, "kv_num_heads": KV_HEADS}


def caches(size=SIZE):
    angles = np.arange(POSITIONS)[:, None] * np.linspace(1, 0.01, size // 2)
    return [np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)]


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("positions", ["each", "first"])
@pytest.mark.parametrize("shape", [(BATCH, 5, HEADS * SIZE), (BATCH, HEADS, 5, SIZE)])
def test_rotary_embedding(interleaved, positions, shape):
    places = (
        np.array([[0, 1, 2, 3, 4], [7, 8, 9, 10, 11]]) if positions == "each" else np.array([3])
    )
    inputs = [normal(*shape), places, *caches()]
    assert_close("RotaryEmbedding", inputs, {"interleaved": interleaved}, tolerance=1e-5)


def test_rotary_embedding_of_a_part():
    inputs = [normal(BATCH, 5, HEADS * SIZE), np.array([0]), *caches(8)]
    attributes = {"num_heads": HEADS, "rotary_embedding_dim": 8}
    assert_close("RotaryEmbedding", inputs, attributes, tolerance=1e-5)


def group_inputs(length, past, rotary, packed=False, lengths=None, total=None):
    widths = [HEADS * SIZE, KV_HEADS * SIZE, KV_HEADS * SIZE]
    parts = [normal(BATCH, length, width, seed=i) for i, width in enumerate(widths)]
    if packed:
        parts = [np.concatenate(parts, axis=2), None, None]
    shape = (BATCH, KV_HEADS, past, SIZE)
    total = past + length if total is None else total
    lengths = np.full(BATCH, total) if lengths is None else np.array(lengths)
    return [
        *parts,
        *([normal(*shape, seed=i) for i in (5, 6)] if past else (None, None)),
        (lengths - 1).astype(np.int32),
        scalar(total, np.int32),
        *(caches() if rotary else ()),
    ]


def check(inputs, attributes=None):
    """The results, of the cache only so much as is valid."""
    given = {**HEAD_ATTRIBUTES, **(attributes or {})}
    expected, actual = both("GroupQueryAttention", inputs, given, outputs=3, constant=(6,))
    np.testing.assert_allclose(actual[0], expected[0], rtol=2e-5, atol=2e-5)
    for own, wanted in zip(actual[1:], expected[1:], strict=True):
        assert own.shape == wanted.shape
        for row in range(BATCH):
            count = int(inputs[5][row]) + 1
            np.testing.assert_allclose(
                own[row, :, :count], wanted[row, :, :count], rtol=1e-5, atol=1e-5
            )


@pytest.mark.parametrize("rotary", [False, True])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("past", [0, 7])
def test_prompt_and_step(rotary, packed, past):
    inputs = group_inputs(1 if past else 5, past, rotary, packed)
    check(inputs, {"do_rotary": int(rotary)})


def test_rows_of_different_lengths():
    inputs = group_inputs(1, 9, True, lengths=[10, 6], total=10)
    check(inputs, {"do_rotary": 1})


def test_a_cache_that_is_longer():
    inputs = group_inputs(1, 12, True, lengths=[8, 8], total=8)
    check(inputs, {"do_rotary": 1})


@pytest.mark.parametrize("attributes", [{"scale": 0.5}, {"softcap": 2.0}, {"local_window_size": 3}])
@pytest.mark.parametrize("past", [0, 7])
def test_attributes(attributes, past):
    check(group_inputs(1 if past else 6, past, False), attributes)


@pytest.mark.parametrize("attributes", [{}, {"softcap": 2.0}, {"local_window_size": 3}])
@pytest.mark.parametrize("past", [0, 7])
@pytest.mark.parametrize("sinks", [False, True])
def test_sinks(attributes, past, sinks):
    inputs = group_inputs(1 if past else 6, past, False)
    if sinks:
        inputs += [None] * 4 + [normal(HEADS, seed=7)]
    else:
        attributes = {**attributes, "smooth_softmax": 1}
    check(inputs, attributes)


@pytest.mark.parametrize("shape", [(1, 1), (BATCH, HEADS)])
@pytest.mark.parametrize("past", [0, 7])
def test_attention_bias(shape, past):
    length = 1 if past else 6
    inputs = group_inputs(length, past, False)
    check([*inputs, None, None, None, normal(*shape, length, past + length, seed=7)])


EPSILONS = [
    ({}, 1e-6, 1e-6),
    ({"qk_norm_epsilon": 0.1}, 0.1, 0.1),
    ({"q_norm_epsilon": 0.1, "k_norm_epsilon": 0.2}, 0.1, 0.2),
]


@pytest.mark.parametrize(("attributes", "q_epsilon", "k_epsilon"), EPSILONS)
@pytest.mark.parametrize("rotary", [False, True])
def test_norms_of_heads(attributes, q_epsilon, k_epsilon, rotary):
    """ONNX Runtime has them for GPUs alone: it is given what they make."""
    inputs = group_inputs(5, 0, rotary)
    weights = [normal(SIZE, seed=seed) for seed in (7, 8)]
    rotates = {"do_rotary": int(rotary)}
    given = [*inputs, *[None] * (14 - len(inputs)), *weights]
    normed = {**HEAD_ATTRIBUTES, **rotates, **attributes}
    model = one_node("GroupQueryAttention", given, normed, (True,), constant=(6,))
    feed = {f"x{i}": x for i, x in enumerate(given) if x is not None and i != 6}
    (actual,) = own_results(model, feed)
    for i, (weight, epsilon) in enumerate(zip(weights, (q_epsilon, k_epsilon), strict=True)):
        heads = inputs[i].reshape(BATCH, 5, -1, SIZE)
        mean = (heads * heads).mean(axis=3, keepdims=True)
        inputs[i] = (heads / np.sqrt(mean + epsilon) * weight).reshape(inputs[i].shape)
        inputs[i] = inputs[i].astype(np.float32)
    plain = {**HEAD_ATTRIBUTES, **rotates}
    expected, _ = both("GroupQueryAttention", inputs, plain, outputs=3, constant=(6,))
    np.testing.assert_allclose(actual, expected[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("past", [0, 7])
def test_both_directions(past):
    check(group_inputs(1 if past else 5, past, False), {"causal": 0})


@pytest.mark.parametrize("attributes", [{"qk_output": 1}, {"sliding_window_cache": 1}])
def test_what_is_refused(attributes):
    inputs = group_inputs(3, 0, False)
    model = one_node("GroupQueryAttention", inputs, {**HEAD_ATTRIBUTES, **attributes}, (True,))
    with pytest.raises(KernelFailed, match="only attention with a plain cache"):
        own_results(model, {f"x{i}": x for i, x in enumerate(inputs) if x is not None})
