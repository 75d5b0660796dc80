"""What has no effect on values: annotations, training, devices, metadata, denotations."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import foldline
from foldline.exporter import export_model
from foldline.importer import import_model
from tests.foldline.importer.comparison import normalised

X = np.array([-1, 2], np.float32)


def model() -> ModelProto:
    """y = Relu(Neg(x)), with constants that no node reads."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    nodes = [helper.make_node("Neg", ["x"], ["n"]), helper.make_node("Relu", ["n"], ["y"])]
    constants = [
        numpy_helper.from_array(np.float32(0.5), "scale"),
        numpy_helper.from_array(np.uint8(3), "zero"),
        numpy_helper.from_array(np.float32(7), "spare"),
    ]
    graph = helper.make_graph(nodes, "g", [x], [y], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=11)


def annotate(given: ModelProto, tensor: str, **names: str) -> None:
    annotation = given.graph.quantization_annotation.add(tensor_name=tensor)
    for key, value in names.items():
        annotation.quant_parameter_tensor_names.add(key=key, value=value)


def annotated(given: ModelProto) -> list[tuple[str, dict[str, str]]]:
    return [
        (a.tensor_name, {entry.key: entry.value for entry in a.quant_parameter_tensor_names})
        for a in given.graph.quantization_annotation
    ]


def constants(given: ModelProto) -> list[str]:
    return [tensor.name for tensor in given.graph.initializer]


def notes(given: ModelProto, level: str = "O3") -> list[str]:
    report = foldline.compile(given, options={"oo.level": level}).report
    return [remark.message for remark in report.remarks if remark.stage == "import"]


def assert_runs(given: ModelProto) -> None:
    for level in ("O0", "O3"):
        session = foldline.compile(given, options={"oo.level": level}).session()
        np.testing.assert_array_equal(session.run(None, {"x": X})[0], [1, 0])


NAMES = {"SCALE_TENSOR": "scale", "ZERO_POINT_TENSOR": "zero"}


def test_tensors_that_an_annotation_names_stay() -> None:
    given = model()
    annotate(given, "y", **NAMES)
    assert normalised(export_model(import_model(given))) == normalised(given)
    optimised = foldline.optimize(given)
    assert constants(optimised) == ["scale", "zero"]
    assert annotated(optimised) == [("y", NAMES)]
    assert normalised(foldline.optimize(optimised)) == normalised(optimised)
    onnx.checker.check_model(optimised, full_check=True)
    assert_runs(given)


def test_equal_tensors_are_named_by_the_one_that_stays() -> None:
    given = model()
    given.graph.initializer[1].CopyFrom(numpy_helper.from_array(np.float32(0.5), "zero"))
    annotate(given, "y", **NAMES)
    optimised = foldline.optimize(given)
    assert constants(optimised) == ["scale"]
    assert annotated(optimised) == [("y", dict.fromkeys(NAMES, "scale"))]


def test_an_annotation_goes_with_its_tensor() -> None:
    given = model()
    given.graph.node.insert(1, helper.make_node("Identity", ["n"], ["gone"]))
    given.graph.node[2].input[0] = "gone"
    annotate(given, "gone", **NAMES)
    assert annotated(foldline.optimize(given, options={"oo.level": "O0"})) == [("gone", NAMES)]
    optimised = foldline.optimize(given)
    assert annotated(optimised) == []
    assert constants(optimised) == []


def test_an_annotation_of_unknown_tensors_is_kept_as_it_is() -> None:
    given = model()
    annotate(given, "y", SCALE_TENSOR="nowhere")
    assert normalised(export_model(import_model(given))) == normalised(given)
    assert annotated(foldline.optimize(given)) == [("y", {"SCALE_TENSOR": "nowhere"})]


def test_training_is_ignored_and_that_is_said() -> None:
    given = model()
    info = given.training_info.add()
    info.algorithm.name = "train"
    info.update_binding.add(key="spare", value="y")
    assert notes(given) == [
        "model: training_info is ignored; it is not in optimised files, whose weights are no "
        "longer what it would train"
    ]
    assert normalised(foldline.optimize(given, options={"oo.level": "O0"})) == normalised(given)
    optimised = foldline.optimize(given)
    assert not optimised.training_info
    assert constants(optimised) == []
    assert_runs(given)


@pytest.mark.parametrize("on_node", [False, True])
def test_devices_are_ignored_and_that_is_said(on_node: bool) -> None:
    given = model()
    if on_node:
        given.graph.node[0].device_configurations.add(configuration_id="two")
    else:
        given.configuration.add(name="two", num_devices=2)
    (note,) = notes(given)
    assert "device configurations are kept but ignored" in note
    optimised = foldline.optimize(given)
    assert list(optimised.configuration) == list(given.configuration)
    kept = optimised.graph.node[0].device_configurations
    assert list(kept) == list(given.graph.node[0].device_configurations)
    assert_runs(given)


def test_metadata_and_denotations_are_in_the_optimised_file() -> None:
    given = model()
    holders: list[Any] = [given, given.graph, *given.graph.node, *given.graph.input]
    holders += given.graph.output
    for number, holder in enumerate(holders):
        holder.metadata_props.add(key=f"key{number}", value="wert ß")
    given.graph.input[0].type.denotation = "IMAGE"
    given.graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_CHANNEL"
    optimised = foldline.optimize(given)
    kept: list[Any] = [optimised, optimised.graph, *optimised.graph.node, *optimised.graph.input]
    kept += optimised.graph.output
    assert [list(holder.metadata_props) for holder in kept] == [
        list(holder.metadata_props) for holder in holders
    ]
    assert optimised.graph.input[0] == given.graph.input[0]
