"""What rewrites of single nodes share: new operators in, names passed on, dead producers out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from xdsl.ir import Attribute, Block, Operation, SSAValue

from foldline.dialects.onnx.attributes import Names, NamesAttr, ReferenceAttr
from foldline.dialects.onnx.builder import Ops
from foldline.dialects.onnx.constant import is_constant
from foldline.dialects.onnx.op import NodeOp, node_name, result_names
from foldline.dialects.onnx.traits import is_pure
from foldline.stages.rewriting import Rewriter

OpClass = TypeVar("OpClass", bound=NodeOp)


def names_of(op: Operation) -> Names:
    """The names of a node and its results, for what stands in its place."""
    return Names(node_name(op), result_names(op))


def label_of(op: Operation) -> Names:
    """The name of a node alone, for a new node whose result is a new value."""
    return Names(node_name(op))


def like(
    op: OpClass, operands: Sequence[SSAValue], types: Sequence[Attribute], names: Names
) -> OpClass:
    """The same operator with the same attributes, on other operands."""
    kept = {name: value for name, value in op.attributes.items() if name != "fold.known"}
    return type(op).create(
        operands=operands,
        result_types=types,
        properties=dict(op.properties),
        attributes={**kept, "onnx.names": NamesAttr(names)},
    )


def insert(rewriter: Rewriter, ops: Ops, anchor: Operation) -> Sequence[SSAValue]:
    """Insert operations before `anchor`; the results of the last one."""
    for op in ops:
        rewriter.insert_before(op, anchor)
    return ops[-1].results


def replace(rewriter: Rewriter, op: NodeOp, ops: Ops) -> str | None:
    """Put operations, of which the last has the results of `op`, in its place.

    Producers that nothing reads any more go. The last operation should bear the names of `op`.
    """
    return bypass(rewriter, op, insert(rewriter, ops, op))


def bypass(rewriter: Rewriter, op: NodeOp, values: Sequence[SSAValue | None]) -> str | None:
    """Use existing values in the place of the results of `op`, and drop what only it read.

    The reason is returned where a value cannot take the name of an output; nothing changes then.
    """
    operands = tuple(op.operands)
    reason = rewriter.replace_values(op, values)
    if reason is None:
        drop_unused(rewriter, operands)
    return reason


def drop_unused(rewriter: Rewriter, values: Iterable[SSAValue]) -> None:
    """Erase the nodes and constants behind values that nothing reads, and what only they read."""
    waiting = list(dict.fromkeys(values))
    while waiting:
        owner = waiting.pop().owner
        if isinstance(owner, Block) or owner.parent is None:
            continue
        if any(result.first_use is not None for result in owner.results):
            continue
        if is_constant(owner) or (isinstance(owner, NodeOp) and is_pure(owner)):
            waiting += owner.operands
            rewriter.erase(owner)


def is_parametric(op: Operation) -> bool:
    """Whether an attribute is a parameter of the function around it, and so without a value."""
    return any(isinstance(value, ReferenceAttr) for value in op.properties.values())


def only_reader(value: SSAValue) -> Operation | None:
    """The operation that is the only one to read a value, once or several times."""
    first = value.first_use
    if first is None or any(use.operation is not first.operation for use in value.uses):
        return None
    return first.operation
