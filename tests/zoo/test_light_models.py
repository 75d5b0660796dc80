"""The nine light models against ONNX Runtime with optimisation off.

As they ship their weights are constants, so nearly any program gives their outputs: they test
import, folding and export. With random weights they test numbers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnxruntime
import pytest

import foldline
from tests.zoo import light_models
from tests.zoo.limits import limit, worst_error

MODELS = [
    pytest.param(name, marks=[pytest.mark.slow] if name in light_models.HEAVY else [])
    for name in light_models.NAMES
]
Feed = dict[str, np.ndarray]


def run_oracle(model: onnx.ModelProto, feed: Feed) -> list[np.ndarray]:
    """The outputs that ONNX Runtime computes with optimisation off."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    data = model.SerializeToString()
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return session.run(None, feed)


@pytest.mark.parametrize("name", MODELS)
def test_as_shipped_through_export(name: str) -> None:
    model = light_models.load(name)
    feed = light_models.inputs(model)
    exported = foldline.compile(model, options={"oo.level": "O3"}).to_proto()
    onnx.checker.check_model(exported, full_check=True)
    expected = run_oracle(model, feed)
    assert list(exported.graph.output) == list(model.graph.output)
    assert worst_error(run_oracle(exported, feed), expected) <= limit("float32")


@pytest.mark.parametrize("name", MODELS)
def test_random_weights(name: str) -> None:
    model = light_models.with_random_weights(name)
    feed = light_models.inputs(model)
    compiled = foldline.compile(model, options={"oo.level": "O3"})
    expected = run_oracle(model, feed)
    _is_close("session", lambda: compiled.session().run(None, feed), expected)
    _is_close("export", lambda: run_oracle(compiled.to_proto(), feed), expected)


def _is_close(what: str, run: Callable[[], list[np.ndarray]], expected: list[np.ndarray]) -> None:
    error = worst_error(run(), expected)
    assert error <= limit("float32"), f"{what}: error {error:.1e} > {limit('float32'):.0e}"
