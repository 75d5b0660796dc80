"""The standard form of a module: fused operators written as what they stand for."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from foldline.dialects.fused import FUSED_DOMAIN
from foldline.dialects.fused.element_wise import ElementWiseOp
from foldline.dialects.fused.expansions import is_fused, parts_of
from foldline.dialects.onnx.attributes import Names, NamesAttr, OpsetsAttr
from foldline.dialects.onnx.constant import ConstantOp
from foldline.dialects.onnx.op import NodeOp, OnnxOp, node_name, result_names
from foldline.dialects.onnx.structure import CallOp, FunctionOp, GraphOp, ReturnOp, terminator
from foldline.dialects.onnx.types import AbsentType
from foldline.stages.context import PassContext
from foldline.stages.passes.cleanup.common_subexpressions import NOTES, CommonSubexpressions
from foldline.stages.passes.cleanup.merge_equal_constants import MergeEqualConstants
from foldline.stages.passes.shapes.infer_shapes import InferShapes


def standard_form(module: ModuleOp) -> ModuleOp:
    """A copy without fused operators, or the module itself where it has none.

    What several of them stand for, constants and dequantised weights for most, is there once, and
    has types: the form is as the stages would leave it if they read it again.
    """
    if not any(map(is_fused, module.walk())):
        return module
    copy = module.clone()
    for op in list(copy.walk()):
        if isinstance(op, ElementWiseOp):
            _take_out(op)
        elif isinstance(op, OnnxOp) and is_fused(op):
            put_parts(op, *parts_of(op))
    context = PassContext(copy)
    # A model that fails when it runs, for it has no element say, can be written all the same.
    InferShapes(trusted=True, refuses=False).run(context)
    MergeEqualConstants().run(context)
    CommonSubexpressions().run(context)
    # Only now, as attributes that are left out have the values of the imported version.
    drop_domain(copy)
    return copy


def drop_domain(module: ModuleOp) -> None:
    """Import the domain of fused operators only where functions of it are called."""
    for scope in module.body.block.ops:
        if isinstance(scope, GraphOp | FunctionOp):
            calls = (op for op in scope.walk() if isinstance(op, CallOp))
            if not any(call.domain == FUSED_DOMAIN for call in calls):
                kept = (pair for pair in scope.opsets.data if pair[0] != FUSED_DOMAIN)
                scope.properties["opsets"] = OpsetsAttr(tuple(kept))


def _take_out(op: ElementWiseOp) -> None:
    """Put the operators of a body in the place of the operation that holds it."""
    block, body = op.parent, op.regions[0].block
    assert block is not None
    returned = terminator(body).operands
    owner = returned[0].owner
    assert isinstance(owner, NodeOp)
    owner.attributes["onnx.names"] = op.attributes["onnx.names"]
    op.results[0].replace_all_uses_with(returned[0])
    for inner in list(body.ops):
        if not isinstance(inner, ReturnOp):
            inner.detach()
            block.insert_op_before(inner, op)
    forget(op)


def put_parts(op: OnnxOp, made: Sequence[Operation], values: Sequence[SSAValue]) -> None:
    """Put the parts of an operator in its place; what makes its results bears its names.

    That has its doc string and metadata too, unless a part has got them.
    """
    block = op.parent
    assert block is not None
    notes = {name: op.attributes[name] for name in NOTES if name in op.attributes}
    if any(name in part.attributes for part in made for name in NOTES):
        notes = {}
    for part in made:
        block.insert_op_before(part, op)
        if isinstance(part, NodeOp):
            part.attributes["onnx.names"] = NamesAttr(Names(_part_name(op, part)))
    for old, new, name in zip(op.results, values, result_names(op), strict=True):
        owner = new.owner
        assert isinstance(owner, NodeOp)
        if isinstance(old.type, AbsentType):
            continue
        names = list(result_names(owner))
        names[owner.results.index(new)] = name
        owner.attributes["onnx.names"] = NamesAttr(Names(node_name(op), tuple(names)))
        owner.attributes.update(notes)
        new._type = old.type  # pyright: ignore[reportPrivateUsage]
        old.replace_all_uses_with(new)
    forget(op)


def forget(op: Operation) -> None:
    """Remove an operation without readers, and constants that only it read."""
    operands = dict.fromkeys(op.operands)
    op.detach()
    op.erase()
    for value in operands:
        if isinstance(value.owner, ConstantOp) and value.first_use is None:
            value.owner.detach()
            value.owner.erase()


def _part_name(op: OnnxOp, part: NodeOp) -> str | None:
    """The name of a part other than the last: the same when the file is optimised again."""
    name = node_name(op)
    return name and f"{name}/{part.op_type}"
