"""Large tensors of a model file, read to where they stay; the message goes without their data.

    file:      … raw_data: 9437184 bytes …  raw_data: 4194304 bytes …
    message:   … raw_data: <key 0> …        raw_data: <key 1> …

A message that is parsed with all its data is held beside the arrays that are made from it, so that
a model takes twice its file while it is imported. The file is read and not mapped: where another
program writes it while a session lives, a map would change weights, or end the process.

Source: the protobuf wire format.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from io import BufferedIOBase
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto

from foldline.importer.residual import varint

LEAST_BYTES = 1 << 12
"""What is shorter stays in the message."""
MOST_DEPTH = 100
"""So deep protobuf reads messages in messages."""
_TOKEN_BYTES = 16
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED = {_FIXED64: 8, _FIXED32: 4}

Array: TypeAlias = npt.NDArray[np.uint8]
_Numbers: TypeAlias = Mapping[int, type[Any]]

_INSIDE: Mapping[type[Any], _Numbers] = {
    ModelProto: {ModelProto.GRAPH_FIELD_NUMBER: GraphProto},
    GraphProto: {
        GraphProto.NODE_FIELD_NUMBER: NodeProto,
        GraphProto.INITIALIZER_FIELD_NUMBER: TensorProto,
    },
    NodeProto: {NodeProto.ATTRIBUTE_FIELD_NUMBER: AttributeProto},
    AttributeProto: {
        AttributeProto.T_FIELD_NUMBER: TensorProto,
        AttributeProto.G_FIELD_NUMBER: GraphProto,
    },
    TensorProto: {TensorProto.RAW_DATA_FIELD_NUMBER: bytes},
}
"""Where large tensors are: by message and number of a field, what that holds."""

_TYPES = {TensorProto: AttributeProto.TENSOR, GraphProto: AttributeProto.GRAPH}
"""The type of an attribute by what it holds. Where it has another one, its fields are kept as
leftovers, data and all."""


class Unusual(Exception):
    """Never seen outside: bytes that are to be parsed with all their data, or refused so."""


class LargeTensors:
    """Data of tensors by the key that stands for it in a message."""

    def __init__(self) -> None:
        # No file can hold a key by accident or on purpose.
        self._token = os.urandom(_TOKEN_BYTES)
        self._arrays: dict[bytes, Array] = {}

    def add(self, data: Array) -> bytes:
        """The key of data."""
        key = self._token + len(self._arrays).to_bytes(8, "little")
        self._arrays[key] = data
        return key

    def find(self, proto: TensorProto) -> Array | None:
        """The data of a tensor whose message holds a key; None where it holds the data itself."""
        return self._arrays.get(proto.raw_data) if self._arrays else None


def without_large(file: BufferedIOBase, size: int, large: LargeTensors) -> bytes:
    """The message of a model in a file of so many bytes, with keys for the data of large tensors.

    Raises Unusual for what is no such message, or would not be kept as it is.
    """
    return bytes(_Reader(file, large).message(ModelProto, size, 0))


@dataclass(frozen=True)
class _Reader:
    file: BufferedIOBase
    large: LargeTensors

    def message(self, kind: type[Any], end: int, depth: int) -> bytearray:
        """The message that ends at a place of the file."""
        if depth > MOST_DEPTH:
            raise Unusual
        inside, out = _INSIDE[kind], bytearray()
        attribute_type, found = 0, set[int]()
        while (left := end - self.file.tell()) > 0:
            tag = self._varint()
            number, wire = tag >> 3, tag & 7
            out += varint(tag)
            if wire == _VARINT:
                value = self._varint()
                out += varint(value)
                if kind is AttributeProto and number == AttributeProto.TYPE_FIELD_NUMBER:
                    attribute_type = value
            elif wire in _FIXED:
                out += self._bytes(_FIXED[wire])
            elif wire == _BYTES:
                size = self._varint()
                if size > left:
                    raise Unusual
                held = inside.get(number) if size >= LEAST_BYTES else None
                if held is not None and kind is AttributeProto:
                    found.add(_TYPES[held])
                content = self._content(held, size, depth)
                out += varint(len(content)) + content
            else:
                raise Unusual
        if self.file.tell() != end or found - {attribute_type}:
            raise Unusual
        return out

    def _content(self, held: type[Any] | None, size: int, depth: int) -> bytes | bytearray:
        if held is None:
            return self._bytes(size)
        if held is not bytes:
            return self.message(held, self.file.tell() + size, depth + 1)
        data = np.empty(size, np.uint8)
        if self.file.readinto(data.data) != size:
            raise Unusual
        return self.large.add(data)

    def _bytes(self, size: int) -> bytes:
        data = self.file.read(size)
        if len(data) < size:
            raise Unusual
        return data

    def _varint(self) -> int:
        number = shift = 0
        while shift < 64:
            byte = self._bytes(1)[0]
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7
        raise Unusual
