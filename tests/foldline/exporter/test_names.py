"""Names in the exported model: unique, interface names fixed, whatever passes did to the values."""

from __future__ import annotations

import onnx
import pytest
from onnx import ModelProto, TensorProto, helper
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.onnx.attributes import Names, NamesAttr
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.structure import InitializerOp, main_graph, terminator
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


def test_nodes_of_one_name_are_renamed_if_asked_for() -> None:
    names = ["n", "n_1", "", "n", "n", ""]
    nodes = [helper.make_node("Relu", ["x"], [f"y{i}"], name=n) for i, n in enumerate(names)]
    outputs = [info(f"y{i}") for i in range(len(names))]
    graph = helper.make_graph(nodes, "g", [info("x")], outputs)
    imports = [helper.make_opsetid("", 17)]
    module = import_model(helper.make_model(graph, opset_imports=imports, ir_version=8))
    assert [node.name for node in export_model(module).graph.node] == names
    renamed = [node.name for node in export_model(module, unique_nodes=True).graph.node]
    assert renamed == ["n", "n_1", "", "n_2", "n_3", ""]


def test_below_ir_4_every_initializer_is_listed() -> None:
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("Add", ["x", "w"], ["y"])],
            "g",
            [info("x"), info("w")],
            [info("y")],
            [helper.make_tensor("w", TensorProto.FLOAT, [2], [1, 2])],
        ),
        opset_imports=[helper.make_opsetid("", 7)],
        ir_version=3,
    )
    module = import_model(model)
    (weight,) = (op for op in main_graph(module).body.block.ops if isinstance(op, InitializerOp))
    weight.attributes["onnx.names"] = NamesAttr(Names(None, ("renamed",)))
    listed = exported(module).graph
    assert [value.name for value in listed.input] == ["x", "renamed"]
    assert listed.input[1].type == model.graph.input[1].type


def test_names_of_bodies_yield_where_they_would_hide_outer_ones() -> None:
    """A rewrite may bring a name into sight that inputs and outputs of a later body bear too."""
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x, int64 n) => (float[2] z) {
        y = Neg(x)
        z = Loop(n, , x) <body = b (int64 i, bool c, float[2] a) => (bool d, float[2] o) {
            d = Identity(c) o = Mul(a, y)
        }>
    }"""
    module = import_model(onnx.parser.parse_model(text))
    neg = nodes_of(module)[0]
    for taken in ("a", "o", "d"):
        neg.attributes["onnx.names"] = NamesAttr(Names(None, (taken,)))
        model = exported(module)
        body = model.graph.node[1].attribute[0].g
        (outer,) = model.graph.node[0].output
        mul = next(node for node in body.node if node.op_type == "Mul")
        assert list(mul.input) == [body.input[2].name, outer]
        assert mul.output[0] == body.output[1].name
        assert outer not in [v.name for v in (*body.input, *body.output)]


@pytest.mark.parametrize("policy", ["keep", "all"])
def test_bodies_without_types_get_them_where_types_are_written(policy: str) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x, bool p) => (float[2] y) {
        y = If(p) <then_branch = t () => (a) { a = Neg(x) }, else_branch = e () => (b) {b = Abs(x)}>
    }"""
    module = import_model(onnx.parser.parse_model(text))
    for op in module.walk():
        if op.name in ("onnx.Neg", "onnx.Abs"):
            op.results[0]._type = op.operands[0].type
    model = export_model(module, value_info=policy)
    outputs = [a.g.output[0] for a in model.graph.node[0].attribute]
    assert [o.type.tensor_type.elem_type for o in outputs] == [int(policy == "all")] * 2
