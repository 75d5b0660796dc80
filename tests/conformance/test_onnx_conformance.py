"""The whole backend suite of the onnx package, and what it leaves out, at O3 or `--oo-level`."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.conformance import suite

globals().update(suite.unittest_classes(suite.GuardedBackend, __name__))


@pytest.mark.skipif(
    not onnx.__version__.startswith(suite.COUNTED_VERSION), reason="counts of another release"
)
def test_no_test_is_missing() -> None:
    """Another release of onnx must be looked at, not absorbed silently."""
    for category, count in suite.COUNTS.items():
        names = vars(globals()[f"OnnxBackend{category}Test"])
        assert sum(name.startswith("test_") for name in names) == count, category


def test_the_fast_cover_is_a_part() -> None:
    names = {case.name for case in suite.node_cases()}
    fast = {case.name for case in suite.fast_cases()}
    assert fast < names
    assert len(fast) < len(names) / 3
    operators = {node.op_type for case in suite.node_cases() for node in case.model.graph.node}
    assert operators == {
        node.op_type for case in suite.fast_cases() for node in case.model.graph.node
    }


def test_a_backend_that_writes_to_its_input_is_caught() -> None:
    class Writer:
        def run(self, inputs: list[np.ndarray]) -> list[np.ndarray]:
            inputs[0][0] = 7
            return inputs

    with pytest.raises(AssertionError, match="wrote to an input"):
        suite._GuardedModel(Writer()).run([np.zeros(2)])


def _bernoulli(**attributes: Any) -> onnx.ModelProto:
    element = attributes.get("dtype", TensorProto.FLOAT)
    graph = helper.make_graph(
        [helper.make_node("Bernoulli", ["x"], ["y"], **attributes)],
        "bernoulli",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [20000])],
        [helper.make_tensor_value_info("y", element, [20000])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


def test_bernoulli() -> None:
    """Stands in for the tests whose expected values cannot be known."""
    x = np.full(20000, 0.3, np.float32)
    (first,) = suite.GuardedBackend.prepare(_bernoulli(seed=1.0)).run([x])
    (again,) = suite.GuardedBackend.prepare(_bernoulli(seed=1.0)).run([x])
    assert first.dtype == np.float32
    assert first.shape == x.shape
    assert set(np.unique(first)) == {0.0, 1.0}
    assert first.mean() == pytest.approx(0.3, abs=0.02)
    np.testing.assert_array_equal(first, again)
    (double,) = suite.GuardedBackend.prepare(_bernoulli(dtype=TensorProto.DOUBLE)).run([x])
    assert double.dtype == np.float64


def test_loop_over_an_empty_sequence() -> None:
    """loop16_seq_none with a comparison that copes with 0-d arrays inside a sequence."""
    (case,) = (case for case in suite.node_cases() if case.name == "test_loop16_seq_none")
    ((inputs, (expected,)),) = case.data_sets
    (actual,) = suite.GuardedBackend.prepare(case.model).run(list(inputs))
    assert len(actual) == len(expected)
    for got, want in zip(actual, expected, strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=case.rtol, atol=case.atol, strict=True)
