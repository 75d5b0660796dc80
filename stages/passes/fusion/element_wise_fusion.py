"""element-wise-fusion: make one operation of element-wise operators that feed each other.

    Mul(Add(x, 1), Exp(y))   ->   fused.ElementWise { Add, Exp, Mul }

Starting from an operator that something else reads, all operators join that only it reads and that
have its shape, size by size, symbols included. What joins stays as it is, in the body of the new
operation, so bits are preserved. Left alone, with a remark: operators of another shape than their
reader (they would be computed several times), and those that others read as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from xdsl.ir import Block, Operation, Region

from foldline.dialects.fold.flags import is_kept
from foldline.dialects.fused import FUSED_DOMAIN
from foldline.dialects.fused.element_wise import ElementWiseOp
from foldline.dialects.onnx.attributes import Names, NamesAttr
from foldline.dialects.onnx.op import NodeOp, node_name, result_names
from foldline.dialects.onnx.structure import FunctionOp, GraphOp
from foldline.dialects.onnx.traits import ElementWise
from foldline.stages.context import PassContext
from foldline.stages.pass_base import GraphPass
from foldline.stages.rewrite.match import readers_of
from foldline.stages.rewrite.replacement import import_domain
from foldline.support.passes import PASSES


@dataclass(frozen=True)
class ElementWiseFusion(GraphPass):
    """Make one operation of element-wise operators."""

    name = "element-wise-fusion"
    INFO: ClassVar = PASSES["element-wise-fusion"]
    TAKES_THE_REST: ClassVar = True

    def run(self, context: PassContext) -> None:
        """Fuse in all graphs, bodies and functions."""
        for op in context.module.body.block.ops:
            if isinstance(op, GraphOp | FunctionOp):
                _fuse(op.regions[0].block, self.name, context)


@dataclass(eq=False)
class _Group:
    """Operators that become one, the last one first."""

    ops: list[NodeOp] = field(default_factory=list[NodeOp])

    @property
    def root(self) -> NodeOp:
        return self.ops[0]


def _fuse(block: Block, name: str, context: PassContext) -> None:
    """Fuse in one block, and in the bodies of what stands there."""
    groups: dict[Operation, _Group] = {}
    for op in reversed(list(block.ops)):
        if isinstance(op, ElementWiseOp):
            continue
        for region in op.regions:
            for body in region.blocks:
                _fuse(body, name, context)
        if _can_join(op):
            assert isinstance(op, NodeOp)
            group = _joined(op, groups, name, context)
            group.ops.append(op)
            groups[op] = group
    for group in dict.fromkeys(groups.values()):
        if len(group.ops) > 1:
            _make(group, name, context)


def _can_join(op: Operation) -> bool:
    return (
        isinstance(op, NodeOp)
        and op.has_trait(ElementWise)
        and len(op.results) == 1
        and not is_kept(op)
    )


def _joined(op: NodeOp, groups: dict[Operation, _Group], name: str, context: PassContext) -> _Group:
    """The group of all that read an operator, if it can be part of that; else one of its own."""
    readers = list(readers_of(op.results[0], op.parent))
    found = list(dict.fromkeys(map(groups.get, readers)))
    near = next((group for group in found if group is not None), None)
    if near is None:
        return _Group()
    if len(found) > 1:
        others = ", ".join(sorted({reader.name for reader in readers}))
        context.remark("declined", name, op, f"it is read by more than one chain: {others}")
        return _Group()
    if not context.knowledge.same_shape(op.results[0], near.root.results[0]):
        shapes = f"{op.results[0].type}, not {near.root.results[0].type}"
        context.remark("declined", name, op, f"it has another shape than its reader: {shapes}")
        return _Group()
    return near


def _make(group: _Group, name: str, context: PassContext) -> None:
    root = group.root
    anchor = root.next_op
    assert anchor is not None
    holder = ElementWiseOp.create(
        operands=[],
        result_types=[root.results[0].type],
        regions=[Region(Block())],
        attributes={"onnx.names": NamesAttr(Names(node_name(root), result_names(root)))},
    )
    operators = ", ".join(op.op_type for op in reversed(group.ops))
    context.remark("applied", name, root, f"{operators} are one")
    root.attributes.pop("onnx.names", None)
    context.rewriter.wrap(group.ops[::-1], holder, anchor)
    import_domain(holder, FUSED_DOMAIN)
