"""Edge features of real files: initializers by IR version, sorting, domains, sparse data."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.onnx.attributes import NamesAttr
from foldline.dialects.onnx.op import OnnxOp
from foldline.dialects.onnx.structure import (
    CallOp,
    CustomOp,
    DefaultOp,
    InitializerOp,
    NoneOp,
    interface,
    main_graph,
)
from foldline.exporter import export_model
from foldline.importer import import_model
from tests.foldline.importer.comparison import normalised


def info(name: str, shape: list[int | str] | None = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [2] if shape is None else shape)


def weight(name: str = "w") -> TensorProto:
    return numpy_helper.from_array(np.ones(2, np.float32), name)


def build(nodes: list[onnx.NodeProto], ir_version: int, inputs: tuple[str, ...]) -> ModelProto:
    graph = helper.make_graph(nodes, "g", [info(name) for name in inputs], [info("y")], [weight()])
    imports = [helper.make_opsetid("", 9)]
    return helper.make_model(graph, opset_imports=imports, ir_version=ir_version)


def ops(module: ModuleOp, kind: type) -> list[object]:
    return [op for op in main_graph(module).body.block.ops if isinstance(op, kind)]


ADD = [helper.make_node("Add", ["x", "w"], ["y"])]


def test_below_ir_4_a_listed_initializer_is_a_constant() -> None:
    model = build(ADD, 3, ("x", "w"))
    module = import_model(model)
    block = main_graph(module).body.block
    assert len(block.args) == 1
    assert len(ops(module, InitializerOp)) == 1
    assert [i.is_constant for i in interface(block).inputs] == [False, True]
    assert normalised(export_model(module)) == normalised(model)


def test_from_ir_4_it_is_a_default() -> None:
    model = build(ADD, 8, ("x", "w"))
    module = import_model(model)
    assert len(main_graph(module).body.block.args) == 2
    assert ops(module, InitializerOp) == []
    assert len(ops(module, DefaultOp)) == 1
    assert normalised(export_model(module)) == normalised(model)


def test_an_initializer_that_is_no_input_is_a_constant_at_any_version() -> None:
    for ir_version in (3, 8):
        module = import_model(build(ADD, ir_version, ("x",)))
        assert len(ops(module, InitializerOp)) == 1


def test_unsorted_nodes_are_sorted_stably_with_a_note() -> None:
    nodes = [
        helper.make_node("Add", ["a", "b"], ["y"], name="last"),
        helper.make_node("Relu", ["x"], ["a"], name="first"),
        helper.make_node("Neg", ["w"], ["b"], name="second"),
    ]
    notes: list[str] = []
    module = import_model(build(nodes, 8, ("x",)), notes)
    names = [
        op.attributes["onnx.names"].data.node  # pyright: ignore
        for op in ops(module, OnnxOp)
        if isinstance(op, OnnxOp) and isinstance(op.attributes["onnx.names"], NamesAttr)
    ]
    assert names == ["first", "second", "last"]
    assert len(notes) == 1
    assert "sorted" in notes[0]


def test_a_capture_counts_when_sorting() -> None:
    body = helper.make_graph([helper.make_node("Relu", ["late"], ["t"])], "b", [], [info("t")])
    nodes = [
        helper.make_node("If", ["c"], ["y"], name="if", then_branch=body, else_branch=body),
        helper.make_node("Neg", ["x"], ["late"], name="late"),
        helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.array(True))),
    ]
    notes: list[str] = []
    import_model(build(nodes, 8, ("x",)), notes)
    assert len(notes) == 1


def test_a_branch_may_use_the_name_its_own_node_defines() -> None:
    body = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "b", [], [info("y")])
    condition = numpy_helper.from_array(np.array(True))
    nodes = [
        helper.make_node("Constant", [], ["c"], value=condition),
        helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body),
    ]
    model = build(nodes, 8, ("x",))
    assert normalised(export_model(import_model(model))) == normalised(model)


@pytest.mark.parametrize("domain", ["", "ai.onnx"])
@pytest.mark.parametrize("imported", ["", "ai.onnx"])
def test_both_names_of_the_default_domain(domain: str, imported: str) -> None:
    model = build(ADD, 8, ("x",))
    model.graph.node[0].domain = domain
    model.opset_import[0].domain = imported
    module = import_model(model)
    assert ops(module, OnnxOp)[0].since == 7  # pyright: ignore
    assert normalised(export_model(module)) == normalised(model)


def test_the_highest_of_two_imports_binds() -> None:
    model = build(ADD, 8, ("x",))
    model.opset_import.append(helper.make_opsetid("", 14))
    model.opset_import.append(helper.make_opsetid("", 6))
    notes: list[str] = []
    module = import_model(model, notes)
    assert ops(module, OnnxOp)[0].since == 14  # pyright: ignore
    assert notes == [
        "model: domain 'ai.onnx' is imported at versions 9, 14, 6; the highest is taken"
    ]
    assert normalised(export_model(module)) == normalised(model)


def test_absent_optional_inputs_share_one_none() -> None:
    nodes = [
        helper.make_node("Clip", ["x", "", "m"], ["a"]),
        helper.make_node("Clip", ["a", "", ""], ["y"]),
        helper.make_node("Constant", [], ["m"], value_float=1.0),
    ]
    model = build([nodes[2], *nodes[:2]], 8, ("x",))
    model.opset_import[0].version = 13
    module = import_model(model)
    assert len(ops(module, NoneOp)) == 1
    assert normalised(export_model(module)) == normalised(model)


def test_custom_operators_are_kept_with_everything() -> None:
    node = helper.make_node("Magic", ["x", "w"], ["y"], domain="acme", level=3, note="grün")
    model = build([node], 8, ("x",))
    model.opset_import.append(helper.make_opsetid("acme", 2))
    module = import_model(model)
    (op,) = ops(module, CustomOp)
    assert isinstance(op, CustomOp)
    assert (op.domain, op.op_type) == ("acme", "Magic")
    assert op.attribute_values() == {"level": 3, "note": "grün"}
    assert normalised(export_model(module)) == normalised(model)


def test_overloads_call_their_own_function() -> None:
    functions = [
        helper.make_function(
            "local",
            "F",
            ["a"],
            ["b"],
            [helper.make_node(op_type, ["a"], ["b"])],
            [helper.make_opsetid("", 13)],
            overload=overload,
        )
        for overload, op_type in (("", "Neg"), ("abs", "Abs"))
    ]
    node = helper.make_node("F", ["x"], ["y"], domain="local", overload="abs")
    model = build([node], 10, ("x",))
    model.functions.extend(functions)
    model.opset_import.append(helper.make_opsetid("local", 1))
    module = import_model(model)
    (call,) = ops(module, CallOp)
    assert isinstance(call, CallOp)
    (inner,) = [op for op in call.function.body.block.ops if isinstance(op, OnnxOp)]
    assert inner.OP_TYPE == "Abs"
    assert inner.since == 13
    assert normalised(export_model(module)) == normalised(model)


def test_a_standard_operator_wins_over_a_function_of_its_name() -> None:
    function = helper.make_function(
        "",
        "Add",
        ["a", "b"],
        ["c"],
        [helper.make_node("Sub", ["a", "b"], ["c"])],
        [helper.make_opsetid("", 9)],
    )
    model = build(ADD, 8, ("x",))
    model.functions.append(function)
    assert ops(import_model(model), CallOp) == []


def test_sparse_initializers_are_dense_inside_and_sparse_outside() -> None:
    values = numpy_helper.from_array(np.array([5.0, 7.0], np.float32), "s")
    pairs = numpy_helper.from_array(np.array([[0, 1], [1, 0]], np.int64))
    model = build([helper.make_node("Add", ["s", "w"], ["y"])], 8, ())
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, pairs, [2, 2]))
    module = import_model(model)
    dense = [op for op in ops(module, InitializerOp) if "sparse" in op.properties]  # pyright: ignore
    np.testing.assert_array_equal(dense[0].value.array, [[0, 5], [7, 0]])  # pyright: ignore
    assert normalised(export_model(module)) == normalised(model)


def test_ir_1_attributes_get_their_missing_type() -> None:
    model = build([helper.make_node("Concat", ["x", "w"], ["y"], axis=0)], 1, ("x", "w"))
    del model.opset_import[:]
    model.graph.node[0].attribute[0].ClearField("type")
    exported = export_model(import_model(model))
    assert exported.graph.node[0].attribute[0].type == onnx.AttributeProto.INT
