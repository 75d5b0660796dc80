import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import foldline
from foldline.kernels.lstm import lstm
from foldline.kernels.lstm_fast import lstm_in_place
from foldline.kernels.parallel import use_threads
from foldline.kernels.registry import Operand, Step, run_once

DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}


def _inputs(direction, sizes, dtype=np.float32, seed=0):
    steps, batch, size, hidden = sizes
    random, count = np.random.default_rng(seed), DIRECTIONS[direction]
    shapes = [
        (steps, batch, size), (count, 4 * hidden, size), (count, 4 * hidden, hidden),
        (count, 8 * hidden), None, (count, batch, hidden), (count, batch, hidden),
    ]  # fmt: skip
    return [s and random.standard_normal(s).astype(dtype) for s in shapes]


def _operands(inputs, constants):
    return [
        None if a is None else Operand(a.shape, a.dtype, a if i in constants else None)
        for i, a in enumerate(inputs)
    ]


def _check(inputs, constants=(1, 2, 3), limit=2e-6, **keywords):
    made = lstm_in_place(*_operands(inputs, constants), **keywords)
    expected = lstm(*inputs, **keywords)
    results = run_once(made, inputs)
    out = np.full_like(expected[0], np.nan)
    again = run_once(made, inputs, out=out)
    assert again[0] is out
    for result, same, wanted in zip(results, again, expected, strict=True):
        assert result.dtype == wanted.dtype
        assert result.tobytes() == same.tobytes()
        np.testing.assert_allclose(result, wanted, rtol=limit, atol=limit)
    return made, results


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("sizes", [(7, 1, 5, 6), (4, 3, 2, 17), (1, 1, 1, 1), (3, 2, 33, 16)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("constants", [(1, 2, 3), ()])
def test_a_layer_is_that_of_the_reference(direction, sizes, dtype, constants):
    inputs = _inputs(direction, sizes, dtype)
    kept = [None if a is None else a.copy() for a in inputs]
    made, _ = _check(inputs, constants, direction=direction)
    assert isinstance(made, Step)
    for given, before in zip(inputs, kept, strict=True):
        assert given is None or given.tobytes() == before.tobytes()


@pytest.mark.parametrize("missing", [(3,), (5,), (6,), (3, 5, 6)])
def test_without_biases_or_states(missing):
    inputs = _inputs("bidirectional", (5, 2, 3, 4))
    for position in missing:
        inputs[position] = None
    _check(inputs, direction="bidirectional")


@pytest.mark.parametrize("sizes", [(0, 2, 3, 4), (3, 0, 3, 4), (3, 2, 0, 4), (0, 1, 3, 4)])
@pytest.mark.parametrize("direction", ["bidirectional", "reverse"])
def test_of_size_zero(sizes, direction):
    _, results = _check(_inputs(direction, sizes), direction=direction)
    assert results[0].shape == (sizes[0], DIRECTIONS[direction], sizes[1], sizes[3])


def test_strided_inputs_give_the_same_bits():
    inputs = _inputs("forward", (6, 2, 5, 4))
    _, expected = _check(inputs)
    strided = [None if a is None else np.asfortranarray(a) for a in inputs]
    _, results = _check(strided, constants=())
    for result, same in zip(results, expected, strict=True):
        assert result.tobytes() == same.tobytes()


@pytest.mark.parametrize("hidden", [1, 7, 16, 100])
def test_one_sequence_alone_has_the_bits_of_one_direction_of_two(hidden):
    one = _inputs("forward", (5, 1, 3, hidden))
    two = [a if a is None or i == 0 else np.concatenate((a, a)) for i, a in enumerate(one)]
    alone = run_once(lstm_in_place(*_operands(one, (1, 2, 3))), one)
    both = run_once(lstm_in_place(*_operands(two, (1, 2, 3)), direction="bidirectional"), two)
    assert alone[0][:, 0].tobytes() == both[0][:, 0].tobytes()
    assert all(a[0].tobytes() == b[0].tobytes() for a, b in zip(alone[1:], both[1:], strict=True))


def test_gates_saturate_and_nan_spreads_in_its_row_only():
    inputs = _inputs("forward", (4, 3, 2, 5))
    inputs[0][1, 0] = 1e30
    inputs[0][2, 1] = np.nan
    with np.errstate(all="ignore"):
        _, (y, _, c) = _check(inputs)
    assert np.isnan(y[2:, 0, 1]).all()
    assert np.isfinite(y[:, 0, [0, 2]]).all()
    assert np.isfinite(c[0, [0, 2]]).all()


@pytest.mark.parametrize(
    "keywords",
    [
        {"clip": 0.5},
        {"input_forget": 1},
        {"activations": ("HardSigmoid", "Tanh", "Relu")},
        {"layout": 1},
        {"clip": 0.25, "direction": "reverse"},
    ],
)
def test_what_is_rare_is_left_to_the_reference(keywords):
    inputs = _inputs(keywords.get("direction", "forward"), (3, 3, 4, 5))
    if "layout" in keywords:
        inputs = [*inputs[:5], *(state.swapaxes(0, 1) for state in inputs[5:])]
    made, _ = _check(inputs, limit=0, **keywords)
    assert not isinstance(made, Step)


def test_names_of_activations_may_be_given():
    inputs = _inputs("reverse", (3, 2, 4, 5))
    names = ("sigmoid", "TANH", "Tanh")
    made, _ = _check(inputs, activations=names, direction="reverse")
    assert isinstance(made, Step)


@pytest.mark.parametrize("lengths", [[3, 3], [2, 3]])
@pytest.mark.parametrize("constant", [True, False])
def test_lengths_of_sequences(lengths, constant):
    inputs = _inputs("bidirectional", (3, 2, 4, 5))
    inputs[4] = np.array(lengths, np.int32)
    constants = (1, 2, 3, 4) if constant else (1, 2, 3)
    made, _ = _check(inputs, constants, direction="bidirectional")
    assert isinstance(made, Step) == (constant and lengths == [3, 3])


def test_narrow_floats_and_peepholes_are_left_to_the_reference():
    inputs = _inputs("forward", (3, 2, 4, 5), np.float16)
    _check(inputs, limit=0)
    inputs = [*_inputs("forward", (3, 2, 4, 5)), np.ones((1, 15), np.float32)]
    _check(inputs, limit=0)


def test_threads_do_not_change_a_bit():
    inputs = _inputs("bidirectional", (40, 16, 256, 64))
    made = lstm_in_place(*_operands(inputs, (1, 2, 3)), direction="bidirectional")
    expected = run_once(made, inputs)
    with use_threads(3):
        results = run_once(made, inputs)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(results, expected, strict=True))


def test_directions_that_do_not_fit_are_refused():
    inputs = _inputs("forward", (3, 2, 4, 5))
    with pytest.raises(ValueError, match="W has 1 directions"):
        run_once(lstm_in_place(*_operands(inputs, ()), direction="bidirectional"), inputs)


@pytest.mark.parametrize("batch", [1, 3])
def test_a_plan_that_has_taken_its_views_once_gives_fresh_states(batch):
    graph = parser.parse_graph(
        f"""g (float[4,{batch},3] x) => (float[4,1,{batch},5] n, float[1,{batch},5] h,
                                         float[1,{batch},5] c) {{
            t = Relu(x) y, h, c = LSTM<hidden_size = 5>(t, w, r, b) n = Neg(y)
        }}"""
    )
    _, w, r, b, *_ = _inputs("forward", (4, batch, 3, 5))
    weights = {"w": w, "r": r, "b": b}
    graph.initializer.extend(numpy_helper.from_array(a, name) for name, a in weights.items())
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 22)])
    session = foldline.compile(model).session(threads=1)
    inputs = [_inputs("forward", (4, batch, 3, 5), seed=seed)[0] for seed in range(5)]
    results = [session.run(None, {"x": x}) for x in inputs]
    for x, (negated, *states) in zip(inputs, results, strict=True):
        y, *wanted = lstm(np.maximum(x, 0), w, r, b)
        for result, expected in zip([-negated, *states], [y, *wanted], strict=True):
            np.testing.assert_allclose(result, expected, rtol=2e-6, atol=2e-6)
