"""RNN, GRU and LSTM in exact mode: values, batches and threads, activations, NaN."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from foldline.kernels import exact_recurrent, lstm, recurrent
from foldline.kernels.parallel import use_threads

GATES = {"rnn": 1, "gru": 3, "lstm": 4}
ACTIVATIONS = (
    "Relu Tanh Sigmoid Affine LeakyRelu ThresholdedRelu ScaledTanh HardSigmoid Elu Softsign "
    "Softplus"
).split()


def exact(name: str, *inputs: Any, **attributes: Any) -> tuple[np.ndarray, ...]:
    return getattr(exact_recurrent, name)(*inputs, **attributes)


def reference(name: str, *inputs: Any, **attributes: Any) -> tuple[np.ndarray, ...]:
    return getattr(lstm if name == "lstm" else recurrent, name)(*inputs, **attributes)


def given(name: str, directions: int = 1) -> list[np.ndarray]:
    random = np.random.default_rng(5)
    rows = GATES[name] * 4
    shapes = [(6, 3, 5), (directions, rows, 5), (directions, rows, 4), (directions, 2 * rows)]
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_values_batches_and_threads(name: str, direction: str) -> None:
    inputs = given(name, 2 if direction == "bidirectional" else 1)
    found = exact(name, *inputs, direction=direction, clip=2.0)
    for a, b in zip(found, reference(name, *inputs, direction=direction, clip=2.0), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    with use_threads(2):
        again = exact(name, *inputs, direction=direction, clip=2.0)
    assert [a.tobytes() for a in again] == [a.tobytes() for a in found]
    alone = exact(name, inputs[0][:, 1:2], *inputs[1:], direction=direction, clip=2.0)
    assert alone[0].tobytes() == found[0][:, :, 1:2].tobytes()


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations(activation: str) -> None:
    inputs = given("rnn")
    attributes: dict[str, Any] = {"activations": [activation]}
    if activation in ("Affine", "ScaledTanh", "HardSigmoid"):
        attributes |= {"activation_alpha": [0.6], "activation_beta": [0.3]}
    found, expected = (run("rnn", *inputs, **attributes) for run in (exact, reference))
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", GATES)
def test_lengths_layout_and_states(name: str) -> None:
    inputs = given(name)
    inputs[0] = inputs[0].swapaxes(0, 1)
    states = [np.full((3, 1, 4), 0.25, np.float32)] * (2 if name == "lstm" else 1)
    more = [np.array([6, 2, 4], np.int32), *states]
    if name == "lstm":
        more.append(np.linspace(-1, 1, 12, dtype=np.float32).reshape(1, 12))
    attributes: dict[str, Any] = {"layout": 1}
    attributes |= {"gru": {"linear_before_reset": 1}, "lstm": {"input_forget": 1}}.get(name, {})
    found, expected = (run(name, *inputs, *more, **attributes) for run in (exact, reference))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_types(name: str, dtype: Any) -> None:
    inputs = [v.astype(dtype) for v in given(name)]
    wide = exact(name, *(v.astype(np.float32) for v in inputs))
    found = exact(name, *inputs)
    assert [a.tobytes() for a in found] == [a.astype(dtype).tobytes() for a in wide]


@pytest.mark.parametrize("name", GATES)
def test_nan(name: str) -> None:
    inputs = given(name)
    inputs[0].view(np.uint32)[3, 1, 2] = 0xFFC00001
    for part in exact(name, *inputs):
        assert np.isnan(part).any()
        assert (part[np.isnan(part)].view(np.uint32) == 0x7FC00000).all()
