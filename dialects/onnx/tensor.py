"""`#onnx.tensor`: a constant as an attribute around a read-only array, never copied.

Small tensors print inline; large ones print as a key whose bytes stand in a side file, so text
round-trips: `#onnx.tensor<"int64", [2], "0100…">` or `#onnx.tensor<"key">`. A splat (all elements
equal) holds one element: `#onnx.tensor<"float", [1000, 1000], splat, "0000803f">`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from xdsl.ir import Attribute, Data, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from foldline.dialects.onnx.text import ResidualAttr
from foldline.dialects.onnx.types import tensor_type_of
from foldline.support.dtypes import BY_NAME, BY_NUMPY
from foldline.support.text import decoded, encoded, quoted, unquoted

Array: TypeAlias = npt.NDArray[Any]
Spelling: TypeAlias = Literal["raw", "typed", "none", "external"]

INLINE_BYTES = 64


class Tensor:
    """A read-only array with the facts the IR needs: identity first, digest only when asked.

    `array` may be a memory map, or a broadcast view of one element (a splat). Equality means the
    same element type, shape and bytes; hashing reads no bytes.
    """

    __slots__ = ("_digest", "array", "spelling")

    def __init__(self, array: Array, spelling: Spelling = "raw"):
        if array.flags.writeable:
            array = array.view()
            array.flags.writeable = False
        self.array = array
        self.spelling: Spelling = spelling
        self._digest: bytes | None = None

    def move_to(self, array: Array) -> None:
        """Take the place of an array that has the same elements, in whatever order of memory."""
        self.array = array

    @property
    def is_splat(self) -> bool:
        """Whether one stored element stands for all."""
        return self.array.size > 1 and not any(self.array.strides)

    @property
    def stored_bytes(self) -> int:
        """Bytes held in memory: of one element for a splat."""
        return self.array.itemsize if self.is_splat else self.array.nbytes

    @property
    def digest(self) -> bytes:
        """A digest of the bytes in C order, computed once."""
        if self._digest is None:
            self._digest = hashlib.blake2b(data_bytes(self.array), digest_size=16).digest()
        return self._digest

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Tensor):
            return NotImplemented
        a, b = self.array, other.array
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        if self.is_splat and other.is_splat:
            return data_bytes(a.flat[:1]) == data_bytes(b.flat[:1])
        return self.digest == other.digest

    def __hash__(self) -> int:
        return hash((self.array.dtype, self.array.shape))

    def __repr__(self) -> str:
        return f"Tensor({BY_NUMPY[self.array.dtype].name}{list(self.array.shape)})"


def splat(value: npt.ArrayLike, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """An array of one stored element seen under `shape`; costs no memory."""
    return np.broadcast_to(np.asarray(value, dtype), shape)


def data_bytes(array: Array) -> bytes:
    """The elements in C order; strings as length-prefixed UTF-8."""
    if array.dtype == np.object_:
        texts = [encoded(text) for text in array.reshape(-1).tolist()]
        return b"".join(len(text).to_bytes(8, "little") + text for text in texts)
    return array.tobytes()


def from_data_bytes(data: bytes, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """The inverse of `data_bytes`."""
    if dtype != np.object_:
        return np.frombuffer(data, dtype).reshape(shape)
    texts: list[str] = []
    start = 0
    while start < len(data):
        end = start + 8 + int.from_bytes(data[start : start + 8], "little")
        texts.append(decoded(data[start + 8 : end]))
        start = end
    array = np.empty(len(texts), np.object_)
    array[:] = texts
    return array.reshape(shape)


class SideFile:
    """Where the bytes of large tensors are kept while IR is text: key to tensor."""

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}
        self._keys: dict[int, str] = {}

    def add(self, tensor: Tensor) -> str:
        """The key of a tensor; the same tensor object has one key."""
        key = self._keys.get(id(tensor))
        if key is None:
            key = f"t{len(self.tensors)}"
            self._keys[id(tensor)] = key
            self.tensors[key] = tensor
        return key

    def save(self, path: str) -> None:
        """Write all tensors as an `.npz`-like archive; strings and small floats included."""
        with open(path, "wb") as file:
            np.savez(
                file,
                allow_pickle=False,
                **{key: _storable(tensor) for key, tensor in self.tensors.items()},
            )

    @classmethod
    def load(cls, path: str) -> SideFile:
        """Read what `save` wrote."""
        side = cls()
        with np.load(path, allow_pickle=False) as archive:
            for key in archive.files:
                side.tensors[key] = _restored(archive[key])
        return side


def _storable(tensor: Tensor) -> npt.NDArray[np.uint8]:
    head = f"{BY_NUMPY[tensor.array.dtype].name} {tensor.spelling} {int(tensor.is_splat)} "
    head += ",".join(map(str, tensor.array.shape))
    array = tensor.array.reshape(-1)[:1] if tensor.is_splat else tensor.array
    return np.frombuffer(head.encode() + b"\n" + data_bytes(array), np.uint8)


def _restored(stored: npt.NDArray[np.uint8]) -> Tensor:
    head, _, data = stored.tobytes().partition(b"\n")
    name, spelling, is_splat, dims = head.decode().split(" ")
    shape = tuple(int(d) for d in dims.split(",") if d)
    dtype = BY_NAME[name].numpy
    array = (
        np.broadcast_to(from_data_bytes(data, dtype, ()), shape)
        if int(is_splat)
        else from_data_bytes(data, dtype, shape)
    )
    checked: dict[str, Spelling] = {
        "raw": "raw",
        "typed": "typed",
        "none": "none",
        "external": "external",
    }
    return Tensor(array, checked[spelling])


_side_file: ContextVar[SideFile | None] = ContextVar("side_file", default=None)


@contextmanager
def side_file(side: SideFile) -> Generator[SideFile]:
    """Print and parse large tensors through `side` inside the block.

    xDSL gives printers and attribute parsers no place to carry such a table.
    """
    token = _side_file.set(side)
    try:
        yield side
    finally:
        _side_file.reset(token)


@irdl_attr_definition
class TensorAttr(Data[Tensor]):
    """A constant tensor."""

    name = "onnx.tensor"

    @classmethod
    def of(cls, array: Array, spelling: Spelling = "raw") -> TensorAttr:
        """The attribute around an array."""
        return cls(Tensor(array, spelling))

    @property
    def array(self) -> Array:
        """The read-only array."""
        return self.data.array

    @property
    def type(self) -> Attribute:
        """The tensor type of the array."""
        return tensor_type_of(self.data.array)

    def print_parameter(self, printer: Printer) -> None:
        """Write the tensor inline, or its key in the side file."""
        tensor = self.data
        stored = tensor.array.reshape(-1)[:1] if tensor.is_splat else tensor.array
        with printer.in_angle_brackets():
            side = _side_file.get()
            if side is not None and not tensor.is_splat and stored.nbytes > INLINE_BYTES:
                printer.print_string(f'"{side.add(tensor)}"')
                return
            shape = ", ".join(map(str, tensor.array.shape))
            name = BY_NUMPY[tensor.array.dtype].name
            kind = "splat, " if tensor.is_splat else ""
            spelling = "" if tensor.spelling == "raw" else f"{tensor.spelling}, "
            printer.print_string(f'"{name}", [{shape}], {kind}{spelling}')
            printer.print_string(f'"{_data_text(stored)}"')

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Tensor:
        """Read what `print_parameter` wrote."""
        with parser.in_angle_brackets():
            first = parser.parse_str_literal()
            if parser.parse_optional_punctuation(",") is None:
                side = _side_file.get()
                if side is not None and first in side.tensors:
                    return side.tensors[first]
                parser.raise_error(f"no tensor '{first}' in the side file")
            shape = tuple(
                parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
            )
            parser.parse_punctuation(",")
            words: list[str] = []
            while (word := parser.parse_optional_identifier()) is not None:
                words.append(word)
                parser.parse_punctuation(",")
            data = _text_data(parser.parse_str_literal(), first)
        return _from_words(data, BY_NAME[first].numpy, shape, words)


def _from_words(
    data: bytes, dtype: np.dtype[Any], shape: tuple[int, ...], words: list[str]
) -> Tensor:
    spelling: Spelling = "raw"
    known: tuple[Spelling, ...] = ("typed", "none", "external")
    for candidate in known:
        if candidate in words:
            spelling = candidate
    if "splat" in words:
        return Tensor(np.broadcast_to(from_data_bytes(data, dtype, ()), shape), spelling)
    return Tensor(from_data_bytes(data, dtype, shape), spelling)


def _data_text(array: Array) -> str:
    if array.dtype == np.object_:
        return "".join(quoted(text)[1:-1].replace(",", "%2C") + "," for text in array.reshape(-1))
    return array.tobytes().hex()


def _text_data(text: str, name: str) -> bytes:
    if name == "string":
        array = np.array([unquoted(part) for part in text.split(",")[:-1]], np.object_)
        return data_bytes(array)
    return bytes.fromhex(text)


@irdl_attr_definition
class SparseTensorAttr(ParametrizedAttribute):
    """A sparse tensor: its dense value, and the SparseTensorProto it is written back as."""

    name = "onnx.sparse"
    dense: TensorAttr
    source: ResidualAttr
