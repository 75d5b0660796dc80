"""The standard form of a module: fused operators written as what they stand for."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.fused import FUSED_DOMAIN
from foldline.dialects.fused.expansions import is_fused, parts_of
from foldline.dialects.onnx.attributes import Names, NamesAttr, OpsetsAttr
from foldline.dialects.onnx.op import NodeOp, OnnxOp, node_name, result_names
from foldline.dialects.onnx.structure import FunctionOp, GraphOp


def standard_form(module: ModuleOp) -> ModuleOp:
    """A copy without fused operators, or the module itself where it has none."""
    if not any(map(is_fused, module.walk())):
        return module
    copy = module.clone()
    for op in list(copy.walk()):
        if isinstance(op, OnnxOp) and is_fused(op):
            _expand(op)
        elif isinstance(op, GraphOp | FunctionOp):
            kept = (pair for pair in op.opsets.data if pair[0] != FUSED_DOMAIN)
            op.properties["opsets"] = OpsetsAttr(tuple(kept))
    return copy


def _expand(op: OnnxOp) -> None:
    """Put the parts of an operator in its place; they bear its name and those of its results."""
    made, values = parts_of(op)
    block = op.parent
    assert block is not None
    for part in made:
        block.insert_op_before(part, op)
        if isinstance(part, NodeOp):
            part.attributes["onnx.names"] = NamesAttr(Names(node_name(op)))
    for old, new, name in zip(op.results, values, result_names(op), strict=True):
        owner = new.owner
        assert isinstance(owner, NodeOp)
        names = list(result_names(owner))
        names[owner.results.index(new)] = name
        owner.attributes["onnx.names"] = NamesAttr(Names(node_name(op), tuple(names)))
        new._type = old.type  # pyright: ignore[reportPrivateUsage]
        old.replace_all_uses_with(new)
    op.detach()
    op.erase()
