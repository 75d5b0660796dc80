"""Plain Python values as attributes of the dialect: the inverse of `plain_value`."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from onnx import AttributeProto
from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, IntegerAttr, f32, i64
from xdsl.ir import Attribute

from foldline.dialects.onnx.tensor import TensorAttr
from foldline.dialects.onnx.text import TextAttr, TextsAttr


def attribute_of(kind: int, value: Any) -> Attribute:
    """The attribute of a kind (a value of `AttributeProto.type`) that holds a plain value.

    Raises TypeError for kinds that have no plain form: graphs, sparse tensors, lists of messages.
    """
    make = _MAKERS.get(kind)
    if make is None:
        raise TypeError(f"no plain value makes an attribute of kind {kind}")
    return make(value)


@lru_cache(maxsize=1 << 12)
def int_attribute(value: int) -> Attribute:
    """An INT attribute, interned."""
    return IntegerAttr(value, i64)


@lru_cache(maxsize=1 << 12)
def ints_attribute(values: tuple[int, ...]) -> Attribute:
    """An INTS attribute, interned."""
    return DenseArrayBase.from_list(i64, values)


_MAKERS: dict[int, Callable[[Any], Attribute]] = {
    AttributeProto.INT: lambda value: int_attribute(int(value)),
    AttributeProto.INTS: lambda value: ints_attribute(tuple(map(int, value))),
    AttributeProto.FLOAT: lambda value: FloatAttr(float(np.float32(value)), f32),
    AttributeProto.FLOATS: lambda value: DenseArrayBase.from_list(f32, list(map(float, value))),
    AttributeProto.STRING: TextAttr,
    AttributeProto.STRINGS: lambda value: TextsAttr(tuple(value)),
    AttributeProto.TENSOR: lambda value: TensorAttr.of(np.asarray(value)),
    AttributeProto.TYPE_PROTO: lambda value: value,
}
