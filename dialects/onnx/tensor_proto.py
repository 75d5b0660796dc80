"""Tensors to and from `TensorProto`: typed fields, raw data, sub-byte packing, strings.

Layouts: `onnx.proto` (IR 14). `raw_data` is little endian; 4- and 2-bit elements are packed from
the low bits on; 6-bit elements are a bit stream in `raw_data` and one a number in `int32_data`.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto

from foldline.dialects.onnx.tensor import Spelling, Tensor
from foldline.support.dtypes import BY_CODE, BY_NUMPY, ElementType
from foldline.support.errors import InvalidModel
from foldline.support.text import decoded, encoded

Array = npt.NDArray[Any]

LITTLE = sys.byteorder == "little"

TYPED_FIELDS = (
    "float_data",
    "int32_data",
    "int64_data",
    "uint64_data",
    "double_data",
    "string_data",
)


def read_tensor(proto: TensorProto, where: str, raw: Array | None = None) -> Tensor:
    """The tensor of a message that holds its own data; `raw` is what stands for its raw data.

    Raises InvalidModel for an unknown type, data that is missing, doubled, of the wrong field, too
    short or too long, and numbers that do not fit the type.
    """
    element, shape = header(proto, where)
    fields = [name for name in TYPED_FIELDS if len(getattr(proto, name))]
    if proto.HasField("raw_data"):
        fields.append("raw_data")
    if len(fields) > 1:
        raise InvalidModel(f"{where}: tensor has two data fields, {' and '.join(fields)}")
    count = math.prod(shape)
    if not fields:
        if count:
            raise InvalidModel(f"{where}: tensor of {count} elements has no data")
        return Tensor(np.empty(shape, element.numpy), "none")
    if fields[0] == "raw_data":
        data = proto.raw_data if raw is None else raw
        return Tensor(from_raw(data, element, shape, where), "raw")
    if fields[0] != element.typed_field:
        raise InvalidModel(
            f"{where}: {element.name} tensor has {fields[0]}, expected {element.typed_field} "
            "or raw_data"
        )
    return Tensor(_from_typed(getattr(proto, fields[0]), element, shape, where), "typed")


def header(proto: TensorProto, where: str) -> tuple[ElementType, tuple[int, ...]]:
    """Element type and shape of a message, checked."""
    element = BY_CODE.get(proto.data_type)
    if element is None:
        raise InvalidModel(f"{where}: tensor has unknown data_type {proto.data_type}")
    shape = tuple(proto.dims)
    if any(d < 0 for d in shape):
        raise InvalidModel(f"{where}: tensor has a negative dimension in {list(shape)}")
    if proto.HasField("segment"):
        raise InvalidModel(f"{where}: tensor is a segment of a larger one, which is not supported")
    return element, shape


def stored_size(element: ElementType, count: int) -> int:
    """Bytes that `count` elements take in `raw_data`."""
    return (element.bits * count + 7) // 8


def from_raw(
    data: bytes | Array, element: ElementType, shape: tuple[int, ...], where: str
) -> Array:
    """The array in `raw_data` or in a mapped file; copied only where elements are packed."""
    if element.name == "string":
        raise InvalidModel(f"{where}: strings cannot stand in raw_data")
    count = math.prod(shape)
    size = stored_size(element, count)
    if len(data) != size:
        raise InvalidModel(
            f"{where}: {element.name}{list(shape)} needs {size} bytes of data, found {len(data)}"
        )
    raw = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data
    if element.bits >= 8:
        # On most machines the dtype itself: a copy of one is slower wherever dtypes are compared.
        stored = element.numpy if LITTLE else element.numpy.newbyteorder("<")
        return raw.view(stored).reshape(shape)
    return _unpacked(raw, element, count).reshape(shape)


def _unpacked(raw: Array, element: ElementType, count: int) -> Array:
    if element.bits == 6:
        bits = np.unpackbits(raw, bitorder="little")[: 6 * count].reshape(count, 6)
        codes = np.packbits(np.pad(bits, ((0, 0), (0, 2))), axis=1, bitorder="little").reshape(-1)
    else:
        shifts = np.arange(0, 8, element.bits, dtype=np.uint8)
        mask = np.uint8((1 << element.bits) - 1)
        codes = ((raw[:, None] >> shifts) & mask).reshape(-1)[:count]
    return _from_codes(codes.astype(np.uint8), element)


def _from_codes(codes: Array, element: ElementType) -> Array:
    """Sub-byte elements from their bit patterns in the low bits of a byte."""
    if element.name in ("int4", "int2"):
        sign = np.uint8(1 << (element.bits - 1))
        codes = ((codes ^ sign).astype(np.int8) - np.int8(sign)).astype(np.int8)
        return codes.astype(element.numpy)
    if element.name in ("uint4", "uint2"):
        return codes.astype(element.numpy)
    return codes.view(element.numpy)


def _from_typed(data: Any, element: ElementType, shape: tuple[int, ...], where: str) -> Array:
    count = math.prod(shape)
    entries = _typed_entries(element, count)
    if len(data) != entries:
        raise InvalidModel(
            f"{where}: {element.name}{list(shape)} needs {entries} entries in "
            f"{element.typed_field}, found {len(data)}"
        )
    if element.name == "string":
        texts = np.empty(count, np.object_)
        texts[:] = [decoded(item) for item in data]
        return texts.reshape(shape)
    if element.name.startswith("complex"):
        half = np.float32 if element.name == "complex64" else np.float64
        return np.array(data, half).view(element.numpy).reshape(shape)
    if element.typed_field != "int32_data":
        return np.array(data, element.numpy).reshape(shape)
    numbers = np.array(data, np.int32)
    if element.bits < 8 and element.bits != 6:
        raw = numbers.astype(np.uint8)
        _refuse_misfits(numbers, raw, element, where)
        return _unpacked(raw, element, count).reshape(shape)
    if element.bits == 6:
        return _from_codes(numbers.astype(np.uint8), element).reshape(shape)
    is_pattern = element.numpy.kind not in "iub"
    target = np.dtype(f"u{element.bits // 8}") if is_pattern else element.numpy
    values = numbers.astype(target)
    _refuse_misfits(numbers, values, element, where)
    return (values.view(element.numpy) if is_pattern else values).reshape(shape)


def _refuse_misfits(numbers: Array, values: Array, element: ElementType, where: str) -> None:
    bad = np.flatnonzero(values.astype(np.int64) != numbers)
    if bad.size:
        raise InvalidModel(
            f"{where}: int32_data holds {numbers[bad[0]]}, which does not fit {element.name}"
        )


def _typed_entries(element: ElementType, count: int) -> int:
    if element.name.startswith("complex"):
        return 2 * count
    per_entry = {4: 2, 2: 4}.get(element.bits, 1)
    return -(-count // per_entry)


def fill_tensor(proto: TensorProto, tensor: Tensor) -> None:
    """Write type, shape and data of a tensor into a message, in the tensor's own spelling."""
    element = set_header(proto, tensor)
    if tensor.spelling == "none" and not tensor.array.size:
        return
    if element.name == "string":
        proto.string_data.extend(encoded(text) for text in tensor.array.reshape(-1).tolist())
    elif tensor.spelling == "typed":
        getattr(proto, element.typed_field).extend(_typed(tensor.array, element))
    else:
        proto.raw_data = to_raw(tensor.array)


def set_header(proto: TensorProto, tensor: Tensor) -> ElementType:
    """Write type and shape of a tensor into a message."""
    element = BY_NUMPY[tensor.array.dtype.newbyteorder("=")]
    proto.data_type = element.code
    proto.dims.extend(tensor.array.shape)
    return element


def to_raw(array: Array) -> bytes:
    """The elements as `raw_data`."""
    element = BY_NUMPY[array.dtype.newbyteorder("=")]
    if element.bits >= 8:
        return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    return _packed(array, element).tobytes()


def _packed(array: Array, element: ElementType) -> npt.NDArray[np.uint8]:
    codes = np.ascontiguousarray(array).reshape(-1).view(np.uint8) & np.uint8(
        (1 << element.bits) - 1
    )
    if element.bits == 6:
        bits = np.unpackbits(codes.reshape(-1, 1), axis=1, bitorder="little")[:, :6]
        return np.packbits(bits.reshape(-1), bitorder="little")
    per_byte = 8 // element.bits
    padded = np.zeros(-(-codes.size // per_byte) * per_byte, np.uint8)
    padded[: codes.size] = codes
    shifts = np.arange(0, 8, element.bits, dtype=np.uint8)
    packed: npt.NDArray[np.uint8] = np.bitwise_or.reduce(
        padded.reshape(-1, per_byte) << shifts, axis=1
    )
    return packed


def _typed(array: Array, element: ElementType) -> list[Any]:
    flat = np.ascontiguousarray(array).reshape(-1)
    if element.name.startswith("complex"):
        return flat.view(np.float32 if element.name == "complex64" else np.float64).tolist()
    if element.typed_field != "int32_data":
        return flat.tolist()
    if element.bits in (2, 4):
        return _packed(flat, element).tolist()
    if element.bits == 6:
        return (flat.view(np.uint8) & np.uint8(63)).tolist()
    if element.numpy.kind in "iub":
        return flat.astype(np.int32).tolist()
    return flat.view(f"u{element.bits // 8}").tolist()


def tensor_proto(
    tensor: Tensor, name: str | None = None, spelling: Spelling = "raw"
) -> TensorProto:
    """A new message of a tensor."""
    proto = TensorProto()
    if name is not None:
        proto.name = name
    fill_tensor(proto, Tensor(tensor.array, spelling))
    return proto
