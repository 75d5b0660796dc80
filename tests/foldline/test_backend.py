"""ONNX's backend interface: inputs by position or name, single nodes, devices, refusals."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import foldline
from foldline import backend

X = np.array([1.0, -2.0], np.float32)
Y = np.array([10.0, 20.0], np.float32)


@pytest.fixture
def model() -> onnx.ModelProto:
    """Two outputs of x and of w, an input with a default of ones."""
    values = {
        name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [2])
        for name in ("x", "w", "sum", "difference")
    }
    graph = helper.make_graph(
        [
            helper.make_node("Add", ["x", "w"], ["sum"]),
            helper.make_node("Sub", ["x", "w"], ["difference"]),
        ],
        "sums",
        [values["w"], values["x"]],
        [values["difference"], values["sum"]],
        [numpy_helper.from_array(np.ones(2, np.float32), "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def test_positional_inputs_leave_out_defaults(model: onnx.ModelProto) -> None:
    difference, total = backend.prepare(model).run([X])
    np.testing.assert_array_equal(difference, X - 1)
    np.testing.assert_array_equal(total, X + 1)


def test_positional_inputs_may_give_all(model: onnx.ModelProto) -> None:
    difference, total = backend.prepare(model).run((Y, X))
    np.testing.assert_array_equal(difference, X - Y)
    np.testing.assert_array_equal(total, X + Y)


def test_inputs_by_name(model: onnx.ModelProto) -> None:
    _, total = backend.run_model(model, {"x": X, "w": Y})
    np.testing.assert_array_equal(total, X + Y)


def test_wrong_number_of_inputs(model: onnx.ModelProto) -> None:
    with pytest.raises(foldline.InvalidArgumentError, match="takes 1 or 2 inputs, got 3"):
        backend.prepare(model).run([X, X, X])


def test_options_reach_the_compiler(model: onnx.ModelProto) -> None:
    with pytest.raises(foldline.InvalidOption):
        backend.prepare(model, options={"oo.level": "O9"})
    (difference, _) = backend.prepare(model, options={"oo.level": "O0"}).run([X])
    np.testing.assert_array_equal(difference, X - 1)


def test_run_node() -> None:
    node = helper.make_node("Concat", ["a", "b"], ["c"], axis=0)
    (joined,) = backend.run_node(node, [X, Y])
    np.testing.assert_array_equal(joined, [1, -2, 10, 20])


def test_run_node_at_a_version() -> None:
    """Below 13 Softmax works on a matrix, so on the last two dims here."""
    node = helper.make_node("Softmax", ["a"], ["b"])
    values = np.zeros((1, 2, 2), np.float32)
    (old,) = backend.run_node(node, [values], opset_version=11)
    (new,) = backend.run_node(node, [values])
    assert old.ravel().tolist() == [0.25] * 4
    assert new.ravel().tolist() == [0.5] * 4


def test_run_node_with_absent_inputs() -> None:
    node = helper.make_node("Clip", ["a", "", "b"], ["c"])
    (clipped,) = backend.run_node(node, [X, np.array(0, np.float32)])
    assert clipped.tolist() == [0.0, -2.0]


@pytest.mark.parametrize(("device", "supported"), [("CPU", True), ("CPU:0", True), ("CUDA", False)])
def test_devices(device: str, supported: bool) -> None:
    assert backend.supports_device(device) is supported


def test_another_device_is_refused(model: onnx.ModelProto) -> None:
    with pytest.raises(foldline.InvalidArgumentError, match="'CUDA' is not supported"):
        backend.prepare(model, "CUDA")
