"""Mutations of a message as such: any field of any part of it, whatever it means."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

INTEGERS = (0, 1, -1, 2, 3, 7, 16, 127, 255, 1 << 16, 1 << 31, -(1 << 31), (1 << 40) + 1)
EXTREMES = (*INTEGERS, (1 << 63) - 1, -(1 << 63))
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-38, 3e38, float("inf"), float("-inf"), float("nan"))
TEXTS = (
    *(
        "",
        " ",
        "x",
        "a/b\\c",
        "../up",
        'q"uote',
        "new\nline",
        "nul\0",
        "\u202e\u0301",
        "𝄞",
        "%s{0}",
    ),
    *("A" * 5000, "NOTSET", "SAME_UPPER", "constant", "linear", "ai.onnx", "com.microsoft", "CRD"),
)
INTEGRAL = {
    FieldDescriptor.TYPE_INT32: (-(1 << 31), (1 << 31) - 1),
    FieldDescriptor.TYPE_INT64: (-(1 << 63), (1 << 63) - 1),
    FieldDescriptor.TYPE_UINT64: (0, (1 << 64) - 1),
}


def messages(message: Message) -> Iterator[Message]:
    """A message and all that are in it."""
    yield message
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for part in value if field.is_repeated else (value,):
                yield from messages(part)


def mutate_field(rng: random.Random, model: Message) -> None:
    """Change one field of one part: to another value, to nothing, or its number of entries."""
    part = rng.choice(list(messages(model)))
    held = [field for field, _ in part.ListFields()]
    fields = held if held and rng.random() < 0.8 else list(part.DESCRIPTOR.fields)
    field = rng.choice(fields)
    if rng.random() < 0.1:
        part.ClearField(field.name)
    elif field.is_repeated:
        _mutate_entries(rng, part, field)
    elif field.type == FieldDescriptor.TYPE_MESSAGE:
        getattr(part, field.name).SetInParent()
    else:
        setattr(part, field.name, _value(rng, field, getattr(part, field.name)))


def _mutate_entries(rng: random.Random, part: Message, field: Any) -> None:
    entries = getattr(part, field.name)
    is_message = field.type == FieldDescriptor.TYPE_MESSAGE
    index = rng.randrange(len(entries)) if entries else 0
    kind = rng.choice(("drop", "repeat", "change", "change", "add", "cut"))
    if not entries or kind == "add":
        entries.add() if is_message else entries.append(_value(rng, field, None))
    elif kind == "drop":
        del entries[index]
    elif kind == "cut":
        del entries[index:]
    elif is_message:
        other = rng.choice(entries)
        entries.add().CopyFrom(other) if kind == "repeat" else entries[index].CopyFrom(other)
    elif kind == "repeat":
        entries.extend([entries[index]] * rng.choice((1, 2, 50)))
    else:
        entries[index] = _value(rng, field, entries[index])


def _value(rng: random.Random, field: Any, old: Any) -> Any:
    """Another value of a field that is no message."""
    if field.type in INTEGRAL:
        low, high = INTEGRAL[field.type]
        near = (old or 0) + rng.choice((-1, 1))
        return min(max(rng.choice((near, near, rng.choice(EXTREMES))), low), high)
    if field.type == FieldDescriptor.TYPE_ENUM:
        return rng.choice(field.enum_type.values).number
    if field.type in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE):
        return rng.choice(FLOATS)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return mutate_bytes(rng, old or b"")
    return rng.choice(TEXTS)


def mutate_bytes(rng: random.Random, data: bytes) -> bytes:
    """Flip, overwrite, insert, drop, repeat or cut."""
    at = rng.randrange(len(data)) if data else 0
    end = min(len(data), at + rng.choice((1, 1, 2, 4, 8, 64)))
    noise = bytes(rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256))) for _ in range(end - at))
    match rng.choice(("flip", "overwrite", "insert", "drop", "repeat", "cut", "varint")):
        case "flip" if data:
            return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
        case "insert":
            return data[:at] + (noise or b"\1") + data[at:]
        case "drop":
            return data[:at] + data[end:]
        case "repeat":
            return data[:end] + data[at:end] * rng.choice((1, 2, 20)) + data[end:]
        case "cut":
            return data[:at]
        case "varint":
            return data[:at] + b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f" + data[at + 1 :]
        case _:
            return data[:at] + noise + data[end:]
