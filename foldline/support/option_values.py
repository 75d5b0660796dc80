"""The kinds of value that options take: how each is checked, described and put in a schema.

A checker takes what Python, YAML or the command line (always text) gave, and returns the one form
the compiler sees, or raises `BadValue` with what is wrong and what would be valid.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from foldline.support.passes import PASSES
from foldline.support.suggest import did_you_mean

Shape = tuple[int | None, ...]
"""Pinned dimensions; None leaves one as the model has it."""


class BadValue(ValueError):
    """A value is not valid; the text says why, and what would be."""


@dataclass(frozen=True)
class Kind:
    """One kind of value."""

    text: str
    """The valid values, as help shows them."""
    check: Callable[[Any], Any]
    schema: Mapping[str, Any]
    """JSON Schema of the values in YAML."""
    many: bool = False
    """A list: its flag may be repeated."""


def choice(*values: str, synonyms: Mapping[str, str] | None = None) -> Kind:
    """One of `values`, or a synonym of one."""
    names = {**{value: value for value in values}, **(synonyms or {})}

    def check(value: Any) -> str:
        if isinstance(value, str) and value in names:
            return names[value]
        raise BadValue(f"{value!r} is not valid{did_you_mean(str(value), names)}")

    return Kind("|".join(values), check, {"enum": list(names)})


def switch() -> Kind:
    """True or false, also as text in lower case."""

    def check(value: Any) -> bool:
        if not (isinstance(value, bool) or value in ("true", "false")):
            raise BadValue(f"{value!r} is not valid; valid: true, false")
        return value in (True, "true")

    return Kind("true|false", check, {"enum": [True, False]})


def number_from_one() -> Kind:
    """An integer from 1."""

    def check(value: Any) -> int:
        if isinstance(value, str) and re.fullmatch(r"[0-9]+", value):
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise BadValue(f"{value!r} is not valid; valid: a whole number from 1")
        return value

    return Kind("1…", check, {"type": "integer", "minimum": 1})


_UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def byte_count() -> Kind:
    """A number of bytes, as integer or text such as `64KiB`."""

    def check(value: Any) -> int:
        match = re.fullmatch(r"([0-9]+) ?([A-Za-z]*)", str(value))
        if isinstance(value, bool) or not match or match[2] not in _UNITS:
            raise BadValue(f"{value!r} is not valid; valid: bytes, as in 65536, 64KiB, 1MiB, 2GiB")
        return int(match[1]) * _UNITS[match[2]]

    schema = {
        "anyOf": [
            {"type": "integer", "minimum": 0},
            {"type": "string", "pattern": "^[0-9]+ ?(B|KiB|MiB|GiB)?$"},
        ]
    }
    return Kind("bytes", check, schema)


def patterns() -> Kind:
    """Texts; one text is split at commas."""
    return Kind("list", _texts, _list_of({"type": "string", "minLength": 1}), many=True)


def pass_names() -> Kind:
    """Names of passes that exist."""

    def check(value: Any) -> tuple[str, ...]:
        names = _texts(value)
        unknown = [name for name in names if name not in PASSES]
        if unknown:
            hints = (f"{name!r} is not a pass{did_you_mean(name, PASSES)}" for name in unknown)
            raise BadValue("; ".join(hints))
        return names

    return Kind("passes", check, _list_of({"enum": list(PASSES)}), many=True)


def shape() -> Kind:
    """Dimensions: a list, or text such as `1,3,224,224`; `?` or null leaves one as it is."""

    def dimension(item: Any) -> int | None:
        item = item.strip() if isinstance(item, str) else item
        if item is None or item == "?":
            return None
        if isinstance(item, str) and re.fullmatch(r"[0-9]+", item):
            return int(item)
        if isinstance(item, int) and not isinstance(item, bool) and item >= 0:
            return item
        raise BadValue(
            f"{item!r} is not a dimension; valid: a whole number from 0, "
            "or ? to leave it as the model has it"
        )

    def check(value: Any) -> Shape:
        if isinstance(value, str):
            text = value.strip().removeprefix("[").removesuffix("]")
            return tuple(map(dimension, text.split(","))) if text else ()
        if not isinstance(value, Sequence):
            raise BadValue(f"{value!r} is not a shape; valid: a list such as [1, 3, 224, 224]")
        return tuple(map(dimension, cast("Sequence[Any]", value)))

    items = {"anyOf": [{"type": "integer", "minimum": 0}, {"enum": ["?", None]}]}
    return Kind("dims", check, {"type": "array", "items": items})


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(part for part in map(str.strip, value.split(",")) if part)
    items = cast("Sequence[Any]", value) if isinstance(value, Sequence) else [value]
    texts = tuple(item for item in items if isinstance(item, str) and item)
    if len(texts) != len(items):
        raise BadValue(f"{value!r} is not valid; valid: a list of texts")
    return texts


def _list_of(item: Mapping[str, Any]) -> dict[str, Any]:
    return {"anyOf": [{"type": "array", "items": item}, {"type": "string"}]}
