"""Models as bytes that may be compared."""

from __future__ import annotations

from onnx import AttributeProto, GraphProto, ModelProto


def normalised(model: ModelProto) -> bytes:
    """The bytes after the one listed normalisation that these models need: attribute order."""
    copy = ModelProto()
    copy.CopyFrom(model)
    _sort_attributes(copy.graph)
    return copy.SerializeToString(deterministic=True)


def _sort_attributes(graph: GraphProto) -> None:
    for node in graph.node:
        ordered = [AttributeProto.FromString(a.SerializeToString()) for a in node.attribute]
        ordered.sort(key=lambda attribute: attribute.name)
        del node.attribute[:]
        node.attribute.extend(ordered)
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                _sort_attributes(body)
