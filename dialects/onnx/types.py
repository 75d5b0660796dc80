"""Types of ONNX values, and their way to and from TypeProto.

A tensor is a builtin `tensor<?x3xf32>`; names of unknown dimensions are its encoding:
`tensor<?x3xf32, #onnx.dims<"batch", _>>`. What builtin types cannot say has a type here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeAlias, TypeGuard, cast

import numpy as np
from xdsl.dialects import builtin
from xdsl.dialects.builtin import DYNAMIC_INDEX, NoneAttr, TensorType, UnrankedTensorType
from xdsl.ir import Attribute, Data, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from foldline.support.dtypes import BY_CODE, BY_NUMPY, ElementType
from foldline.support.text import quoted, unquoted

Dim: TypeAlias = int | str | None
"""A dimension: its size; the name of an unknown size; or None, unknown and unnamed."""
Tensor: TypeAlias = TensorType[Attribute]


@irdl_attr_definition
class StringType(ParametrizedAttribute, TypeAttribute):
    """Element type of string tensors."""

    name = "onnx.string"


@irdl_attr_definition
class UnknownType(ParametrizedAttribute, TypeAttribute):
    """Type of a value about which nothing is known, not even that it is a tensor."""

    name = "onnx.unknown"


@irdl_attr_definition
class AbsentType(ParametrizedAttribute, TypeAttribute):
    """Type of an absent optional input or output: the empty name of ONNX."""

    name = "onnx.absent"


@irdl_attr_definition
class SequenceType(ParametrizedAttribute, TypeAttribute):
    """A sequence; the element is a type."""

    name = "onnx.sequence"
    element: Attribute


@irdl_attr_definition
class OptionalType(ParametrizedAttribute, TypeAttribute):
    """An optional; the element is a type."""

    name = "onnx.optional"
    element: Attribute


@irdl_attr_definition
class MapType(ParametrizedAttribute, TypeAttribute):
    """A map from an element type (an integer or string) to a type."""

    name = "onnx.map"
    key: Attribute
    value: Attribute


@irdl_attr_definition
class SparseTensorType(ParametrizedAttribute, TypeAttribute):
    """A sparse tensor; `dense` is the type of its dense form."""

    name = "onnx.sparse_tensor"
    dense: Attribute


@irdl_attr_definition
class DimsAttr(Data[tuple[Dim, ...]]):
    """Names of a tensor's unknown dimensions, one entry a dimension.

    A string is a `dim_param`; a negative integer is a `dim_value` that some exporters write for
    "unknown", kept for export; None stands where the size is known or has no name.
    """

    name = "onnx.dims"

    def print_parameter(self, printer: Printer) -> None:
        """Write `<"batch", _, -1>`."""
        with printer.in_angle_brackets():
            printer.print_list(self.data, lambda dim: printer.print_string(_dim_text(dim)))

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Dim, ...]:
        """Read what `print_parameter` wrote."""
        dims = parser.parse_comma_separated_list(parser.Delimiter.ANGLE, lambda: _dim(parser))
        return tuple(dims)


def _dim_text(dim: Dim) -> str:
    return "_" if dim is None else quoted(dim) if isinstance(dim, str) else str(dim)


def _dim(parser: AttrParser) -> Dim:
    text = parser.parse_optional_str_literal()
    if text is not None:
        return unquoted(text)
    number = parser.parse_optional_integer(allow_boolean=False)
    if number is not None:
        return number
    parser.parse_characters("_")
    return None


UNKNOWN = UnknownType()
ABSENT = AbsentType()
STRING = StringType()

_UNSIGNED = builtin.Signedness.UNSIGNED
_ELEMENTS: dict[str, Attribute] = {
    "float": builtin.f32,
    "uint8": builtin.IntegerType(8, _UNSIGNED),
    "int8": builtin.IntegerType(8),
    "uint16": builtin.IntegerType(16, _UNSIGNED),
    "int16": builtin.IntegerType(16),
    "int32": builtin.i32,
    "int64": builtin.i64,
    "string": STRING,
    "bool": builtin.i1,
    "float16": builtin.f16,
    "double": builtin.f64,
    "uint32": builtin.IntegerType(32, _UNSIGNED),
    "uint64": builtin.IntegerType(64, _UNSIGNED),
    "complex64": builtin.ComplexType(builtin.f32),
    "complex128": builtin.ComplexType(builtin.f64),
    "bfloat16": builtin.bf16,
    "float8e4m3fn": builtin.Float8E4M3FNType(),
    "float8e4m3fnuz": builtin.Float8E4M3FNUZType(),
    "float8e5m2": builtin.Float8E5M2Type(),
    "float8e5m2fnuz": builtin.Float8E5M2FNUZType(),
    "uint4": builtin.IntegerType(4, _UNSIGNED),
    "int4": builtin.IntegerType(4),
    "float4e2m1": builtin.Float4E2M1FNType(),
    "float8e8m0": builtin.Float8E8M0FNUType(),
    "uint2": builtin.IntegerType(2, _UNSIGNED),
    "int2": builtin.IntegerType(2),
    "float6e2m3": builtin.Float6E2M3FNType(),
    "float6e3m2": builtin.Float6E3M2FNType(),
}
_BY_ATTRIBUTE: dict[Attribute, ElementType] = {_ELEMENTS[row.name]: row for row in BY_CODE.values()}


def element_attribute(element: ElementType) -> Attribute:
    """The xDSL type of an ONNX element type."""
    return _ELEMENTS[element.name]


@lru_cache(maxsize=256)
def element_of(attribute: Attribute) -> ElementType | None:
    """The ONNX element type that an xDSL type stands for, or None if it is no such type."""
    return _BY_ATTRIBUTE.get(attribute)


@lru_cache(maxsize=1 << 14)
def tensor_type(element: Attribute, dims: tuple[Dim, ...] | None) -> Attribute:
    """The (interned) tensor type of an element type and dimensions; `dims=None`: rank unknown."""
    if dims is None:
        return UnrankedTensorType(element)
    shape = [d if isinstance(d, int) and d >= 0 else DYNAMIC_INDEX for d in dims]
    names = tuple(None if isinstance(d, int) and d >= 0 else d for d in dims)
    named = any(name is not None for name in names)
    return TensorType(element, shape, DimsAttr(names) if named else NoneAttr())


def tensor_type_of(array: np.ndarray[Any, Any]) -> Attribute:
    """The tensor type of an array."""
    return tensor_type(_ELEMENTS[BY_NUMPY[array.dtype].name], array.shape)


def is_tensor(attribute: Attribute) -> TypeGuard[Tensor]:
    """Whether a type is a tensor of known rank."""
    return isinstance(attribute, TensorType)


def element_type(attribute: Attribute) -> Attribute | None:
    """The element type of a tensor type, ranked or not; None for any other type."""
    if isinstance(attribute, TensorType | UnrankedTensorType):
        return cast(Tensor, attribute).element_type
    return None


@lru_cache(maxsize=1 << 14)
def dims_of(attribute: Attribute) -> tuple[Dim, ...] | None:
    """The dimensions of a tensor type; None if the rank is not known or it is no tensor."""
    if not is_tensor(attribute):
        return None
    shape = attribute.get_shape()
    if isinstance(attribute.encoding, DimsAttr):
        names = attribute.encoding.data
        return tuple(n if d == DYNAMIC_INDEX else d for d, n in zip(shape, names, strict=True))
    return tuple(None if d == DYNAMIC_INDEX else d for d in shape)


def static_shape(attribute: Attribute) -> tuple[int, ...] | None:
    """The shape of a tensor type if every dimension is known."""
    if not is_tensor(attribute):
        return None
    shape = attribute.get_shape()
    return None if DYNAMIC_INDEX in shape else shape


def rank(attribute: Attribute) -> int | None:
    """The rank of a tensor type, or None."""
    return attribute.get_num_dims() if is_tensor(attribute) else None


def with_dims(attribute: Attribute, dims: Sequence[Dim] | None) -> Attribute:
    """The tensor type with the same element type and other dimensions."""
    element = element_type(attribute)
    if element is None:
        raise ValueError(f"{attribute} is no tensor type")
    return tensor_type(element, None if dims is None else tuple(dims))
