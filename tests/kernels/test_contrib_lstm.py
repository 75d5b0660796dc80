import numpy as np
import pytest

from foldline.kernels.contrib_lstm import dynamic_quantize_lstm
from foldline.kernels.registry import Operand
from tests.kernels.contrib import assert_close, integers, normal, scalar

ZEROS = (9, 11)
"""ONNX Runtime wants constant zero points, one of signed weights to be 0."""
ALL = (1, 2, 8, 9, 10, 11)
STEPS, BATCH, SIZE, HIDDEN = 5, 3, 6, 4


def inputs(directions, dtype, by_column, **given):
    columns = np.arange(1, 4 * HIDDEN + 1) if by_column else np.array(8)
    scales = np.broadcast_to(columns * 0.0004, (directions, *columns.shape))
    zeros = np.full(scales.shape, 0 if dtype == np.int8 else 3)
    weights = [
        integers(directions, size, 4 * HIDDEN, dtype=dtype, seed=size) // 4
        for size in (SIZE, HIDDEN)
    ]
    optional = [given.get(name) for name in ("b", "lengths", "h", "c", "p")]
    parameters = [scales.astype(np.float32), zeros.astype(dtype)]
    return [normal(STEPS, BATCH, SIZE), *weights, *optional, *parameters, *parameters]


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("by_column", [False, True])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("constant", [ZEROS, ALL])
def test_directions(dtype, by_column, direction, constant):
    directions = 1 + (direction == "bidirectional")
    given = inputs(directions, dtype, by_column, b=normal(directions, 8 * HIDDEN, seed=1))
    attributes = {"hidden_size": HIDDEN, "direction": direction}
    assert_close(
        "DynamicQuantizeLSTM", given, attributes, outputs=3, constant=constant, tolerance=2e-5
    )


def test_states_lengths_and_peepholes():
    given = inputs(
        1,
        np.uint8,
        False,
        lengths=np.array([5, 2, 4], np.int32),
        h=normal(1, BATCH, HIDDEN, seed=2),
        c=normal(1, BATCH, HIDDEN, seed=3),
        p=normal(1, 3 * HIDDEN, seed=4),
    )
    attributes = {"hidden_size": HIDDEN, "clip": 0.8}
    y, *_ = assert_close(
        "DynamicQuantizeLSTM", given, attributes, outputs=3, constant=ZEROS, tolerance=2e-5
    )
    assert not y[2:, 0, 1].any()


def test_some_outputs_and_other_functions():
    attributes = {"hidden_size": HIDDEN, "activations": ["HardSigmoid", "Relu", "Tanh"]}
    attributes |= {"input_forget": 1}
    given = inputs(1, np.uint8, False)
    assert_close(
        "DynamicQuantizeLSTM",
        given,
        attributes,
        outputs=(False, True),
        constant=ZEROS,
        tolerance=2e-5,
    )


def test_inputs_that_are_all_zero():
    given = inputs(1, np.uint8, False, h=normal(1, BATCH, HIDDEN, seed=2))
    given[0] = given[0][:1] * scalar(0)
    assert_close(
        "DynamicQuantizeLSTM",
        given,
        {"hidden_size": HIDDEN},
        outputs=3,
        constant=ZEROS,
        tolerance=2e-5,
    )


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("lengths", [None, np.array([5, 2, 4], np.int32)])
def test_the_step_in_place_has_the_bits_of_the_other(dtype, lengths):
    given = inputs(2, dtype, True, b=normal(2, 8 * HIDDEN, seed=1), lengths=lengths)
    attributes = {"hidden_size": HIDDEN, "direction": "bidirectional"}
    operands = [
        None if x is None else Operand(x.shape, x.dtype, x if i in ALL else None)
        for i, x in enumerate(given)
    ]
    plain = dynamic_quantize_lstm(*operands, **attributes)(*given)
    other = dynamic_quantize_lstm(*operands, **attributes, clip=1e30)(*given)
    for ours, theirs in zip(plain, other, strict=True):
        assert ours.tobytes() == theirs.tobytes()
