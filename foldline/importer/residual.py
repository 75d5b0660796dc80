"""What a protobuf message holds beyond the fields the IR models."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar, cast

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

AnyMessage = TypeVar("AnyMessage", bound=Message)


def leftover(message: AnyMessage, modelled: frozenset[str]) -> AnyMessage | None:
    """A message of the same kind with the fields not in `modelled`, unknown ones included.

    None where nothing is left, which is the common case and costs two look-ups.
    """
    rest: AnyMessage | None = None
    for field, value in message.ListFields():
        if field.name not in modelled:
            rest = type(message)() if rest is None else rest
            _copy(rest, field.name, value)
    unknown = UnknownFieldSet(message)
    if len(unknown):
        rest = type(message)() if rest is None else rest
        rest.MergeFromString(_encoded(cast("Iterable[Any]", unknown)))
    return rest


def _copy(target: Message, name: str, value: Any) -> None:
    if isinstance(value, Message):
        getattr(target, name).CopyFrom(value)
    elif isinstance(value, str | bytes | int | float):
        setattr(target, name, value)
    else:
        getattr(target, name).extend(value)


def _encoded(fields: Iterable[Any]) -> bytes:
    """Unknown fields in wire format (protobuf encoding: varint, 64-bit, bytes, group, 32-bit)."""
    out = bytearray()
    for field in fields:
        wire = field.wire_type
        out += varint(field.field_number << 3 | wire)
        if wire == 0:
            out += varint(field.data)
        elif wire == 1:
            out += field.data.to_bytes(8, "little")
        elif wire == 2:
            out += varint(len(field.data)) + field.data
        elif wire == 3:
            out += _encoded(field.data) + varint(field.field_number << 3 | 4)
        else:
            out += field.data.to_bytes(4, "little")
    return bytes(out)


def varint(number: int) -> bytes:
    """A number >= 0 in wire format."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
