import numpy as np
import pytest

from foldline.support.errors import KernelFailed
from tests.kernels.contrib import (
    assert_close,
    integers,
    normal,
    one_node,
    own_results,
    scalar,
)

BATCH, LENGTH, HEADS, SIZE = 2, 4, 2, 3
HIDDEN = HEADS * SIZE
MASKS = {
    "none": None,
    "ends": np.array([3, 2], np.int32),
    "ends and starts": np.array([3, 4, 1, 0], np.int32),
    "keys": np.array([[1, 1, 1, 0], [0, 1, 1, 1]], np.int32),
    "queries and keys": np.tril(np.ones((BATCH, LENGTH, LENGTH), np.int32)),
    "ends, of packed lengths": np.array([3, 2, 0, 4, 6, 0, 4, 6], np.int32),
    "of no effect": np.array([[1], [0]], np.int32),
}
EACH_MASK = pytest.mark.parametrize("mask", list(MASKS.values()), ids=list(MASKS))


def self_inputs(mask=None, past=None, bias=None):
    return [
        normal(BATCH, LENGTH, 5),
        normal(5, 3 * HIDDEN, seed=1),
        normal(3 * HIDDEN, seed=2),
        mask,
        past,
        bias,
    ]


@EACH_MASK
@pytest.mark.parametrize("unidirectional", [0, 1])
@pytest.mark.parametrize("hidden", [-1.0, -10000.0])
def test_attention_masks(mask, unidirectional, hidden):
    attributes = {"num_heads": HEADS, "unidirectional": unidirectional}
    attributes |= {"mask_filter_value": hidden}
    assert_close("Attention", self_inputs(mask), attributes, tolerance=5e-6)


@pytest.mark.parametrize("unidirectional", [0, 1])
def test_attention_past(unidirectional):
    past = normal(2, BATCH, HEADS, 3, SIZE, seed=3)
    inputs = self_inputs(np.array([[1] * 7, [0, 0] + [1] * 5], np.int32), past)
    attributes = {"num_heads": HEADS, "unidirectional": unidirectional}
    assert_close("Attention", inputs, attributes, outputs=2, tolerance=5e-6)


@pytest.mark.parametrize("shape", [(BATCH, HEADS, LENGTH, LENGTH), (1, 1, LENGTH, LENGTH)])
@pytest.mark.parametrize("scale", [0.7, 0.0])
def test_attention_bias(shape, scale):
    inputs = self_inputs(MASKS["keys"], bias=normal(*shape, seed=4))
    assert_close("Attention", inputs, {"num_heads": HEADS, "scale": scale}, tolerance=5e-6)


def test_attention_of_narrow_queries():
    inputs = [normal(BATCH, LENGTH, 5), normal(5, 4 + 4 + 6, seed=1), normal(14, seed=2)]
    attributes = {"num_heads": HEADS, "qkv_hidden_sizes": [4, 4, 6]}
    assert_close("Attention", inputs, attributes, tolerance=5e-6)


def test_attention_presents_without_past():
    assert_close("Attention", self_inputs(), {"num_heads": HEADS}, outputs=2, tolerance=5e-6)


@pytest.mark.parametrize("kinds", [(np.uint8, np.uint8), (np.uint8, np.int8)])
@pytest.mark.parametrize("by_column", [False, True])
@pytest.mark.parametrize("constant", [(), (1, 4, 7)])
def test_quantised_attention(kinds, by_column, constant):
    columns = np.full(3 * HIDDEN, 2) if by_column else 2
    inputs = [
        integers(BATCH, LENGTH, 8, dtype=kinds[0]),
        integers(8, 3 * HIDDEN, dtype=kinds[1], seed=1) // 4,
        normal(3 * HIDDEN, seed=2),
        scalar(0.01),
        np.asarray(columns * 0.004, np.float32),
        MASKS["keys"],
        scalar(120, kinds[0]),
        np.asarray(columns, kinds[1]),
    ]
    attributes = {"num_heads": HEADS, "unidirectional": 1}
    assert_close("QAttention", inputs, attributes, constant=constant, tolerance=5e-6)


def test_quantised_attention_past():
    inputs = [
        integers(BATCH, LENGTH, 8),
        integers(8, 3 * HIDDEN, seed=1),
        normal(3 * HIDDEN, seed=2),
    ]
    inputs += [scalar(0.01), scalar(0.004), None, None, None, normal(2, BATCH, HEADS, 3, SIZE)]
    assert_close("QAttention", inputs, {"num_heads": HEADS}, outputs=2, tolerance=5e-6)


def cross_inputs(mask=None, bias=False, added=None, keys=LENGTH):
    query = normal(BATCH, LENGTH, HIDDEN)
    key, value = normal(BATCH, keys, HIDDEN, seed=1), normal(BATCH, keys, 2 * HIDDEN, seed=2)
    shift = normal(4 * HIDDEN, seed=3) if bias else None
    return [query, key, value, shift, mask, added]


@pytest.mark.parametrize("mask", ["none", "ends", "keys", "queries and keys"])
@pytest.mark.parametrize("unidirectional", [0, 1])
@pytest.mark.parametrize("bias", [False, True])
def test_multi_head_masks(mask, unidirectional, bias):
    attributes = {"num_heads": HEADS, "unidirectional": unidirectional, "mask_filter_value": -2.0}
    assert_close("MultiHeadAttention", cross_inputs(MASKS[mask], bias), attributes, tolerance=5e-6)


@pytest.mark.parametrize("outputs", [3, (True, False, True)])
def test_multi_head_presents(outputs):
    inputs = cross_inputs(added=normal(1, HEADS, LENGTH, 6, seed=4), keys=6)
    assert_close(
        "MultiHeadAttention", inputs, {"num_heads": HEADS}, outputs=outputs, tolerance=5e-6
    )


@pytest.mark.parametrize("unidirectional", [0, 1])
def test_multi_head_past(unidirectional):
    past = [normal(BATCH, HEADS, 3, SIZE, seed=seed) for seed in (5, 6)]
    attributes = {"num_heads": HEADS, "unidirectional": unidirectional, "scale": 0.5}
    inputs = cross_inputs() + past
    inputs[2] = inputs[2][:, :, :HIDDEN].copy()
    assert_close("MultiHeadAttention", inputs, attributes, outputs=3, tolerance=5e-6)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("added", [None, normal(BATCH, 1, LENGTH, 6, seed=4)])
def test_multi_head_of_more_keys_than_queries(bias, added):
    """The last query sees all keys, however many there are."""
    inputs = cross_inputs(bias=bias, added=added, keys=6)
    attributes = {"num_heads": HEADS, "unidirectional": 1}
    assert_close("MultiHeadAttention", inputs, attributes, tolerance=5e-6)


BEAMS = np.array([[[1, 0, 1], [0, 0, 1], [1, 2, 2]], [[0, 2, 2], [2, 1, 0], [0, 0, 0]]], np.int32)


@pytest.mark.parametrize("length", [1, 2])
@pytest.mark.parametrize("mask", [False, True])
def test_multi_head_past_in_a_buffer(length, mask):
    inputs = [normal(BATCH, length, HIDDEN, seed=seed) for seed in range(3)]
    inputs += [normal(3 * HIDDEN, seed=3), None, None]
    inputs[4] = np.arange(BATCH * (3 + length)).reshape(BATCH, -1).astype(np.int32) % 3 * mask
    inputs += [normal(BATCH, HEADS, 8, SIZE, seed=seed) for seed in (5, 6)]
    inputs.append(np.array([3], np.int32))
    _, keys, _ = assert_close(
        "MultiHeadAttention", inputs, {"num_heads": HEADS}, outputs=3, tolerance=5e-6
    )
    kept = [0, 1, 2, *range(3 + length, 8)]
    np.testing.assert_array_equal(keys[:, :, kept], inputs[6][:, :, kept])


def test_multi_head_past_of_beams():
    rows = BEAMS.shape[0] * BEAMS.shape[1]
    inputs = [normal(rows, 1, HIDDEN, seed=seed) for seed in range(3)] + [None] * 3
    inputs += [normal(rows, HEADS, 8, SIZE, seed=seed) for seed in (5, 6)]
    inputs.append(np.array([3], np.int32))
    inputs.append(np.pad(BEAMS, [(0, 0), (0, 0), (0, 5)]))
    assert_close("MultiHeadAttention", inputs, {"num_heads": HEADS}, outputs=3, tolerance=5e-6)


def test_multi_head_of_split_keys():
    inputs = [normal(BATCH, LENGTH, HIDDEN)]
    inputs += [normal(BATCH, HEADS, 6, SIZE, seed=seed) for seed in (1, 2)]
    assert_close("MultiHeadAttention", inputs, {"num_heads": HEADS}, tolerance=5e-6)


def test_multi_head_packed():
    whole = normal(BATCH, LENGTH, HEADS, 3, SIZE)
    pairs = normal(BATCH, 6, HEADS, 2, SIZE, seed=1)
    for inputs in ([whole], [normal(BATCH, LENGTH, HIDDEN, seed=2), pairs]):
        (packed,) = _own("MultiHeadAttention", inputs)
        parts = [
            x[:, :, :, n].reshape(*x.shape[:2], HIDDEN)
            for x in inputs
            if x.ndim == 5
            for n in range(x.shape[3])
        ]
        (apart,) = _own("MultiHeadAttention", [x for x in inputs if x.ndim == 3] + parts)
        np.testing.assert_array_equal(packed, apart)


def test_multi_head_scores():
    """The last output has a type of its own, so ONNX Runtime cannot be asked without declaring."""
    inputs = cross_inputs(MASKS["keys"])
    attributes = {"num_heads": HEADS, "unidirectional": 1, "mask_filter_value": -2.0}
    *_, scores = _own("MultiHeadAttention", inputs, attributes, 4)
    q, k = (x.reshape(BATCH, -1, HEADS, SIZE).transpose(0, 2, 1, 3) for x in inputs[:2])
    expected = q @ k.swapaxes(-1, -2) / np.sqrt(SIZE) - 2.0 * (MASKS["keys"] == 0)[:, None, None]
    hidden = np.triu(np.ones((LENGTH, LENGTH), bool), 1)
    np.testing.assert_allclose(scores[..., ~hidden], expected[..., ~hidden], rtol=1e-5)
    assert (scores[..., hidden] == np.finfo(np.float32).min).all()


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes", "message"),
    [
        ("Attention", self_inputs(), {"do_rotary": 1}, "do_rotary is not supported"),
        ("Attention", self_inputs(np.ones(5, np.int32)), {}, r"a mask of shape \(5,\)"),
        (
            "Attention",
            self_inputs(past=normal(2, BATCH, HEADS, 8, SIZE)),
            {"past_present_share_buffer": 1},
            "past_present_share_buffer is not supported",
        ),
    ],
)
def test_forms_that_are_refused(op_type, inputs, attributes, message):
    with pytest.raises(KernelFailed, match=message):
        _own(op_type, inputs, {"num_heads": HEADS, **attributes})


def _own(op_type, inputs, attributes=None, outputs=1):
    given = attributes or {"num_heads": HEADS}
    model = one_node(op_type, inputs, given, (True,) * outputs, "com.microsoft", ())
    return own_results(model, {f"x{i}": x for i, x in enumerate(inputs) if x is not None})
