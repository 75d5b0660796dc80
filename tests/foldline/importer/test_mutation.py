"""Whatever a message holds is kept or refused: each unset field is set, each kind gets an unknown.

The base model holds every message kind once; it must round-trip before it is mutated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from onnx import ModelProto, TensorProto, helper, numpy_helper

from foldline.exporter import export_model
from foldline.importer import import_model
from foldline.support.errors import InvalidModel
from tests.foldline.importer.comparison import normalised

UNKNOWN_FIELD = b"\xf8\x7f\x05"
"""Field 2047, varint 5: no message of ONNX has it."""


def base_model() -> ModelProto:
    """A model with bodies, a function, sparse and dense tensors, and all kinds of types."""
    body = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["n"], name="neg")],
        "then",
        [],
        [helper.make_tensor_value_info("n", TensorProto.FLOAT, ["N"])],
        value_info=[helper.make_tensor_value_info("unused", TensorProto.FLOAT, [1])],
    )
    other = helper.make_graph(
        [helper.make_node("Abs", ["x"], ["a"], name="abs")],
        "else",
        [],
        [helper.make_tensor_value_info("a", TensorProto.FLOAT, ["N"])],
    )
    constant = numpy_helper.from_array(np.arange(3, dtype=np.float32))
    sequence = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
    nodes = [
        helper.make_node("Constant", [], ["k"], name="constant", value=constant),
        helper.make_node("Twice", ["x"], ["t"], name="call", domain="local", alpha=2.0),
        helper.make_node("If", ["c"], ["i"], name="if", else_branch=other, then_branch=body),
        helper.make_node("Concat", ["k", "w", "v", "i", "t"], ["y"], name="concat", axis=0),
        helper.make_node("SequenceConstruct", ["y"], ["s"], name="sequence"),
    ]
    function = helper.make_function(
        "local",
        "Twice",
        ["a"],
        ["b"],
        [helper.make_node("Add", ["a", "a"], ["b"], name="add")],
        [helper.make_opsetid("", 21)],
        [],
        [helper.make_attribute("alpha", 1.0)],
    )
    sparse = helper.make_sparse_tensor(
        numpy_helper.from_array(np.array([2.0], np.float32), "v"),
        numpy_helper.from_array(np.array([1], np.int64)),
        [3],
    )
    graph = helper.make_graph(
        nodes,
        "graph",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N"]),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None), sequence],
        [numpy_helper.from_array(np.ones(2, np.float32), "w")],
        value_info=[helper.make_tensor_value_info("k", TensorProto.FLOAT, [3])],
        sparse_initializer=[sparse],
    )
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=imports, functions=[function], ir_version=10)


def messages(message: Message, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every message inside, itself first."""
    yield path
    for field, value in message.ListFields():
        if field.type != FieldDescriptor.TYPE_MESSAGE:
            continue
        if field.is_repeated:
            for index, item in enumerate(value):
                yield from messages(item, (*path, (field.name, index)))
        else:
            yield from messages(value, (*path, (field.name, None)))


def at(message: Any, path: tuple[Any, ...]) -> Any:
    for name, index in path:
        message = getattr(message, name)
        message = message if index is None else message[index]
    return message


def first_of_each_place() -> list[tuple[Any, ...]]:
    """One path for each message kind in each kind of place."""
    model = base_model()
    found: dict[Any, tuple[Any, ...]] = {}
    for path in messages(model):
        place = tuple(name for name, _ in path)
        found.setdefault((at(model, path).DESCRIPTOR.name, place), path)
    return list(found.values())


PATHS = first_of_each_place()


def unset_fields() -> list[tuple[tuple[Any, ...], str]]:
    model = base_model()
    return [
        (path, field.name)
        for path in PATHS
        for field in at(model, path).DESCRIPTOR.fields
        if field.name not in {f.name for f, _ in at(model, path).ListFields()}
    ]


def set_field(message: Any, name: str) -> None:
    """Set a field to a value that a reader cannot mistake for its default."""
    field = message.DESCRIPTOR.fields_by_name[name]
    if field.type == FieldDescriptor.TYPE_MESSAGE:
        if field.is_repeated:
            getattr(message, name).add()
        else:
            getattr(message, name).SetInParent()
        return
    texts = {FieldDescriptor.TYPE_STRING: "ü?", FieldDescriptor.TYPE_BYTES: b"\xff\x01"}
    value = texts.get(field.type, 1)
    if field.is_repeated:
        getattr(message, name).append(value)
    else:
        setattr(message, name, value)


def label(path: tuple[Any, ...]) -> str:
    return ".".join(f"{n}[{i}]" if i is not None else n for n, i in path) or "model"


def assert_kept_or_refused(model: ModelProto) -> None:
    try:
        module = import_model(model)
    except InvalidModel:
        return
    assert normalised(export_model(module)) == normalised(model)


def test_base_model_is_unchanged() -> None:
    model = base_model()
    assert normalised(export_model(import_model(model))) == normalised(model)


@pytest.mark.parametrize(
    ("path", "name"), unset_fields(), ids=lambda v: v if isinstance(v, str) else label(v)
)
def test_unset_field_is_kept_or_refused(path: tuple[Any, ...], name: str) -> None:
    model = base_model()
    set_field(at(model, path), name)
    assert_kept_or_refused(model)


@pytest.mark.parametrize("path", PATHS, ids=label)
def test_unknown_field_is_kept_or_refused(path: tuple[Any, ...]) -> None:
    model = base_model()
    at(model, path).MergeFromString(UNKNOWN_FIELD)
    assert_kept_or_refused(model)


@pytest.mark.parametrize("second", ["float_data", "int32_data", "raw_data", "string_data"])
def test_second_data_field_is_refused(second: str) -> None:
    model = base_model()
    tensor = model.graph.initializer[0]
    if second == "raw_data":
        tensor.float_data.extend([1.0, 2.0])
    else:
        getattr(tensor, second).append(b"x" if second == "string_data" else 1)
    with pytest.raises(InvalidModel, match="two data fields"):
        import_model(model)


def test_truncated_data_is_refused() -> None:
    for name, value in (("raw_data", b"\0" * 7), ("float_data", [1.0])):
        model = base_model()
        tensor = model.graph.initializer[0]
        tensor.ClearField("raw_data")
        if name == "raw_data":
            tensor.raw_data = value
        else:
            tensor.float_data.extend(value)
        with pytest.raises(InvalidModel, match=r"initializer 'w'.*needs"):
            import_model(model)
