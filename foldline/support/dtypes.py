"""The element types of ONNX: code, name, NumPy dtype and storage, in one table.

Source: `onnx.proto` (IR 14), message TensorProto. The codes are part of the file format.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np


@dataclass(frozen=True)
class ElementType:
    """One element type of ONNX."""

    code: int
    """Value of `TensorProto.data_type`."""
    name: str
    """ONNX's name in lower case, as type strings spell it: `tensor(float16)`."""
    numpy: np.dtype[Any]
    """How arrays of it are held; sub-byte types take one byte an element in memory."""
    bits: int
    """Bits an element takes in `raw_data`."""
    typed_field: str
    """The TensorProto field that holds it when `raw_data` does not."""


def _row(code: int, name: str, numpy: Any, bits: int, typed_field: str) -> ElementType:
    return ElementType(code, name, np.dtype(numpy), bits, typed_field)


ELEMENT_TYPES: tuple[ElementType, ...] = (
    _row(1, "float", np.float32, 32, "float_data"),
    _row(2, "uint8", np.uint8, 8, "int32_data"),
    _row(3, "int8", np.int8, 8, "int32_data"),
    _row(4, "uint16", np.uint16, 16, "int32_data"),
    _row(5, "int16", np.int16, 16, "int32_data"),
    _row(6, "int32", np.int32, 32, "int32_data"),
    _row(7, "int64", np.int64, 64, "int64_data"),
    _row(8, "string", np.object_, 0, "string_data"),
    _row(9, "bool", np.bool_, 8, "int32_data"),
    _row(10, "float16", np.float16, 16, "int32_data"),
    _row(11, "double", np.float64, 64, "double_data"),
    _row(12, "uint32", np.uint32, 32, "uint64_data"),
    _row(13, "uint64", np.uint64, 64, "uint64_data"),
    _row(14, "complex64", np.complex64, 64, "float_data"),
    _row(15, "complex128", np.complex128, 128, "double_data"),
    _row(16, "bfloat16", ml_dtypes.bfloat16, 16, "int32_data"),
    _row(17, "float8e4m3fn", ml_dtypes.float8_e4m3fn, 8, "int32_data"),
    _row(18, "float8e4m3fnuz", ml_dtypes.float8_e4m3fnuz, 8, "int32_data"),
    _row(19, "float8e5m2", ml_dtypes.float8_e5m2, 8, "int32_data"),
    _row(20, "float8e5m2fnuz", ml_dtypes.float8_e5m2fnuz, 8, "int32_data"),
    _row(21, "uint4", ml_dtypes.uint4, 4, "int32_data"),
    _row(22, "int4", ml_dtypes.int4, 4, "int32_data"),
    _row(23, "float4e2m1", ml_dtypes.float4_e2m1fn, 4, "int32_data"),
    _row(24, "float8e8m0", ml_dtypes.float8_e8m0fnu, 8, "int32_data"),
    _row(25, "uint2", ml_dtypes.uint2, 2, "int32_data"),
    _row(26, "int2", ml_dtypes.int2, 2, "int32_data"),
    _row(27, "float6e2m3", ml_dtypes.float6_e2m3fn, 6, "int32_data"),
    _row(28, "float6e3m2", ml_dtypes.float6_e3m2fn, 6, "int32_data"),
)

BY_CODE: dict[int, ElementType] = {row.code: row for row in ELEMENT_TYPES}
BY_NAME: dict[str, ElementType] = {row.name: row for row in ELEMENT_TYPES}
BY_NUMPY: dict[np.dtype[Any], ElementType] = {row.numpy: row for row in ELEMENT_TYPES}
