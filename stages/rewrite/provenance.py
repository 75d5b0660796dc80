"""What a replacement passes on of the nodes that it removes: names, doc strings, metadata."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.ir import Operation, SSAValue
from xdsl.traits import ConstantLike

from foldline.dialects.fold.flags import replaced_nodes, set_replaced
from foldline.dialects.onnx.attributes import MetadataAttr, TextAttr
from foldline.dialects.onnx.op import NodeOp
from foldline.stages.inlining import label
from foldline.stages.rewriting import MAX_PROVENANCE


class Erased:
    """A listener that remembers the nodes that go, constants left out."""

    def __init__(self) -> None:
        self.nodes: list[NodeOp] = []

    def created(self, op: Operation) -> None:
        """Nothing goes."""

    def changed(self, op: Operation) -> None:
        """Nothing goes."""

    def retyped(self, value: SSAValue) -> None:
        """Nothing goes."""

    def erasing(self, op: Operation) -> None:
        """Remember a node."""
        if isinstance(op, NodeOp) and not op.has_trait(ConstantLike):
            self.nodes.append(op)


def pass_on(removed: Sequence[NodeOp], made: Iterable[Operation]) -> None:
    """Give operations that take the place of others what is said of these, in their order.

    Texts under one key are joined line by line, each once; at most 16 names are kept.
    """
    names: dict[str, None] = {}
    for op in removed:
        names.update(dict.fromkeys((*replaced_nodes(op), label(op))))
    for op in made:
        set_replaced(op, tuple(names)[:MAX_PROVENANCE])
        sources = (op, *removed)
        if doc := _joined(_doc(source) for source in sources):
            op.attributes["onnx.doc"] = TextAttr(doc)
        pairs: dict[str, list[str]] = {}
        for key, value in (pair for source in sources for pair in _metadata(source)):
            pairs.setdefault(key, []).append(value)
        if pairs:
            merged = tuple((key, _joined(values)) for key, values in pairs.items())
            op.attributes["onnx.metadata"] = MetadataAttr(merged)


def _joined(texts: Iterable[str]) -> str:
    """Texts one after another, but for those that stand there already, line by line."""
    joined = ""
    for text in texts:
        if text and f"\n{text}\n" not in f"\n{joined}\n":
            joined = f"{joined}\n{text}" if joined else text
    return joined


def _doc(op: Operation) -> str:
    doc = op.attributes.get("onnx.doc")
    return doc.data if isinstance(doc, TextAttr) else ""


def _metadata(op: Operation) -> tuple[tuple[str, str], ...]:
    given = op.attributes.get("onnx.metadata")
    return tuple(given.data) if isinstance(given, MetadataAttr) else ()
