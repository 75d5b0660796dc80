"""The standard form of a module: fused operators written as what they stand for."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.fused import FUSED_DOMAIN
from foldline.dialects.fused.element_wise import ElementWiseOp
from foldline.dialects.fused.expansions import is_fused, parts_of
from foldline.dialects.onnx.attributes import Names, NamesAttr, OpsetsAttr
from foldline.dialects.onnx.constant import ConstantOp
from foldline.dialects.onnx.op import NodeOp, OnnxOp, node_name, result_names
from foldline.dialects.onnx.structure import FunctionOp, GraphOp, ReturnOp, terminator
from foldline.stages.context import PassContext
from foldline.stages.passes.cleanup.common_subexpressions import CommonSubexpressions
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
            _expand(op)
    context = PassContext(copy)
    # A model that fails when it runs, for it has no element say, can be written all the same.
    InferShapes(trusted=True, refuses=False).run(context)
    MergeEqualConstants().run(context)
    CommonSubexpressions().run(context)
    # Only now, as attributes that are left out have the values of the imported version.
    for op in copy.body.block.ops:
        if isinstance(op, GraphOp | FunctionOp):
            kept = (pair for pair in op.opsets.data if pair[0] != FUSED_DOMAIN)
            op.properties["opsets"] = OpsetsAttr(tuple(kept))
    return copy


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
    operands = dict.fromkeys(op.operands)
    op.detach()
    op.erase()
    for value in operands:
        if isinstance(value.owner, ConstantOp) and value.first_use is None:
            value.owner.detach()
            value.owner.erase()


def _expand(op: OnnxOp) -> None:
    """Put the parts of an operator in its place; the last bears its names."""
    made, values = parts_of(op)
    block = op.parent
    assert block is not None
    for part in made:
        block.insert_op_before(part, op)
        if isinstance(part, NodeOp):
            part.attributes["onnx.names"] = NamesAttr(Names(_part_name(op, part)))
    for old, new, name in zip(op.results, values, result_names(op), strict=True):
        owner = new.owner
        assert isinstance(owner, NodeOp)
        names = list(result_names(owner))
        names[owner.results.index(new)] = name
        owner.attributes["onnx.names"] = NamesAttr(Names(node_name(op), tuple(names)))
        new._type = old.type  # pyright: ignore[reportPrivateUsage]
        old.replace_all_uses_with(new)
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
