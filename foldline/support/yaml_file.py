"""Read a YAML file of settings: plain data only, and no key said twice."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any, cast

import yaml

from foldline.support.errors import InvalidOption


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping that a YAML file holds; an empty file is an empty mapping.

    Raises `InvalidOption` when the file cannot be read, is not YAML, holds something else than a
    mapping with text keys, or says a key twice.
    """
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), _PlainLoader)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidOption(f"{path}: cannot be read: {error}") from error
    except yaml.YAMLError as error:
        raise InvalidOption(f"{path}: is not valid YAML: {error}") from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        kind = type(document).__name__
        raise InvalidOption(f"{path}: holds a {kind}, expected a mapping of keys to values")
    mapping = cast("dict[Any, Any]", document)
    odd = [key for key in mapping if not isinstance(key, str)]
    if odd:
        raise InvalidOption(f"{path}: keys must be text, got {', '.join(map(repr, odd))}")
    return cast("dict[str, Any]", mapping)


class _PlainLoader(yaml.SafeLoader):
    """YAML's safe loader, which would let the last of two equal keys win in silence."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag.endswith(":merge"):
                continue
            if key_node.value in seen:
                raise yaml.constructor.ConstructorError(
                    "while reading a mapping",
                    node.start_mark,
                    f"key {key_node.value!r} is said twice",
                    key_node.start_mark,
                )
            seen.add(key_node.value)
        return super().construct_mapping(node, deep)
