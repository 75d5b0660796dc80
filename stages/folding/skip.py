"""Which nodes the user wants left alone: `fold.skip`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import translate

from foldline.dialects.onnx.attributes import MetadataAttr
from foldline.dialects.onnx.op import NodeOp, node_name, result_names

METADATA_KEY = "fold.skip"
"""A node whose metadata has this key with another value than `false` is left alone."""
_KINDS = ("op", "value")


class SkipPatterns:
    """Patterns `node`, `op:TYPE` and `value:NAME`, each a glob."""

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
        metadata = op.attributes.get("onnx.metadata")
        if isinstance(metadata, MetadataAttr):
            for key, value in metadata.data:
                if key == METADATA_KEY and value.lower() != "false":
                    return f"the node's metadata says {METADATA_KEY} = {value}"
        if not self._patterns:
            return None
        named = {"node": (node_name(op) or "",), "op": (op.op_type,), "value": result_names(op)}
        for kind, patterns in self._patterns.items():
            for pattern, compiled in patterns:
                if any(name and compiled.match(name) for name in named[kind]):
                    return f"fold.skip has '{pattern}'"
        return None
