"""Names in the exported model: unique, interface names fixed, whatever passes did to the values."""

from __future__ import annotations

import onnx
import pytest
from onnx import ModelProto, TensorProto, helper
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.onnx.attributes import Names, NamesAttr
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.structure import main_graph, terminator
from foldline.exporter import export_model
from foldline.importer import import_model


def info(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [2])


def chain(outputs: tuple[str, ...] = ("b",)) -> ModuleOp:
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Neg", ["a"], ["b"])]
    graph = helper.make_graph(nodes, "g", [info("x")], [info(name) for name in outputs])
    imports = [helper.make_opsetid("", 17)]
    return import_model(helper.make_model(graph, opset_imports=imports, ir_version=8))


def nodes_of(module: ModuleOp) -> list[NodeOp]:
    return [op for op in main_graph(module).body.block.ops if isinstance(op, NodeOp)]


def exported(module: ModuleOp) -> ModelProto:
    model = export_model(module)
    onnx.checker.check_model(model, full_check=True)
    return model


def wires(model: ModelProto) -> list[tuple[str, list[str], list[str]]]:
    return [(n.op_type, list(n.input), list(n.output)) for n in model.graph.node]


def test_an_output_keeps_its_name_when_its_value_changes() -> None:
    module = chain()
    relu, neg = nodes_of(module)
    neg.results[0].replace_all_uses_with(relu.results[0])
    neg.detach()
    neg.erase()
    assert wires(exported(module)) == [("Relu", ["x"], ["b"])]


def test_one_value_for_two_outputs_needs_a_copy() -> None:
    module = chain(("a", "b"))
    relu, neg = nodes_of(module)
    neg.results[0].replace_all_uses_with(relu.results[0])
    neg.detach()
    neg.erase()
    assert wires(exported(module)) == [("Relu", ["x"], ["a"]), ("Identity", ["a"], ["b"])]


def test_an_output_that_became_an_input_needs_a_copy() -> None:
    module = chain()
    block = main_graph(module).body.block
    terminator(block).operands = [block.args[0]]
    model = exported(module)
    assert wires(model)[-1] == ("Identity", ["x"], ["b"])
    assert [i.name for i in model.graph.input] == ["x"]


@pytest.mark.parametrize("name", ["", "a", "x", "b"])
def test_a_name_that_is_missing_or_taken_is_replaced(name: str) -> None:
    module = chain()
    relu, neg = nodes_of(module)
    extra = type(relu).create(
        operands=[relu.results[0]],
        result_types=[relu.results[0].type],
        attributes={"onnx.names": NamesAttr(Names(None, (name,) if name else ()))},
    )
    main_graph(module).body.block.insert_op_before(extra, neg)
    neg.operands = [extra.results[0]]
    model = exported(module)
    defined = [o for n in model.graph.node for o in n.output]
    assert len(set(defined) | {"x"}) == 4
    assert defined[-1] == "b"


def test_bodies_do_not_take_names_in_sight() -> None:
    body = helper.make_graph([helper.make_node("Relu", ["x"], ["t"])], "b", [], [info("t")])
    twin = helper.make_graph([helper.make_node("Neg", ["x"], ["t"])], "b", [], [info("t")])
    node = helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=twin)
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    graph = helper.make_graph([node], "g", [info("x"), condition], [info("y")])
    imports = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=8)
    module = import_model(model)
    assert export_model(module) == model
    (branch,) = nodes_of(module)
    relu = type(next(iter(branch.regions[0].block.ops)))
    assert issubclass(relu, NodeOp)
    outer = relu.create(
        operands=[main_graph(module).body.block.args[0]],
        result_types=[main_graph(module).body.block.args[0].type],
        attributes={"onnx.names": NamesAttr(Names(None, ("inner",)))},
    )
    first = next(iter(branch.regions[0].block.ops))
    first.attributes["onnx.names"] = NamesAttr(Names(None, ("inner",)))
    main_graph(module).body.block.insert_op_before(outer, branch)
    renamed = exported(module)
    inner = renamed.graph.node[1].attribute[0].g.node[0].output[0]
    assert inner != renamed.graph.node[0].output[0]
