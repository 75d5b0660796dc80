"""Malformed models: one clear InvalidModel that names what and where, never another exception."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from foldline.importer import import_model
from foldline.support.errors import InvalidModel, ResourceLimit


def info(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [2])


def model(nodes: list[NodeProto], outputs: tuple[str, ...] = ("y",), opset: int = 17) -> ModelProto:
    graph = helper.make_graph(nodes, "g", [info("x")], [info(name) for name in outputs])
    imports = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def relu(source: str = "x", target: str = "y", name: str = "relu") -> NodeProto:
    return helper.make_node("Relu", [source], [target], name=name)


def branch(nodes: list[NodeProto], output: str) -> onnx.GraphProto:
    return helper.make_graph(nodes, "branch", [], [info(output)])


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
    (changed(no_opsets), "no operator set"),
    (changed(future_opset), r"version 99 .*knows up to"),
    (changed(future_ir), "IR version 99"),
    (changed(zero_ir), "IR version 0"),
    (changed(nameless_initializer), "initializer has no name"),
    (changed(unknown_dtype), r"initializer 'w'.*data_type 77"),
    (changed(negative_dim), r"initializer 'w'.*negative"),
    (changed(no_data), r"initializer 'w'.*no data"),
    (changed(wrong_field), r"int64_data, expected float_data"),
    (changed(does_not_fit), r"300, which does not fit uint8"),
    (changed(raw_string), r"strings cannot stand in raw_data"),
    (changed(segment), "segment"),
    (changed(sparse_out_of_range), "outside"),
    (changed(sparse_descending), "not ascending"),
    (changed(unknown_attribute), r"node 'relu' \(Relu\): Relu has no attribute 'slope'"),
    (changed(twice_attribute), "given twice"),
    (changed(outer_parameter), "outside a function"),
    (changed(duplicate_metadata), "key twice"),
    (changed(duplicate_function), "two local functions"),
    (model([relu("nowhere")]), r"node 'relu' \(Relu\) reads 'nowhere', which nothing defines"),
    (model([relu()], ("z",)), "nothing defines the output 'z'"),
    (model([relu(), relu()]), "'y' is defined twice"),
    (model([relu(target="x")], ("x",)), "'x' is defined twice"),
    (model([relu("b", "a", "one"), relu("a", "b", "two")], ("a",)), "cycle: 'one' -> 'two'"),
    (model([relu("y", "y", "self")]), "cycle: 'self' -> 'self'"),
    (with_if(branch([relu(target="x")], "x")), r"then_branch: 'x' is already defined in graph"),
    (with_if(branch([relu("gone", "t")], "t")), r"then_branch: node 'relu'.*'gone'"),
]


@pytest.mark.parametrize(("faulty", "message"), FAULTS, ids=[message for _, message in FAULTS])
def test_fault_is_named(faulty: ModelProto, message: str) -> None:
    with pytest.raises(InvalidModel, match=message):
        import_model(faulty)


@pytest.mark.parametrize("data", [b"", b"\xff" * 40, b"not a protobuf", bytes(range(256))])
def test_bytes_that_are_no_model(data: bytes) -> None:
    with pytest.raises(InvalidModel):
        import_model(data)


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


def test_missing_file_names_the_path(tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match=r"gone\.onnx"):
        import_model(tmp_path / "gone.onnx")


def test_text_file_object_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "text.onnx"
    path.write_text("x")
    with path.open() as file, pytest.raises(InvalidModel, match="binary mode"):
        import_model(file)  # pyright: ignore[reportArgumentType]


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
