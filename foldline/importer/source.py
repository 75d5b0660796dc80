"""Where a model comes from: path, bytes, file object, message; and what else a file may be."""

from __future__ import annotations

import io
import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TypeAlias, cast

from google.protobuf.message import DecodeError
from onnx import ModelProto

from foldline.importer.large_tensors import LargeTensors, Unusual, without_large
from foldline.support.errors import InvalidArgumentError, InvalidModel

Source: TypeAlias = (
    "str | os.PathLike[str] | bytes | bytearray | memoryview | IO[bytes] | ModelProto"
)

_UNPACK = "is compressed; unpack it first"
_TEXT = "is a text form of a model; read it with onnx.load, which goes by the file's ending"
_SIGNS: tuple[tuple[bytes, str], ...] = (
    (b"\x1f\x8b", _UNPACK),
    (b"7z\xbc\xaf", _UNPACK),
    (b"PK\x03\x04", "is a zip archive, as PyTorch saves models; export the model to ONNX"),
    (b"\x80\x02", "is a Python pickle; export the model to ONNX"),
    (b"\x89HDF", "is an HDF5 file; export the model to ONNX"),
    (b"version https://git-lfs", "is a Git LFS pointer; fetch the file with git lfs pull"),
    (b"<!DOCTYPE", "is a web page; download the model itself"),
    (b"<html", "is a web page; download the model itself"),
    (b"ir_version", _TEXT),
    (b"{", _TEXT),
    (b"<", _TEXT),
)
"""How files begin that are given for a model by mistake."""

MAX_MESSAGE_BYTES = (1 << 31) - 1
"""The most one protobuf message can hold."""


@dataclass(frozen=True)
class Read:
    """What a model's source holds."""

    proto: ModelProto
    folder: Path | None = None
    """Of external data, if the model is a file."""
    large: LargeTensors = field(default_factory=LargeTensors)
    """What the message has keys for."""


def read_source(source: Source) -> Read:
    """The message, and where the rest of the model is.

    Raises InvalidModel for data that is no model, InvalidArgumentError for no source at all.
    """
    if isinstance(source, ModelProto):
        return Read(source)
    if isinstance(source, bytes | bytearray | memoryview):
        return _read(io.BytesIO(source), "the data")
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        try:
            with path.open("rb") as file:
                return _read(file, f"'{path}'", path.parent)
        except OSError as error:
            raise InvalidModel(f"'{path}' cannot be read: {error.strerror}") from error
    if not hasattr(cast(object, source), "read"):
        raise InvalidArgumentError(
            f"a model is given as path, bytes, binary file object or ModelProto, "
            f"got {type(source).__name__}"
        )
    data = source.read()
    if not isinstance(cast(object, data), bytes):
        raise InvalidModel("the file object gives text; open it in binary mode")
    return _read(io.BytesIO(data), "the data of the file object")


def _read(file: io.BufferedIOBase, label: str, folder: Path | None = None) -> Read:
    if not file.seekable():
        file = io.BytesIO(file.read())
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    large = LargeTensors()
    if size <= MAX_MESSAGE_BYTES:
        try:
            return Read(_parsed(without_large(file, size, large), size, label), folder, large)
        except Unusual:
            file.seek(0)
    return Read(_parsed(file.read(), size, label), folder)


def _parsed(data: bytes, size: int, label: str) -> ModelProto:
    """The message in data that stands for `size` bytes."""
    try:
        proto = ModelProto.FromString(data)
    except DecodeError as error:
        what = f"{size} bytes that are no complete protobuf message; was it cut short?"
        raise InvalidModel(f"{label} is no ONNX model: {_guess(data) or what}") from error
    if not proto.HasField("graph"):
        what = "it has no graph; is it a tensor, or another kind of message?"
        raise InvalidModel(f"{label} is no ONNX model: {_guess(data) or what}")
    return proto


def _guess(data: bytes) -> str:
    """What the data is instead; empty if there is no sign of it."""
    if not data:
        return "it is empty"
    if len(data) > MAX_MESSAGE_BYTES:
        return "it is larger than the 2 GiB of one protobuf message; keep weights as external data"
    start = data[:64].lstrip()
    return next((f"it {meaning}" for sign, meaning in _SIGNS if start.startswith(sign)), "")


@contextmanager
def blamed_on(source: Source) -> Generator[None]:
    """Let what is wrong with a model say which file that is."""
    try:
        yield
    except InvalidModel as error:
        if isinstance(source, str | os.PathLike) and str(Path(source)) not in str(error):
            error.args = (f"'{Path(source)}': {error}",)
        raise
