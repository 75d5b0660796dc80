"""LSTM by hand: what no oracle covers. Values in bulk: test_recurrent_oracle."""

import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.lstm import lstm

ZERO_X = np.zeros((1, 1, 1), np.float32)
LINEAR = {"activations": ["Affine", "Affine", "Affine"]}


def test_gates_are_in_the_order_input_output_forget_cell():
    w = np.array([[[2], [3], [5], [7]]], np.float32)
    r = np.zeros((1, 4, 1), np.float32)
    c = np.full((1, 1, 1), 11, np.float32)
    y, h, c = lstm(ZERO_X + 1, w, r, None, None, None, c, **LINEAR)
    assert c.item() == 5 * 11 + 2 * 7
    assert y.item() == h.item() == 3 * 69


def test_peepholes_see_the_old_cell_and_the_output_gate_the_new():
    b = np.array([[0, 0, 0, 1, 0, 0, 0, 0]], np.float32)
    p = np.array([[2, 3, 5]], np.float32)
    zeros = np.zeros((1, 4, 1), np.float32)
    c = np.full((1, 1, 1), 10, np.float32)
    _, h, c = lstm(ZERO_X, zeros, zeros, b, None, None, c, p, **LINEAR)
    assert c.item() == 50 * 10 + 20 * 1
    assert h.item() == 3 * 520 * 520


def test_input_forget_couples_the_gates():
    w = np.array([[[0.25], [1], [100], [8]]], np.float32)
    r = np.zeros((1, 4, 1), np.float32)
    c = np.full((1, 1, 1), 4, np.float32)
    *_, c = lstm(ZERO_X + 1, w, r, None, None, None, c, input_forget=1, **LINEAR)
    assert c.item() == 0.75 * 4 + 0.25 * 8


def test_clip_is_at_the_gates_not_at_the_cell():
    w = np.array([[[9], [9], [9], [9]]], np.float32)
    r = np.zeros((1, 4, 1), np.float32)
    c = np.full((1, 1, 1), 10, np.float32)
    _, h, c = lstm(ZERO_X + 1, w, r, None, None, None, c, clip=2.0, **LINEAR)
    assert c.item() == 2 * 10 + 2 * 2
    assert h.item() == 2 * 24


def random_inputs(dtype, directions=2):
    random = np.random.default_rng(0)
    shapes = [(5, 3, 2), (directions, 16, 2), (directions, 16, 4), (directions, 32)]
    arrays = [random.standard_normal(s).astype(dtype) for s in shapes]
    states = [random.standard_normal((directions, 3, 4)).astype(dtype) for _ in range(2)]
    peepholes = random.standard_normal((directions, 12)).astype(dtype)
    return [*arrays, np.array([5, 2, 3], np.int32), *states, peepholes]


def test_layout_1_is_batch_first():
    inputs = random_inputs(np.float32)
    y, *states = lstm(*inputs, direction="bidirectional")
    for place in (0, 5, 6):
        inputs[place] = inputs[place].swapaxes(0, 1)
    y_1, *states_1 = lstm(*inputs, direction="bidirectional", layout=1)
    assert y_1.tolist() == y.transpose(2, 0, 1, 3).tolist()
    for state, state_1 in zip(states, states_1, strict=True):
        assert state_1.tolist() == state.swapaxes(0, 1).tolist()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_floats_are_rounded_at_the_end(dtype):
    inputs = random_inputs(dtype)
    results = lstm(*inputs, direction="bidirectional")
    wide = [x.astype(np.float32) if x.dtype == dtype else x for x in inputs]
    for result, exact in zip(results, lstm(*wide, direction="bidirectional"), strict=True):
        assert result.dtype == dtype
        assert result.tobytes() == exact.astype(dtype).tobytes()


def test_old_attributes_change_nothing():
    inputs = random_inputs(np.float32, 1)
    plain = lstm(*inputs)
    old = lstm(*inputs, output_sequence=1, hidden_size=4)
    assert [a.tolist() for a in plain] == [a.tolist() for a in old]
