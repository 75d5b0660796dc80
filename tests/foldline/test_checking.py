from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import foldline
from foldline.checking import Case, CheckResult, check
from foldline.support.errors import InvalidArgumentError


def model(
    nodes: list[Any],
    inputs: dict[str, list[Any]],
    outputs: dict[str, list[Any]],
    **constants: Any,
) -> onnx.ModelProto:
    values = [
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, dims) for n, dims in each.items()]
        for each in (inputs, outputs)
    ]
    tensors = [onnx.numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()]
    graph = helper.make_graph(nodes, "g", *values, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def affine(offset: float, dims: tuple[Any, ...] = ("N", 2)) -> onnx.ModelProto:
    """y = x + [1, offset], z = -x."""
    nodes = [helper.make_node("Add", ["x", "c"], ["y"]), helper.make_node("Neg", ["x"], ["z"])]
    d = list(dims)
    return model(nodes, {"x": d}, {"z": d, "y": d}, c=np.array([1, offset], np.float32))


def case(result: CheckResult, name: str) -> Case:
    return next(case for case in result.cases if case.name == name)


def test_equal() -> None:
    result = check(affine(2.0), affine(2.0))
    assert result.equal
    assert [case.name for case in result.cases] == [
        *("interface", "random", "zeros", "nan", "inf", "negative zero"),
        *("zero-size", "other dims", "dims of one"),
    ]
    assert {case.max_error for case in result.cases} == {0.0}


def test_static_shapes_are_not_varied() -> None:
    names = {case.name for case in check(affine(2.0, (3, 2)), affine(2.0, (3, 2))).cases}
    assert "zero-size" not in names
    pinned = check(affine(2.0), affine(2.0, (3, 2)))
    assert pinned.equal
    assert "zero-size" not in {case.name for case in pinned.cases}


def test_first_output_that_differs_is_named() -> None:
    result = check(affine(2.0), affine(2.5))
    assert not result.equal
    zeros = case(result, "zeros")
    assert (zeros.equal, zeros.output) == (False, "y")
    assert zeros.max_error == pytest.approx(0.25)
    assert zeros.message == "2 of 4 values differ, [0, 1]: 2.0 and 2.5"
    assert case(result, "zero-size").equal


def test_tolerance() -> None:
    assert not check(affine(2.0), affine(2.0001)).equal
    assert check(affine(2.0), affine(2.0001), rtol=1e-3).equal
    assert not check(affine(2.0), affine(2.1), rtol=1e-3).equal


def test_signed_zero_is_seen_and_only_by_edge_inputs() -> None:
    """x + 0 is not x at -0."""
    add = model(
        [helper.make_node("Add", ["x", "c"], ["y"])], {"x": [4]}, {"y": [4]}, c=np.float32(0)
    )
    same = model([helper.make_node("Identity", ["x"], ["y"])], {"x": [4]}, {"y": [4]})
    result = check(add, same)
    assert [case.name for case in result.cases if not case.equal] == ["negative zero"]
    assert check(add, same, rtol=0.0).equal


def test_infinities_must_stand_in_the_same_places() -> None:
    d = {"x": [4]}, {"y": [4]}
    relu = model([helper.make_node("Relu", ["x"], ["y"])], *d)
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Min", ["r", "c"], ["y"])]
    clipped = model(nodes, *d, c=np.float32(9))
    result = check(relu, clipped, rtol=1e9)
    assert [case.name for case in result.cases if not case.equal] == ["inf"]
    assert np.isinf(case(result, "inf").max_error)


def test_interface() -> None:
    renamed = affine(2.0)
    renamed.graph.output[0].name = renamed.graph.node[1].output[0] = "other"
    result = check(affine(2.0), renamed)
    assert [case.name for case in result.cases] == ["interface"]
    assert not result.equal
    assert "outputs are" in result.cases[0].message


def test_inputs_that_both_refuse_say_nothing() -> None:
    """A fixed batch of 2 in the weights makes other sizes of N impossible in both."""
    nodes = [helper.make_node("MatMul", ["c", "x"], ["y"])]
    both = model(nodes, {"x": ["N", 2]}, {"y": [2, 2]}, c=np.ones((2, 2), np.float32))
    result = check(both, both)
    assert result.equal
    assert case(result, "other dims").message.startswith("both refuse: ")


def test_inputs_that_suit_no_model_prove_nothing() -> None:
    node = helper.make_node("Reshape", ["x", "c"], ["y"])
    of_seven = model([node], {"x": ["N", 2]}, {"y": [7]}, c=np.array([7]))
    with pytest.raises(InvalidArgumentError, match="give inputs; random: both refuse: "):
        check(of_seven, of_seven)


def test_inputs_that_one_refuses() -> None:
    nodes = [helper.make_node("MatMul", ["c", "x"], ["y"])]
    only_two = model(nodes, {"x": ["N", 2]}, {"y": ["M", 2]}, c=np.ones((2, 2), np.float32))
    any_size = model([helper.make_node("Neg", ["x"], ["y"])], {"x": ["N", 2]}, {"y": ["M", 2]})
    refused = case(check(only_two, any_size), "other dims")
    assert not refused.equal
    assert refused.message.startswith("only the first model refuses: ")


def test_given_inputs() -> None:
    feed = {"x": np.array([[1.0, 2.0]], np.float32)}
    result = check(affine(2.0), affine(2.5), inputs=feed)
    assert case(result, "given").message == "1 of 2 values differ, [0, 1]: 4.0 and 4.5"


def test_inputs_that_cannot_be_made_up() -> None:
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
    value = helper.make_value_info("x", helper.make_sequence_type_proto(tensor))
    node = helper.make_node("SequenceAt", ["x", "c"], ["y"])
    sequence = model([node], {}, {"y": [2]}, c=np.int64(0))
    sequence.graph.input.append(value)
    with pytest.raises(InvalidArgumentError, match="give these inputs"):
        check(sequence, sequence)
    feed = {"x": [np.ones(2, np.float32)]}
    assert [case.name for case in check(sequence, sequence, inputs=feed).cases] == [
        "interface",
        "given",
    ]


def test_every_form_of_model(tmp_path: Path) -> None:
    proto = affine(2.0)
    path = tmp_path / "m.onnx"
    onnx.save(proto, path)
    compiled = foldline.compile(proto)
    for form in (path, str(path), proto.SerializeToString(), compiled, compiled.session()):
        assert check(proto, form).equal
    with path.open("rb") as file:
        assert check(proto, file).equal


def test_unknown_sizes_are_as_large_as_the_model_needs() -> None:
    text = """<ir_version: 10, opset_import: ["" : 20]>
    g (float[1, 1, H, W] x) => (float[1, 1, a, b] y) {
        y = MaxPool <kernel_shape = [7, 7], strides = [7, 7]> (x)
    }"""
    model = onnx.parser.parse_model(text)
    result = foldline.check(model, model)
    assert result.equal
    cases = {case.name: case.message for case in result.cases}
    assert cases["random"] == ""
    assert "both refuse" in cases["dims of one"]
