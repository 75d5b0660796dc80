"""Malformed models: one clear InvalidModel that names what and where, never another exception."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from foldline.importer import import_model
from foldline.support.errors import InvalidModel, ResourceLimit, UnsupportedOperator


def info(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [2])


def model(nodes: list[NodeProto], outputs: tuple[str, ...] = ("y",), opset: int = 17) -> ModelProto:
    graph = helper.make_graph(nodes, "g", [info("x")], [info(name) for name in outputs])
    imports = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def relu(source: str = "x", target: str = "y", name: str = "relu") -> NodeProto:
    return helper.make_node("Relu", [source], [target], name=name)


def branch(
    nodes: list[NodeProto], output: str, constants: list[TensorProto] | None = None
) -> onnx.GraphProto:
    return helper.make_graph(nodes, "branch", [], [info(output)], constants)


def constant(name: str) -> TensorProto:
    return numpy_helper.from_array(np.zeros(2, np.float32), name)


def with_if(then: onnx.GraphProto) -> ModelProto:
    condition = helper.make_node("Constant", [], ["c"], value_int=1)
    cast = helper.make_node("Cast", ["c"], ["b"], to=TensorProto.BOOL)
    other = branch([relu(target="e")], "e")
    node = helper.make_node("If", ["b"], ["y"], name="if", then_branch=then, else_branch=other)
    return model([condition, cast, node])


def changed(change: Callable[[ModelProto], None]) -> ModelProto:
    built = model([relu()])
    change(built)
    return built


def no_graph(m: ModelProto) -> None:
    m.ClearField("graph")


def no_opsets(m: ModelProto) -> None:
    del m.opset_import[:]


def future_opset(m: ModelProto) -> None:
    m.opset_import[0].version = 99


def zero_opset(m: ModelProto) -> None:
    m.opset_import[0].version = 0


def nameless_sparse(m: ModelProto) -> None:
    indices = numpy_helper.from_array(np.array([0], np.int64))
    values = numpy_helper.from_array(np.ones(1, np.float32))
    m.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [3]))


def nameless_input(m: ModelProto) -> None:
    m.graph.input[0].name = ""


def nameless_output(m: ModelProto) -> None:
    m.graph.output[0].name = ""


def no_operator(m: ModelProto) -> None:
    m.graph.node[0].op_type = ""


def misfit_of_input(m: ModelProto) -> None:
    m.graph.initializer.append(numpy_helper.from_array(np.zeros(3), "x"))


def two_initializers(m: ModelProto) -> None:
    m.graph.initializer.extend([constant("w"), constant("w")])


def both_in_a_body(m: ModelProto) -> None:
    body = branch([], "w", [constant("w")])
    body.input.append(info("w"))
    m.CopyFrom(with_if(body))


def add_function(m: ModelProto, node: NodeProto, **names: str) -> None:
    imports = [helper.make_opsetid("", 17)]
    named = {"domain": "local", "fname": "F", **names}
    m.functions.append(
        helper.make_function(
            inputs=["a"], outputs=["b"], nodes=[node], opset_imports=imports, **named
        )
    )


def graph_of_a_parameter(m: ModelProto) -> None:
    node = helper.make_node("If", ["a"], ["b"], else_branch=branch([], "a"))
    node.attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH, ref_attr_name="body")
    add_function(m, node)


def duplicate_by_alias(m: ModelProto) -> None:
    for domain in ("", "ai.onnx"):
        add_function(m, relu("a", "b"), domain=domain)


def missing_overload(m: ModelProto) -> None:
    for overload in ("", "a"):
        add_function(m, relu("a", "b"), overload=overload)
    m.graph.node[0].CopyFrom(helper.make_node("F", ["x"], ["y"], domain="local", overload="b"))


def future_ir(m: ModelProto) -> None:
    m.ir_version = 99


def zero_ir(m: ModelProto) -> None:
    m.ir_version = 0


def nameless_initializer(m: ModelProto) -> None:
    m.graph.initializer.append(numpy_helper.from_array(np.zeros(1, np.float32)))


def unknown_dtype(m: ModelProto) -> None:
    m.graph.initializer.append(TensorProto(name="w", data_type=77, dims=[0]))


def negative_dim(m: ModelProto) -> None:
    m.graph.initializer.append(TensorProto(name="w", data_type=1, dims=[-1]))


def no_data(m: ModelProto) -> None:
    m.graph.initializer.append(TensorProto(name="w", data_type=1, dims=[3]))


def wrong_field(m: ModelProto) -> None:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[1])
    tensor.int64_data.append(1)
    m.graph.initializer.append(tensor)


def does_not_fit(m: ModelProto) -> None:
    tensor = TensorProto(name="w", data_type=TensorProto.UINT8, dims=[1])
    tensor.int32_data.append(300)
    m.graph.initializer.append(tensor)


def raw_string(m: ModelProto) -> None:
    m.graph.initializer.append(
        TensorProto(name="w", data_type=TensorProto.STRING, dims=[1], raw_data=b"x")
    )


def segment(m: ModelProto) -> None:
    tensor = numpy_helper.from_array(np.zeros(1, np.float32), "w")
    tensor.segment.begin = 0
    m.graph.initializer.append(tensor)


def sparse_out_of_range(m: ModelProto) -> None:
    values = numpy_helper.from_array(np.ones(1, np.float32), "w")
    indices = numpy_helper.from_array(np.array([3], np.int64))
    m.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [3]))


def sparse_descending(m: ModelProto) -> None:
    values = numpy_helper.from_array(np.ones(2, np.float32), "w")
    indices = numpy_helper.from_array(np.array([2, 1], np.int64))
    m.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [3]))


def unknown_attribute(m: ModelProto) -> None:
    m.graph.node[0].attribute.append(helper.make_attribute("slope", 1.0))


def twice_attribute(m: ModelProto) -> None:
    m.graph.node[0].attribute.extend(helper.make_attribute("slope", 1.0) for _ in range(2))


def outer_parameter(m: ModelProto) -> None:
    m.graph.node[0].attribute.append(
        onnx.AttributeProto(name="alpha", type=onnx.AttributeProto.FLOAT, ref_attr_name="a")
    )


def duplicate_metadata(m: ModelProto) -> None:
    for _ in range(2):
        m.metadata_props.add(key="k", value="v")


def duplicate_function(m: ModelProto) -> None:
    for _ in range(2):
        m.functions.add(domain="local", name="F")


FAULTS: list[tuple[ModelProto, str]] = [
    (changed(no_graph), "no graph"),
    (changed(no_opsets), "no operator set; add to opset_import"),
    (changed(future_opset), r"version 99 of domain 'ai.onnx'; .* knows 1 to \d+: install a newer"),
    (changed(zero_opset), "imports version 0 of domain 'ai.onnx', expected 1 or later"),
    (changed(future_ir), r"IR version 99; .* knows 1 to \d+: install a newer onnx"),
    (changed(zero_ir), "IR version 0; .*: set ir_version"),
    (changed(nameless_initializer), "an initializer has no name"),
    (changed(nameless_sparse), "a sparse initializer has no name"),
    (changed(nameless_input), "an entry of input has no name"),
    (changed(nameless_output), "an entry of output has no name"),
    (changed(no_operator), r"node 'relu' \(\) has no op_type"),
    (
        changed(misfit_of_input),
        r"initializer 'x' is tensor\(double\) \[3\], but .* tensor\(float\) \[2\]",
    ),
    (changed(both_in_a_body), "'w' is both input and initializer of a body"),
    (changed(graph_of_a_parameter), "inline the function first"),
    (changed(unknown_dtype), r"initializer 'w'.*data_type 77"),
    (changed(negative_dim), r"initializer 'w'.*negative"),
    (changed(no_data), r"initializer 'w'.*no data"),
    (changed(wrong_field), r"int64_data, expected float_data"),
    (changed(does_not_fit), r"300, which does not fit uint8"),
    (changed(raw_string), r"strings cannot stand in raw_data"),
    (changed(segment), "segment"),
    (changed(sparse_out_of_range), "outside"),
    (changed(sparse_descending), "not ascending"),
    (
        changed(unknown_attribute),
        r"node 'relu' \(Relu\): Relu has no attribute 'slope'; valid: consumed",
    ),
    (changed(twice_attribute), "given twice"),
    (changed(outer_parameter), "outside a function"),
    (changed(duplicate_metadata), "key twice"),
    (changed(duplicate_function), "two local functions 'local::F'; rename one"),
    (changed(duplicate_by_alias), "two local functions 'ai.onnx::F'"),
    (changed(missing_overload), r"'local::F' has no overload 'b'; the model has '', 'a'"),
    (
        model([relu("nowhere")]),
        r"node 'relu' \(Relu\) reads 'nowhere', which nothing defines; valid: x",
    ),
    (model([relu("X")]), r"reads 'X', which nothing defines; did you mean 'x'\?"),
    (model([relu()], ("z",)), "nothing defines the output 'z'; valid: x, y"),
    (
        model([relu(), relu(name="again")]),
        r"graph: 'y' is defined twice, by node 'relu' \(Relu\) and by node 'again' \(Relu\)",
    ),
    (model([relu(target="x")], ("x",)), "'x' is defined twice, by an input and by node 'relu'"),
    (changed(two_initializers), "'w' is defined twice, by an initializer and by an initializer"),
    (model([relu("b", "a", "one"), relu("a", "b", "two")], ("a",)), "cycle: 'one' -> 'two'"),
    (model([relu("y", "y", "self")]), "cycle: 'self' -> 'self'"),
    (with_if(branch([relu(target="x")], "x")), r"then_branch: 'x' is already defined in graph"),
    (with_if(branch([], "c", [constant("c")])), r"then_branch: 'c' is already defined in graph"),
    (with_if(branch([relu("gone", "t")], "t")), r"then_branch: node 'relu'.*'gone'"),
]


@pytest.mark.parametrize(("faulty", "message"), FAULTS, ids=[message for _, message in FAULTS])
def test_fault_is_named(faulty: ModelProto, message: str) -> None:
    with pytest.raises((InvalidModel, UnsupportedOperator), match=message):
        import_model(faulty)


def test_truncated_file_names_the_file(tmp_path: Path) -> None:
    whole = model([relu()]).SerializeToString()
    path = tmp_path / "cut.onnx"
    for length in range(1, len(whole)):
        path.write_bytes(whole[:length])
        try:
            import_model(path)
        except InvalidModel:
            continue
        # A cut between fields can leave a complete, smaller message; it must still be a model.
        onnx.checker.check_model(ModelProto.FromString(whole[:length]))


def test_deep_nesting_is_refused_not_a_crash() -> None:
    body = branch([relu(target="t0")], "t0")
    for depth in range(1, 20):
        node = helper.make_node("If", ["b"], [f"t{depth}"], then_branch=body, else_branch=body)
        body = branch([node], f"t{depth}")
        if depth == 12:
            break
    built = with_if(body)
    assert import_model(built) is not None
    data = built.SerializeToString()
    nested = data
    for _ in range(60):
        nested = b"\x3a" + _varint(len(nested)) + nested
    with pytest.raises((InvalidModel, ResourceLimit)):
        import_model(nested)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])
