"""What a model may be given as, and what is said of files that are none."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import onnx
import pytest
from google.protobuf import json_format
from onnx import TensorProto, helper

import foldline
from foldline.exporter import export_model
from foldline.importer import import_model
from foldline.support.errors import InvalidArgumentError, InvalidModel


def model(source: str = "x") -> onnx.ModelProto:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    graph = helper.make_graph(
        [helper.make_node("Relu", [source], ["y"], name="relu")], "g", [x], [y]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


DATA = model().SerializeToString(deterministic=True)


def test_every_kind_of_source_gives_the_same_model(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(DATA)
    given: list[Any] = [model(), DATA, bytearray(DATA), memoryview(DATA), io.BytesIO(DATA)]
    for source in (*given, path, str(path)):
        assert export_model(import_model(source)) == model()


@pytest.mark.parametrize("source", [None, 3, model().graph, ["m.onnx"]])
def test_what_is_no_source_is_refused(source: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="path, bytes, binary file object or ModelProto"):
        import_model(source)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "it is empty"),
        (b"\xff" * 40, "40 bytes that are no complete protobuf message"),
        (b"not a protobuf", "14 bytes"),
        (bytes(range(256)), "256 bytes"),
        (DATA[:-9], "no complete protobuf message"),
        (model().graph.node[0].SerializeToString(), "it has no graph"),
        (str(model()).encode(), "text form of a model; read it with onnx.load"),
        (json_format.MessageToJson(model()).encode(), "text form of a model"),
        (onnx.printer.to_text(model()).encode(), "text form of a model"),
        (gzip.compress(DATA, mtime=0), "compressed; unpack it"),
        (b"PK\x03\x04", "zip archive, as PyTorch"),
        (b"\x80\x02}q\x00.", "pickle"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "git lfs pull"),
        (b"\n<!DOCTYPE html><html>", "web page"),
    ],
)
def test_data_that_is_no_model_is_named(data: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match=rf"the data is no ONNX model: .*{message}"):
        import_model(data)
    path = tmp_path / "given.onnx"
    path.write_bytes(data)
    with pytest.raises(InvalidModel, match=rf"given\.onnx' is no ONNX model: .*{message}"):
        import_model(path)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match=r"gone\.onnx' cannot be read: No such file"):
        import_model(tmp_path / "gone.onnx")
    with pytest.raises(InvalidModel, match="cannot be read: Is a directory"):
        import_model(tmp_path)


def test_text_file_object_is_refused() -> None:
    with pytest.raises(InvalidModel, match="binary mode"):
        import_model(io.StringIO("x"))  # pyright: ignore[reportArgumentType]


def test_what_is_wrong_with_a_file_names_it(tmp_path: Path) -> None:
    path = tmp_path / "bad.onnx"
    path.write_bytes(model("z").SerializeToString())
    with pytest.raises(InvalidModel, match=r"bad\.onnx': graph: node 'relu' \(Relu\) reads 'z'"):
        import_model(path)
    faulty = model()
    faulty.graph.node[0].input.append("x")
    path.write_bytes(faulty.SerializeToString())
    with pytest.raises(InvalidModel, match=r"bad\.onnx': graph: .*has 2 inputs, expected 1"):
        foldline.compile(path)
