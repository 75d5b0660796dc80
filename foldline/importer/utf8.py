"""Strings of a model that are not UTF-8, which protobuf hands over as bytes: refused by name.

A look at every string of every node would cost a tenth of an import, so nodes are imported as if
all was well. Bytes make that fail (`TextAttr` and joined texts take none), and then it is looked
up which string was to blame.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from foldline.support.errors import InvalidModel


@contextmanager
def refusing_bytes(message: Message) -> Generator[None]:
    """Raise InvalidModel where what fails in the block has met a string that is not UTF-8."""
    refuse_bytes(message)
    try:
        yield
    except (TypeError, UnicodeError):
        refuse_bytes(message, with_nodes=True)
        raise


def refuse_bytes(message: Message, *, with_nodes: bool = False) -> None:
    """Raise InvalidModel for a string that is not UTF-8; without those of nodes, which are many."""
    for name, value in _strings(message, with_nodes):
        if isinstance(value, bytes):
            raise InvalidModel(
                f"field {name} holds {value[:40]!r}, which is not UTF-8 as text of a model must "
                "be: is the file damaged?"
            )


def _strings(message: Message, with_nodes: bool) -> Iterator[tuple[str, object]]:
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_STRING:
            for text in value if field.is_repeated else (value,):
                yield field.full_name.removeprefix("onnx."), text
        elif field.type == FieldDescriptor.TYPE_MESSAGE and (with_nodes or field.name != "node"):
            for part in value if field.is_repeated else (value,):
                yield from _strings(part, with_nodes)
