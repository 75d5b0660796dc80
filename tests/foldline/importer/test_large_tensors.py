"""Large tensors are read beside the message; nothing else about a model changes by that."""

import io
import os
import threading
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from onnx import AttributeProto, GraphProto, ModelProto, TensorProto, helper, numpy_helper

from foldline.dialects.onnx.structure import InitializerOp
from foldline.exporter import export_model
from foldline.importer import import_model, large_tensors
from foldline.importer.large_tensors import LargeTensors, Unusual, without_large
from foldline.importer.residual import varint
from foldline.support.errors import FoldlineError
from tests.foldline.importer.test_mutation import base_model

ROWS = 2048
WEIGHTS = np.arange(ROWS * 16, dtype=np.float32).reshape(ROWS, 16)


def model() -> ModelProto:
    """A model with a large initializer, a large Constant and one in a body."""
    body = helper.make_graph(
        [helper.make_node("Add", ["x", "inner"], ["t"])],
        "body",
        [],
        [helper.make_tensor_value_info("t", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(WEIGHTS + 2, "inner")],
    )
    constant = numpy_helper.from_array(WEIGHTS + 1)
    graph = helper.make_graph(
        [
            helper.make_node("Constant", [], ["c"], name="constant", value=constant),
            helper.make_node("If", ["k"], ["i"], name="if", then_branch=body, else_branch=body),
            helper.make_node("Sum", ["x", "w", "c", "i"], ["y"], name="sum"),
        ],
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [ROWS, 16]),
            helper.make_tensor_value_info("k", TensorProto.BOOL, []),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [ROWS, 16])],
        [numpy_helper.from_array(WEIGHTS, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def encoded(message: ModelProto) -> bytes:
    return message.SerializeToString(deterministic=True)


def slim(data: bytes) -> tuple[bytes, LargeTensors]:
    large = LargeTensors()
    return without_large(io.BytesIO(data), len(data), large), large


def outcome(source: bytes | ModelProto) -> object:
    """What import makes of a model: the bytes of its export, or what it says."""
    try:
        return encoded(export_model(import_model(source)))
    except FoldlineError as error:
        return type(error), str(error)


def test_the_message_goes_without_what_is_large() -> None:
    data = encoded(model())
    message, _ = slim(data)
    assert len(data) > 4 * WEIGHTS.nbytes
    assert len(message) < 2000
    assert encoded(export_model(import_model(data))) == data


def test_a_model_is_held_once_while_it_is_imported(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(encoded(model()))
    import_model(path)
    tracemalloc.start()
    try:
        module = import_model(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert module is not None
    assert peak < path.stat().st_size + 300_000


def test_weights_stay_when_the_file_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(encoded(model()))
    module = import_model(path)
    with path.open("r+b") as file:
        file.write(bytes(path.stat().st_size))
        file.truncate(10)
    (initializer,) = [op for op in module.walk() if isinstance(op, InitializerOp)][:1]
    np.testing.assert_array_equal(initializer.value.array, WEIGHTS)


def test_a_model_may_come_through_a_pipe() -> None:
    data = encoded(model())
    reading, writing = os.pipe()

    def write() -> None:
        with os.fdopen(writing, "wb") as file:
            file.write(data)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert encoded(export_model(import_model(f"/dev/fd/{reading}"))) == data
    finally:
        thread.join()
        os.close(reading)


def test_every_kind_of_message_is_read_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_tensors, "LEAST_BYTES", 1)
    for proto in (model(), base_model()):
        assert outcome(encoded(proto)) == outcome(proto)


def test_data_that_an_attribute_keeps_as_a_leftover_is_kept() -> None:
    """An attribute of another type that holds a tensor or a graph beside its value."""
    proto = model()
    for name in ("t", "g"):
        odd = ModelProto()
        odd.CopyFrom(proto)
        attribute = odd.graph.node[2].attribute.add(name="note", type=AttributeProto.INT, i=3)
        if name == "t":
            attribute.t.CopyFrom(proto.graph.node[0].attribute[0].t)
        else:
            attribute.g.CopyFrom(proto.graph.node[1].attribute[0].g)
        odd.graph.node[2].domain = "custom"
        odd.opset_import.add(domain="custom", version=1)
        with pytest.raises(Unusual):
            slim(encoded(odd))
        assert outcome(encoded(odd)) == outcome(odd)
        assert isinstance(outcome(odd), bytes)


def test_of_data_given_twice_the_last_holds() -> None:
    given = numpy_helper.from_array(WEIGHTS, "v").SerializeToString()
    again = TensorProto(raw_data=(WEIGHTS + 5).tobytes()).SerializeToString()
    # Two messages of one field are one message.
    graph = _field(GraphProto.INITIALIZER_FIELD_NUMBER, given + again)
    data = encoded(model()) + _field(ModelProto.GRAPH_FIELD_NUMBER, graph)
    initializers = [op for op in import_model(data).walk() if isinstance(op, InitializerOp)]
    np.testing.assert_array_equal(initializers[1].value.array, WEIGHTS + 5)
    assert outcome(data) == outcome(ModelProto.FromString(data))


def _field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


@pytest.mark.parametrize("cut", [1, 1000, 140_000])
def test_what_was_cut_short_says_its_length(cut: int, tmp_path: Path) -> None:
    data = encoded(model())[:-cut]
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    with pytest.raises(FoldlineError, match=f"{len(data)} bytes that are no complete protobuf"):
        import_model(path)


def test_damaged_models_come_out_as_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    whole = np.frombuffer(encoded(base_model()), np.uint8)
    kinds = set[type]()
    for _ in range(300):
        data = whole.copy()
        data[random.integers(len(data), size=random.integers(1, 4))] = random.integers(256)
        monkeypatch.setattr(large_tensors, "LEAST_BYTES", 1)
        ours = outcome(data.tobytes())
        monkeypatch.setattr(large_tensors, "LEAST_BYTES", 1 << 40)
        assert ours == outcome(data.tobytes())
        kinds.add(type(ours))
    assert kinds == {bytes, tuple}


def test_messages_too_deep_are_left_to_protobuf(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_tensors, "LEAST_BYTES", 1)
    monkeypatch.setattr(large_tensors, "MOST_DEPTH", 2)
    with pytest.raises(Unusual):
        slim(encoded(model()))
    assert outcome(encoded(model())) == outcome(model())
