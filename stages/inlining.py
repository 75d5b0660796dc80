"""What inlining shares: moving a body into the block around it, and handing its results over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from foldline.dialects.fold.known import drop_facts
from foldline.dialects.onnx.attributes import Names, NamesAttr
from foldline.dialects.onnx.builder import Builder
from foldline.dialects.onnx.constant import ConstantOp
from foldline.dialects.onnx.demands import spelling
from foldline.dialects.onnx.op import NodeOp, node_name, opset_versions, result_names
from foldline.dialects.onnx.schema import signature
from foldline.dialects.onnx.structure import FunctionOp, InitializerOp, ReturnOp, terminator
from foldline.stages.inference.joining import refine
from foldline.stages.rewriting import Rewriter, is_returned

FIRST_WITH_DEFAULTS = 4
"""Below this IR version every initializer of a graph is an input of it as well."""


def label(op: Operation) -> str:
    """What names derived from a node begin with."""
    named = node_name(op) or next((name for name in result_names(op) if name), "")
    return named or (op.op_type if isinstance(op, NodeOp) else op.name)


def derive(op: Operation, prefix: str) -> None:
    """Give a copy, and what it holds, names of its own; what is known of the original goes."""
    for inner in op.walk() if op.regions else (op,):
        drop_facts(inner)
        names = inner.attributes.get("onnx.names")
        if isinstance(names, NamesAttr):
            node = f"{prefix}/{names.data.node}" if names.data.node else names.data.node
            values = tuple(f"{prefix}/{name}" if name else "" for name in names.data.values)
            inner.attributes["onnx.names"] = NamesAttr(Names(node, values))


def pass_names(op: Operation, values: Sequence[SSAValue | None]) -> None:
    """Give values, fresh ones that the results of `op` will be, the names of these results."""
    seen: set[SSAValue] = set()
    for value, name in zip(values, result_names(op), strict=True):
        if name and isinstance(value, OpResult) and value not in seen:
            seen.add(value)
            names = list(result_names(value.op))
            names[value.index] = name
            value.op.attributes["onnx.names"] = NamesAttr(Names(node_name(value.op), tuple(names)))


def accepts(op_type: str, versions: Mapping[str, int], type_: Attribute) -> bool:
    """Whether an operator's first input (of Constant, its output) may be of a type.

    A type that is not known in full is taken on trust.
    """
    version = versions.get("")
    found = None if version is None else signature("", op_type, version)
    if found is None:
        return False
    spelled = spelling(type_)
    return spelled is None or spelled in (found.inputs or found.outputs)[0].types


def move_refusal(block: Block, target: Operation) -> str | None:
    """Why the operations of `block` cannot stand beside `target`."""
    if _takes_initializers(target):
        return None
    versions = opset_versions(target)
    for op in block.ops:
        if isinstance(op, InitializerOp) and not accepts("Constant", versions, op.output.type):
            return f"no Constant here can hold its initializer of type {op.output.type}"
    return None


class Moved(NamedTuple):
    """A body that stands somewhere else now."""

    values: tuple[SSAValue, ...]
    """What it returned."""
    nodes: int


def move_body(rewriter: Rewriter, block: Block, target: Operation) -> Moved:
    """Move all that stands in `block` before `target`; its end goes."""
    end = terminator(block)
    moved = [move_op(rewriter, op, target) for op in list(block.ops) if op is not end]
    values = tuple(end.operands)
    rewriter.erase(end)
    return Moved(values, sum(isinstance(op, NodeOp) for op in moved))


def move_op(rewriter: Rewriter, op: Operation, target: Operation) -> Operation:
    """Move an operation before `target`; what stands there now.

    An initializer becomes a Constant node where only nodes may stand.
    """
    if not isinstance(op, InitializerOp) or _takes_initializers(target):
        rewriter.move_before(op, target)
        return op
    constant = ConstantOp.create(
        result_types=[op.output.type],
        properties={"value": op.properties["value"]},
        attributes={k: v for k, v in op.attributes.items() if k != "onnx.residual"},
    )
    rewriter.insert_before(constant, target)
    rewriter.replace_uses(op.output, constant.results[0])
    rewriter.erase(op)
    return constant


def _takes_initializers(target: Operation) -> bool:
    """Whether an initializer may stand beside a node: in functions only nodes do, and below IR 4
    it would be an input of the model."""
    holder = target.parent_op()
    if isinstance(holder, NodeOp):
        return True
    module = None if holder is None else holder.parent_op()
    if isinstance(holder, FunctionOp) or not isinstance(module, ModuleOp):
        return False
    version = cast("IntegerAttr", module.attributes["onnx.ir_version"]).value.data
    return version >= FIRST_WITH_DEFAULTS


def copy_refusal(
    op: NodeOp, values: Sequence[SSAValue | None], versions: Mapping[str, int]
) -> str | None:
    """Why `hand_over` could not do once the operations behind `values` stand beside `op`."""
    for index in _to_copy(op, values):
        value = values[index]
        assert value is not None
        if not accepts("Identity", versions, value.type):
            name = result_names(op)[index]
            return f"the output '{name}' needs an Identity, which takes no {value.type} here"
    return None


def hand_over(rewriter: Rewriter, op: NodeOp, values: Sequence[SSAValue | None]) -> None:
    """Replace the results of a node (None: one without uses), and remove it.

    Outputs keep their names: where a value cannot bear the name, an Identity does.
    """
    given = list(values)
    for index in _to_copy(op, values):
        value = values[index]
        assert value is not None
        names = Names(node_name(op), (result_names(op)[index],))
        (copy,) = Builder.at(op).identity(value, names)
        rewriter.insert_before(copy, op)
        given[index] = copy.results[0]
    for result, value in zip(op.results, given, strict=True):
        if value is not None and isinstance(value.owner, NodeOp):
            refined = refine(value.type, result.type, trusted=True)
            if not refined.contradiction and refined.type != value.type:
                rewriter.set_type(value, refined.type)
    problem = rewriter.replace_values(op, given)
    assert problem is None, problem


def _to_copy(op: NodeOp, values: Sequence[SSAValue | None]) -> list[int]:
    """The results that are outputs and whose values can bear no other name than their own."""
    found: list[int] = []
    taken: set[SSAValue] = set()
    for index, (result, value) in enumerate(zip(op.results, values, strict=True)):
        if value is None or not is_returned(result):
            continue
        if value in taken or not _may_be_output(value, op):
            found.append(index)
        taken.add(value)
    return found


def _may_be_output(value: SSAValue, op: Operation) -> bool:
    """Whether a node of the block of `op`, or one that comes there, makes what is no output yet.

    The bodies of `op` will be gone, and so what they return is no output for that.
    """
    owner = value.owner
    if not isinstance(owner, NodeOp):
        return False
    if owner.parent not in (op.parent, None) and owner.parent_op() is not op:
        return False
    returns = [use.operation for use in value.uses if isinstance(use.operation, ReturnOp)]
    return all(end.parent_op() is op for end in returns)
