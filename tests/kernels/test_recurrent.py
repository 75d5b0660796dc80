"""RNN and GRU by hand: what no oracle covers. Values in bulk: test_recurrent_oracle."""

import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.parallel import use_threads
from foldline.kernels.recurrent import gru, rnn

ONE = np.ones((1, 1, 1), np.float32)
AFFINE = {"activations": ["Affine"]}


def steps(*values):
    return np.array(values, np.float32).reshape(-1, 1, 1)


def test_rnn_sums_up():
    y, last = rnn(steps(1, 2, 4), ONE, ONE, **AFFINE)
    assert y.shape == (3, 1, 1, 1)
    assert y.ravel().tolist() == [1, 3, 7]
    assert last.ravel().tolist() == [7]


@pytest.mark.parametrize(
    ("direction", "expected"),
    [("reverse", [[7, 6, 4]]), ("bidirectional", [[1, 3, 7], [7, 6, 4]])],
)
def test_directions(direction, expected):
    weights = np.ones((len(expected), 1, 1), np.float32)
    activations = ["Affine"] * len(expected)
    y, last = rnn(steps(1, 2, 4), weights, weights, direction=direction, activations=activations)
    assert y[:, :, 0, 0].T.tolist() == expected
    assert last.ravel().tolist() == [7] * len(expected)


def test_the_default_of_gru_1_is_forward_and_others_are_refused():
    x = steps(1, 2)
    w = np.ones((1, 3, 1), np.float32)
    assert gru(x, w, w, direction="foward")[0].tolist() == gru(x, w, w)[0].tolist()
    with pytest.raises(ValueError, match="direction is 'backward'"):
        gru(x, w, w, direction="backward")
    with pytest.raises(ValueError, match="W has 1 directions"):
        gru(x, w, w, direction="bidirectional")


def test_lengths_cut_the_output_and_keep_the_state():
    x = np.array([[1, 1, 1], [2, 2, 2], [4, 4, 4]], np.float32)[..., None]
    lengths = np.array([3, 2, 0], np.int32)
    start = np.full((1, 3, 1), 10, np.float32)
    y, last = rnn(x, ONE, ONE, None, lengths, start, **AFFINE)
    assert y[:, 0, :, 0].T.tolist() == [[11, 13, 17], [11, 13, 0], [0, 0, 0]]
    assert last.ravel().tolist() == [17, 13, 10]
    y, last = rnn(x, ONE, ONE, None, lengths, start, direction="reverse", **AFFINE)
    assert y[:, 0, :, 0].T.tolist() == [[17, 16, 14], [13, 12, 0], [0, 0, 0]]
    assert last.ravel().tolist() == [17, 13, 10]


@pytest.mark.parametrize("kernel", [rnn, gru])
def test_layout_1_is_batch_first(kernel):
    random = np.random.default_rng(0)
    gates = 3 if kernel is gru else 1
    x = random.standard_normal((5, 2, 3)).astype(np.float32)
    w = random.standard_normal((2, gates * 4, 3)).astype(np.float32)
    r = random.standard_normal((2, gates * 4, 4)).astype(np.float32)
    start = random.standard_normal((2, 2, 4)).astype(np.float32)
    lengths = np.array([5, 3], np.int32)
    options = {"direction": "bidirectional", "layout": 0}
    y, last = kernel(x, w, r, None, lengths, start, **options)
    options["layout"] = 1
    y_1, last_1 = kernel(
        np.swapaxes(x, 0, 1), w, r, None, lengths, np.swapaxes(start, 0, 1), **options
    )
    assert y_1.shape == (2, 5, 2, 4)
    assert last_1.shape == (2, 2, 4)
    assert y_1.tolist() == y.transpose(2, 0, 1, 3).tolist()
    assert last_1.tolist() == last.swapaxes(0, 1).tolist()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("kernel", [rnn, gru])
def test_narrow_floats_are_rounded_at_the_end(kernel, dtype):
    random = np.random.default_rng(1)
    gates = 3 if kernel is gru else 1
    shapes = [(4, 2, 3), (1, gates * 5, 3), (1, gates * 5, 5), (1, gates * 10)]
    narrow = [random.standard_normal(s).astype(dtype) for s in shapes]
    results = kernel(*narrow)
    wide = kernel(*[x.astype(np.float32) for x in narrow])
    for result, exact in zip(results, wide, strict=True):
        assert result.dtype == dtype
        assert result.tobytes() == exact.astype(dtype).tobytes()


def test_float64_stays_float64():
    x = np.full((1, 1, 1), 1e-20)
    y, _ = rnn(x + 1, x, x)
    assert y.dtype == np.float64
    assert y.item() == np.tanh(1e-20)


def test_linear_before_reset_differs_by_the_bias():
    # z = 0 and r = 1/2 by huge biases; h = 1: the recurrence bias is inside r only if set.
    w = np.zeros((1, 3, 1), np.float32)
    r = np.array([[[0], [0], [1]]], np.float32)
    b = np.array([[-50, 0, 0, 0, 0, 8]], np.float32)
    start = np.full((1, 1, 1), 4, np.float32)
    options = {"activations": ["Sigmoid", "Affine"]}
    x = np.zeros((1, 1, 1), np.float32)
    assert gru(x, w, r, b, None, start, linear_before_reset=0, **options)[1].item() == 10
    assert gru(x, w, r, b, None, start, linear_before_reset=1, **options)[1].item() == 6


@pytest.mark.parametrize("steps_batch", [(0, 2), (3, 0)])
def test_no_steps_or_no_batch(steps_batch):
    x = np.zeros((*steps_batch, 3), np.float32)
    w, r = np.ones((1, 4, 3), np.float32), np.ones((1, 4, 4), np.float32)
    start = np.full((1, steps_batch[1], 4), 3, np.float32)
    y, last = rnn(x, w, r, None, None, start)
    assert y.shape == (steps_batch[0], 1, steps_batch[1], 4)
    assert last.tolist() == start.tolist()


def test_results_do_not_depend_on_threads_and_inputs_stay():
    random = np.random.default_rng(2)
    x = random.standard_normal((6, 2, 3)).astype(np.float32)
    w = random.standard_normal((2, 12, 3)).astype(np.float32)
    r = random.standard_normal((2, 12, 4)).astype(np.float32)
    start = np.zeros((2, 2, 4), np.float32)
    before = [a.copy() for a in (x, w, r, start)]
    one = gru(x, w, r, None, None, start, direction="bidirectional")
    with use_threads(2):
        two = gru(x, w, r, None, None, start, direction="bidirectional")
    assert [a.tobytes() for a in one] == [a.tobytes() for a in two]
    assert all((a == b).all() for a, b in zip(before, (x, w, r, start), strict=True))


@pytest.mark.parametrize(("layer", "gates"), [(rnn, 1), (gru, 3)])
def test_old_attributes_change_nothing(layer, gates):
    random = np.random.default_rng(3)
    shapes = [(5, 2, 3), (1, 4 * gates, 3), (1, 4 * gates, 4)]
    inputs = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
    plain = layer(*inputs)
    old = layer(*inputs, output_sequence=1, hidden_size=4)
    assert [a.tolist() for a in plain] == [a.tolist() for a in old]
