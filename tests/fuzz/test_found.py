"""What mutants have found, each as the kind of fault that it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
import pytest
from onnx import ModelProto, helper

import foldline
from foldline.support.errors import InvalidModel


def model(*nodes: onnx.NodeProto, shape: tuple[int, ...] = (3, 4)) -> ModelProto:
    """A model from x to y."""
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])


def _node(made: ModelProto) -> onnx.NodeProto:
    return made.graph.node[0]


TEXTS: dict[str, Callable[[ModelProto], Any]] = {
    "ModelProto.producer_name": lambda m: setattr(m, "producer_name", "MARK"),
    "ModelProto.domain": lambda m: setattr(m, "domain", "MARK"),
    "GraphProto.name": lambda m: setattr(m.graph, "name", "MARK"),
    "OperatorSetIdProto.domain": lambda m: m.opset_import.add(domain="MARK", version=1),
    "StringStringEntryProto.value": lambda m: m.metadata_props.add(key="k", value="MARK"),
    "TensorShapeProto.Dimension.dim_param": lambda m: setattr(
        m.graph.input[0].type.tensor_type.shape.dim[0], "dim_param", "MARK"
    ),
    "ValueInfoProto.doc_string": lambda m: setattr(m.graph.output[0], "doc_string", "MARK"),
    "TensorProto.name": lambda m: m.graph.initializer.add(name="MARK", data_type=1, dims=[0]),
    "NodeProto.output": lambda m: _node(m).output.append("MARK"),
    "NodeProto.name": lambda m: setattr(_node(m), "name", "MARK"),
    "NodeProto.op_type": lambda m: setattr(_node(m), "op_type", "MARK"),
    "NodeProto.domain": lambda m: setattr(_node(m), "domain", "MARK"),
    "NodeProto.doc_string": lambda m: setattr(_node(m), "doc_string", "MARK"),
    "NodeProto.overload": lambda m: setattr(_node(m), "overload", "MARK"),
    "AttributeProto.name": lambda m: _node(m).attribute.add(name="MARK", type=2, i=1),
    "AttributeProto.doc_string": lambda m: _node(m).attribute.add(
        name="axis", type=2, i=1, doc_string="MARK"
    ),
    "StringStringEntryProto.key": lambda m: _node(m).metadata_props.add(key="MARK", value="v"),
}
"""Every kind of text field, and how it is set."""


@pytest.mark.parametrize("field", TEXTS)
def test_text_that_is_not_utf8_is_refused_by_field(field: str) -> None:
    """Protobuf gives such text as bytes, which failed wherever text was sorted, joined, written."""
    made = model(helper.make_node("Softmax", ["x"], ["y"], name="n"))
    TEXTS[field](made)
    data = made.SerializeToString()
    assert b"MARK" in data
    with pytest.raises(InvalidModel, match=rf"{field} holds b'M\\xffRK', which is not UTF-8"):
        foldline.compile(data.replace(b"MARK", b"M\xffRK"))


def test_text_of_a_body_that_is_not_utf8_is_refused() -> None:
    value = helper.make_tensor_value_info("MARK", onnx.TensorProto.FLOAT, None)
    body = helper.make_graph([helper.make_node("Neg", ["x"], ["MARK"])], "body", [], [value])
    made = model(helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body))
    made.graph.initializer.append(helper.make_tensor("c", onnx.TensorProto.BOOL, [], [True]))
    with pytest.raises(InvalidModel, match=r"ValueInfoProto\.name holds"):
        foldline.compile(made.SerializeToString().replace(b"MARK", b"M\xffRK"))


def test_unsorted_nodes_that_give_nothing() -> None:
    """The order was kept by ids of objects that protobuf had made for one look only."""
    idle = [helper.make_node("Custom", ["later"], [], domain="other") for _ in range(20)]
    made = model(*idle, helper.make_node("Neg", ["x"], ["later"]))
    made.opset_import.add(domain="other", version=1)
    made.graph.node.append(helper.make_node("Neg", ["later"], ["y"]))
    assert len(foldline.compile(made, options={"oo.level": "O0"}).to_proto().graph.node) == 22


@pytest.mark.parametrize("equation", ["../up", "i.j->ij", "..ij->ij", "ij->i....", "i1->i"])
def test_an_equation_that_the_library_would_never_come_back_from(equation: str) -> None:
    made = model(helper.make_node("Einsum", ["x"], ["y"], equation=equation))
    with pytest.raises(InvalidModel, match="is no equation of Einsum"):
        foldline.compile(made)


@pytest.mark.parametrize("equation", ["ij->ji", " i j -> j i", "...j->...", "...", "ij", "ij->"])
def test_equations_that_are_right(equation: str) -> None:
    foldline.compile(model(helper.make_node("Einsum", ["x"], ["y"], equation=equation)))


SCAN = """<ir_version: 8, opset_import: ["" : 16]>
g (float[2] s, float{shape} x) => (float[2] y, float z)
{{
    y, z = Scan <{attributes}, body = b (float[2] a, float[2] b) => (float[2] c, float[2] d) {{
        c = Add(a, b)
        d = Neg(b)
    }}> (s, x)
}}"""


def scan(attributes: str, shape: str = "[3, 2]") -> ModelProto:
    made = onnx.parser.parse_model(SCAN.format(attributes=attributes, shape=shape))
    made.graph.output[1].type.tensor_type.ClearField("shape")
    return made


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ("num_scan_inputs = 0", "num_scan_inputs is 0, which does not fit 2 inputs"),
        ("num_scan_inputs = 3", "num_scan_inputs is 3"),
        ("num_scan_inputs = -4", "num_scan_inputs is -4"),
        ("num_scan_inputs = 1, scan_input_axes = [0, 0]", "scan_input_axes has 2 entries for 1"),
        ("num_scan_inputs = 1, scan_output_axes = [0, 0]", "scan_output_axes has 2 entries for 1"),
        ("num_scan_inputs = 1, scan_input_axes = [2]", "it scans axis 2 of an input of 2 axes"),
    ],
)
def test_a_scan_whose_numbers_do_not_fit(attributes: str, message: str) -> None:
    """Counts were trusted where types are inferred."""
    with pytest.raises(InvalidModel, match=message):
        foldline.compile(scan(attributes))


def test_a_scan_of_a_scalar() -> None:
    with pytest.raises(InvalidModel, match="it scans axis 0 of an input of 0 axes"):
        foldline.compile(scan("num_scan_inputs = 1", ""))


def test_a_scan_that_is_right() -> None:
    foldline.compile(scan("num_scan_inputs = 1, scan_input_axes = [-2]")).session()


def test_a_name_that_a_call_and_a_node_define() -> None:
    """The message asked the call for its function, which is not there yet."""
    made = model(helper.make_node("Twice", ["x"], ["y"], domain="local"))
    made.graph.node.append(helper.make_node("Neg", ["x"], ["y"], name="again"))
    made.opset_import.add(domain="local", version=1)
    body = [helper.make_node("Add", ["a", "a"], ["b"])]
    imports = [helper.make_opsetid("", 20)]
    made.functions.append(helper.make_function("local", "Twice", ["a"], ["b"], body, imports))
    with pytest.raises(InvalidModel, match=r"by node 'y' \(local::Twice\) and by node 'again'"):
        foldline.compile(made)
