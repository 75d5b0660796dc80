"""Which nodes the user wants left alone: `fold.skip`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import translate

from foldline.dialects.onnx.attributes import Metadata, MetadataAttr
from foldline.dialects.onnx.op import NodeOp, node_name, result_names

METADATA_KEY = "fold.skip"
"""A node whose metadata has this key with another value than `false` is left alone."""
_KINDS = ("op", "value", "meta")


class SkipPatterns:
    """Patterns `node`, `op:TYPE`, `value:NAME` and `meta:KEY=VALUE`, each a glob."""

    def __init__(self, patterns: Sequence[str]):
        self._patterns: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
        for pattern in patterns:
            kind, colon, glob = pattern.partition(":")
            if not colon or kind not in _KINDS:
                kind, glob = "node", pattern
            compiled = re.compile(translate(glob))
            self._patterns.setdefault(kind, []).append((pattern, compiled))

    def match(self, op: NodeOp) -> str | None:
        """What says that `op` is left alone, or None."""
        metadata = _metadata(op)
        for key, value in metadata:
            if key == METADATA_KEY and value.lower() != "false":
                return f"the node's metadata says {METADATA_KEY} = {value}"
        if not self._patterns:
            return None
        named = {
            "node": (node_name(op) or "",),
            "op": (op.op_type,),
            "value": result_names(op),
            "meta": tuple(f"{key}={value}" for key, value in metadata),
        }
        for kind, patterns in self._patterns.items():
            for pattern, compiled in patterns:
                if any(name and compiled.match(name) for name in named[kind]):
                    return f"fold.skip has '{pattern}'"
        return None


def _metadata(op: NodeOp) -> Metadata:
    given = op.attributes.get("onnx.metadata")
    return given.data if isinstance(given, MetadataAttr) else ()
