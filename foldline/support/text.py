"""Text that survives any printer: arbitrary strings as printable ASCII, and back.

xDSL's string literals turn non-ASCII text into bytes and cost a Python call a character, so names
are written percent-encoded: `größe` is `gr%C3%B6%C3%9Fe`. Bytes that are not UTF-8 are held as
lone surrogates (PEP 383), so nothing is lost either way.
"""

from __future__ import annotations

from urllib.parse import quote, unquote

_PLAIN = "".join(chr(c) for c in range(0x20, 0x7F) if chr(c) not in '%"\\')


def quoted(text: str) -> str:
    """`text` as a double-quoted ASCII literal."""
    if text.isascii() and text.isprintable() and not ('"' in text or "%" in text or "\\" in text):
        return f'"{text}"'
    return f'"{quote(text, safe=_PLAIN, errors="surrogateescape")}"'


def unquoted(literal: str) -> str:
    """The text of what `quoted` wrote, without its quotation marks."""
    return unquote(literal, errors="surrogateescape") if "%" in literal else literal


def decoded(data: bytes) -> str:
    """Bytes of a model's string as text; bytes that are not UTF-8 become lone surrogates."""
    return data.decode("utf-8", errors="surrogateescape")


def encoded(text: str) -> bytes:
    """The inverse of `decoded`."""
    return text.encode("utf-8", errors="surrogateescape")
