import numpy as np
import pytest

from foldline.kernels.gru_fast import gru_in_place, rnn_in_place
from foldline.kernels.parallel import use_threads
from foldline.kernels.recurrent import gru, rnn
from foldline.kernels.registry import Operand, Step, run_once
from tests.kernels.test_recurrent_oracle import onnxruntime_results

DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}
KINDS = {
    "reset before": ("GRU", gru, gru_in_place, 3, {"linear_before_reset": 0}),
    "reset after": ("GRU", gru, gru_in_place, 3, {"linear_before_reset": 1}),
    "tanh": ("RNN", rnn, rnn_in_place, 1, {}),
}


def _inputs(kind, direction, sizes, dtype=np.float32, scale=1.0):
    steps, batch, size, hidden = sizes
    random, count, gates = np.random.default_rng(0), DIRECTIONS[direction], KINDS[kind][3]
    shapes = [
        (steps, batch, size), (count, gates * hidden, size), (count, gates * hidden, hidden),
        (count, 2 * gates * hidden), None, (count, batch, hidden),
    ]  # fmt: skip
    return [s and (random.standard_normal(s) * scale).astype(dtype) for s in shapes]


def _made(kind, inputs, constants, keywords):
    operands = [
        None if a is None else Operand(a.shape, a.dtype, a if i in constants else None)
        for i, a in enumerate(inputs)
    ]
    return KINDS[kind][2](*operands, **KINDS[kind][4], **keywords)


def _check(kind, inputs, constants=(1, 2, 3), limit=2e-6, **keywords):
    made = _made(kind, inputs, constants, keywords)
    expected = KINDS[kind][1](*inputs, **KINDS[kind][4], **keywords)
    results = run_once(made, inputs)
    out = np.full_like(expected[0], np.nan)
    again = run_once(made, inputs, out=out)
    assert again[0] is out
    for result, same, wanted in zip(results, again, expected, strict=True):
        assert result.dtype == wanted.dtype
        assert result.tobytes() == same.tobytes()
        np.testing.assert_allclose(result, wanted, rtol=limit, atol=limit)
    return made, results


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("sizes", [(7, 1, 5, 6), (4, 3, 2, 17), (1, 1, 1, 1), (3, 2, 33, 16)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("constants", [(1, 2, 3), ()])
def test_a_layer_is_that_of_the_reference(kind, direction, sizes, dtype, constants):
    inputs = _inputs(kind, direction, sizes, dtype, 0.5)
    kept = [None if a is None else a.copy() for a in inputs]
    made, _ = _check(kind, inputs, constants, direction=direction)
    assert isinstance(made, Step)
    for given, before in zip(inputs, kept, strict=True):
        assert given is None or given.tobytes() == before.tobytes()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("missing", [(), (3, 5)])
def test_a_layer_is_that_of_onnxruntime(kind, direction, missing):
    op_type, _, _, _, attributes = KINDS[kind]
    inputs = _inputs(kind, direction, (20, 2, 9, 13), scale=0.4)
    for position in missing:
        inputs[position] = None
    keywords = attributes | {"direction": direction, "hidden_size": 13}
    expected = onnxruntime_results(op_type, inputs, keywords, 2)
    made = _made(kind, inputs, (1, 2, 3), {"direction": direction})
    for result, wanted in zip(run_once(made, inputs), expected, strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("missing", [(3,), (5,), (3, 5)])
def test_without_biases_or_a_state(kind, missing):
    inputs = _inputs(kind, "bidirectional", (5, 2, 3, 4))
    for position in missing:
        inputs[position] = None
    _check(kind, inputs, direction="bidirectional")
    _check(kind, inputs[:3], direction="bidirectional")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sizes", [(0, 2, 3, 4), (3, 0, 3, 4), (3, 2, 0, 4), (0, 1, 3, 4)])
@pytest.mark.parametrize("direction", ["bidirectional", "reverse"])
def test_of_size_zero(kind, sizes, direction):
    _, results = _check(kind, _inputs(kind, direction, sizes), direction=direction)
    assert results[0].shape == (sizes[0], DIRECTIONS[direction], sizes[1], sizes[3])


@pytest.mark.parametrize("kind", KINDS)
def test_strided_inputs_give_the_same_bits(kind):
    inputs = _inputs(kind, "forward", (6, 2, 5, 4))
    _, expected = _check(kind, inputs)
    strided = [None if a is None else np.asfortranarray(a) for a in inputs]
    _, results = _check(kind, strided, constants=())
    for result, same in zip(results, expected, strict=True):
        assert result.tobytes() == same.tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_gates_saturate_and_nan_spreads_in_its_row_only(kind):
    inputs = _inputs(kind, "forward", (4, 3, 2, 5))
    inputs[0][1, 0] = 1e30
    inputs[0][2, 1] = np.nan
    with np.errstate(all="ignore"):
        _, (y, h) = _check(kind, inputs)
    assert np.isnan(y[2:, 0, 1]).all()
    assert np.isfinite(y[:, 0, [0, 2]]).all()
    assert np.isfinite(h[0, [0, 2]]).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "keywords",
    [
        {"clip": 0.5},
        {"activations": ("HardSigmoid", "Elu")},
        {"layout": 1},
        {"clip": 0.25, "direction": "reverse"},
    ],
)
def test_what_is_rare_is_left_to_the_reference(kind, keywords):
    inputs = _inputs(kind, keywords.get("direction", "forward"), (3, 3, 4, 5))
    if "layout" in keywords:
        inputs[5] = inputs[5].swapaxes(0, 1)
    made, _ = _check(kind, inputs, limit=0, **keywords)
    assert not isinstance(made, Step)


def test_names_of_activations_may_be_given():
    inputs = _inputs("reset after", "bidirectional", (3, 2, 4, 5))
    names = ("SIGMOID", "tanh", "Sigmoid", "Tanh")
    made, _ = _check("reset after", inputs, activations=names, direction="bidirectional")
    assert isinstance(made, Step)


@pytest.mark.parametrize(
    ("names", "is_fast"), [(("Relu", "relu"), True), (("Tanh", "Relu"), False)]
)
def test_a_plain_layer_of_relus(names, is_fast):
    inputs = _inputs("tanh", "bidirectional", (3, 2, 4, 5), scale=0.5)
    made, (y, _) = _check("tanh", inputs, activations=names, direction="bidirectional")
    assert isinstance(made, Step) == is_fast
    assert (y[:, int(not is_fast) :] >= 0).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lengths", [[3, 3], [2, 3]])
@pytest.mark.parametrize("constant", [True, False])
def test_lengths_of_sequences(kind, lengths, constant):
    inputs = _inputs(kind, "bidirectional", (3, 2, 4, 5))
    inputs[4] = np.array(lengths, np.int32)
    constants = (1, 2, 3, 4) if constant else (1, 2, 3)
    made, _ = _check(kind, inputs, constants, direction="bidirectional")
    assert isinstance(made, Step) == (constant and lengths == [3, 3])


@pytest.mark.parametrize("kind", KINDS)
def test_narrow_floats_are_left_to_the_reference(kind):
    _check(kind, _inputs(kind, "forward", (3, 2, 4, 5), np.float16), limit=0)


@pytest.mark.parametrize("kind", KINDS)
def test_threads_do_not_change_a_bit(kind):
    inputs = _inputs(kind, "bidirectional", (40, 16, 256, 64))
    made = _made(kind, inputs, (1, 2, 3), {"direction": "bidirectional"})
    expected = run_once(made, inputs)
    with use_threads(3):
        results = run_once(made, inputs)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(results, expected, strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_directions_that_do_not_fit_are_refused(kind):
    inputs = _inputs(kind, "forward", (3, 2, 4, 5))
    with pytest.raises(ValueError, match="W has 1 directions"):
        run_once(_made(kind, inputs, (), {"direction": "bidirectional"}), inputs)


@pytest.mark.parametrize("names", [("Sigmoid",), ("Sigmoid", "Odd")])
def test_wrong_activations_are_refused(names):
    inputs = _inputs("reset after", "forward", (3, 2, 4, 5))
    with pytest.raises(ValueError, match="activation"):
        run_once(_made("reset after", inputs, (), {"activations": names}), inputs)
