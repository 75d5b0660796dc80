"""What passes that do not run by themselves would change in a model: nothing is written."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto

from foldline.compiler import Compiler
from foldline.importer import Source
from foldline.stages.rewrite.transform import Transform
from foldline.support.errors import FoldlineError
from foldline.support.options import resolve
from foldline.support.pass_states import toggle_key
from foldline.support.passes import PASSES

Key = tuple[str, tuple[str, ...]]
"""Where a node stands, and the names of its results."""


@dataclass(frozen=True)
class Changes:
    """What is in one model and not in another; nodes as operator and name."""

    removed: tuple[tuple[str, str], ...]
    added: tuple[tuple[str, str], ...]
    modified: tuple[tuple[str, str], ...]
    constants: tuple[int, int, int]
    """How many were removed, were added, and are others under their names."""

    def __bool__(self) -> bool:
        return bool(self.removed or self.added or self.modified or any(self.constants))


@dataclass(frozen=True)
class Finding:
    """A pass that would change something."""

    name: str
    changes: Changes
    problem: str = ""
    """Why the pass could not be tried."""


def optional_passes() -> list[str]:
    """The passes that are off unless somebody asks for them."""
    usual = resolve({})
    return [name for name in PASSES if not usual.enabled(name)]


def dry_run(
    model: Source,
    *,
    options: Mapping[str, Any] | None = None,
    session: Mapping[str, Any] | None = None,
    rules: Sequence[Transform] = (),
) -> Iterator[Finding]:
    """Compare what a compile gives with what it gives with one more pass, for each optional pass.

    Passes that the options turn on are a part of what is compared with, and those that they turn
    off are not tried. Raises what a compile raises; a pass that makes it raise gives a finding
    that says so.
    """
    given = dict(options or {})
    compiler = Compiler(dict(session or {}), tuple(rules))
    states = resolve(given, dict(session or {}))
    before = _Contents.of(compiler.compile(model, options=given).to_proto())
    for name in optional_passes():
        if states.enabled(name) or toggle_key(name) in given:
            continue
        try:
            compiled = compiler.compile(model, options={**given, toggle_key(name): True})
        except FoldlineError as error:
            yield Finding(name, Changes((), (), (), (0, 0, 0)), str(error))
            continue
        changes = before.changes_to(_Contents.of(compiled.to_proto()))
        if changes:
            yield Finding(name, changes)


@dataclass(frozen=True)
class _Contents:
    """The nodes and constants of a model, with what tells them from others."""

    nodes: dict[Key, tuple[tuple[str, str], bytes]]
    constants: dict[tuple[str, str], bytes]

    @classmethod
    def of(cls, model: ModelProto) -> _Contents:
        """Walk the graph and its bodies."""
        found = cls({}, {})
        waiting: list[tuple[str, GraphProto, dict[str, bytes]]] = [("", model.graph, {})]
        while waiting:
            scope, graph, outer = waiting.pop()
            constants = {**outer, **_constants(graph)}
            own = {name: constants[name] for name in constants if name not in outer}
            found.constants.update(((scope, name), digest) for name, digest in own.items())
            for node in graph.node:
                if node.op_type == "Constant":
                    continue
                kind = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
                first = next((name for name in node.output if name), "")
                label = (kind, node.name or first)
                found.nodes[scope, tuple(node.output)] = label, _looks(node, constants)
                for name, body in _bodies(node):
                    waiting.append((f"{scope}/{first}.{name}", body, constants))
        return found

    def changes_to(self, other: _Contents) -> Changes:
        """What is different in another model."""
        removed = [label for key, (label, _) in self.nodes.items() if key not in other.nodes]
        added = [label for key, (label, _) in other.nodes.items() if key not in self.nodes]
        both = [key for key in other.nodes if key in self.nodes]
        modified = [
            _renamed(self.nodes[key][0], other.nodes[key][0])
            for key in both
            if self.nodes[key][1] != other.nodes[key][1]
        ]
        old, new = self.constants, other.constants
        constants = (
            sum(key not in new for key in old),
            sum(key not in old for key in new),
            sum(key in old and old[key] != new[key] for key in new),
        )
        return Changes(tuple(removed), tuple(added), tuple(modified), constants)


def _renamed(old: tuple[str, str], new: tuple[str, str]) -> tuple[str, str]:
    """The label of a node that is another one: both operators, where another makes its results."""
    return new if old[0] == new[0] else (f"{old[0]} -> {new[0]}", old[1])


def _constants(graph: GraphProto) -> dict[str, bytes]:
    """A digest of each constant by name."""
    found = {tensor.name: digest(tensor) for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and not node.domain:
            found[node.output[0]] = digest(node.attribute[0].t)
    return found


def digest(tensor: TensorProto) -> bytes:
    """Of type, sizes and bits, however they are stored; the name does not count."""
    plain = TensorProto()
    plain.CopyFrom(tensor)
    for field in ("name", "doc_string", "external_data", "data_location"):
        plain.ClearField(field)
    return hashlib.blake2b(plain.SerializeToString(deterministic=True), digest_size=16).digest()


def _looks(node: NodeProto, constants: Mapping[str, bytes]) -> bytes:
    """Operator, attributes but for bodies, and inputs, of which constants count by their bits."""
    parts = [node.domain.encode(), node.op_type.encode()]
    parts += [constants.get(name) or name.encode() for name in node.input]
    parts += [
        attribute.SerializeToString(deterministic=True)
        for attribute in sorted(node.attribute, key=lambda attribute: attribute.name)
        if attribute.type not in (AttributeProto.GRAPH, AttributeProto.GRAPHS)
    ]
    return b"\0".join(parts)


def _bodies(node: NodeProto) -> Iterator[tuple[str, GraphProto]]:
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.name, attribute.g
