"""Quantization annotations in the exported model, and the constants that only they name."""

from __future__ import annotations

from onnx import GraphProto, TensorAnnotation
from xdsl.ir import Block, Operation

from foldline.dialects.onnx.structure import AnnotationOp, interface
from foldline.exporter.names import Names


class Annotations:
    """The annotations of one graph. Those of tensors that are gone are left out, unless `keep`."""

    def __init__(self, block: Block, names: Names, keep: bool):
        self._names = names
        ops = [op for op in block.ops if isinstance(op, AnnotationOp)]
        there = _names_in(block, names) if ops else set[str]()
        self._written = [op for op in ops if keep or _message(op).tensor_name in there]
        self._left_out = frozenset(ops) - frozenset(self._written)

    def alone_name(self, op: Operation) -> bool:
        """Whether nothing but annotations that are left out reads a constant."""
        users = {use.operation for use in op.results[0].uses}
        return bool(users) and users <= self._left_out

    def fill(self, proto: GraphProto) -> None:
        """Write them, under the names that their tensors have now."""
        for op in self._written:
            annotation = proto.quantization_annotation.add()
            annotation.MergeFrom(_message(op))
            entries = annotation.quant_parameter_tensor_names
            for entry, value in zip(entries, op.operands, strict=True):
                entry.value = self._names[value]


def _message(op: AnnotationOp) -> TensorAnnotation:
    return TensorAnnotation.FromString(op.message.data)


def _names_in(block: Block, names: Names) -> set[str]:
    found = {names[argument] for argument in block.args}
    found.update(info.name for info in interface(block).outputs)
    found.update(names[result] for op in block.ops for result in op.results)
    return found
