"""The one place that changes IR: counts nodes, passes names on, drops facts, tells the driver.

Passes hold a `Rewriter` and change nothing without it, so that the number of nodes is known
without a walk, and a driver learns which operations a change touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy.typing as npt
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.traits import ConstantLike

from foldline.dialects.fold.flags import folded_nodes, set_from_folding
from foldline.dialects.fold.known import KNOWN_ARGUMENTS
from foldline.dialects.fused.element_wise import ElementWiseOp
from foldline.dialects.onnx.attributes import Interface, InterfaceAttr, Names, NamesAttr, ValueInfo
from foldline.dialects.onnx.constant import ConstantOp, is_constant
from foldline.dialects.onnx.op import NodeOp, node_name, opset_versions, result_names
from foldline.dialects.onnx.structure import GraphOp, InitializerOp, ReturnOp, interface
from foldline.dialects.onnx.tensor import TensorAttr
from foldline.dialects.onnx.types import tensor_type_of
from foldline.stages.facts import FactKeeper, noted_on
from foldline.stages.folding.known import mark_of

Array = npt.NDArray[Any]

MAX_PROVENANCE = 16
"""So many names of folded nodes are kept on a constant: a chain of folds must stay linear."""


class Rewriter(FactKeeper):
    """Changes a module."""

    def __init__(self, module: ModuleOp):
        super().__init__()
        self.nodes = count_nodes(module)
        """Nodes of the module, constants not counted."""

    def copied(self, module: ModuleOp) -> Rewriter:
        """A rewriter of a clone of the module, with counts that go on from these."""
        copy = Rewriter(module)
        copy.changes, copy.marks = self.changes, deepcopy(self.marks)
        return copy

    def set_type(self, value: SSAValue, new: Attribute) -> None:
        """Give a value another type; facts about it and its readers go."""
        value._type = new  # pyright: ignore[reportPrivateUsage]
        self.changes += 1
        owner = value.owner
        if isinstance(owner, Operation):
            self.drop_facts(owner)
        elif (holder := owner.parent_op()) is not None:
            holder.attributes.pop(KNOWN_ARGUMENTS, None)
        self.withdraw(value)

    def take_mark(self, op: NodeOp, stage: str) -> None:
        """Replace a marked node by its potential constants, which are real ones from now on."""
        mark = mark_of(op)
        assert mark is not None
        self.count_taken(op, mark, stage)
        self.replace_by_constants(op, [None if t is None else t.array for t in mark.tensors])

    def set_operands(self, op: Operation, operands: Sequence[SSAValue]) -> None:
        """Give an operation other operands, all at once."""
        op.operands = operands
        self._touch(op)

    def insert_before(self, op: Operation, anchor: Operation) -> None:
        """Insert an operation."""
        assert anchor.parent is not None
        anchor.parent.insert_op_before(op, anchor)
        self.nodes += count_nodes(op)
        self.changes += 1
        self.listener.created(op)

    def move_before(self, op: Operation, anchor: Operation) -> None:
        """Move an operation, with all it holds and all that is known of it, out of a body."""
        assert anchor.parent is not None
        op.detach()
        anchor.parent.insert_op_before(op, anchor)
        self.changes += 1
        self.listener.created(op)

    def wrap(self, ops: Sequence[Operation], holder: Operation, anchor: Operation) -> None:
        """Move operations into the body of `holder`, which is put before `anchor`.

        The last one has the only result that is read outside; its readers read that of `holder`.
        """
        assert anchor.parent is not None
        result = ops[-1].results[0]
        anchor.parent.insert_op_before(holder, anchor)
        self.nodes += 1 - sum(map(count_nodes, ops))
        self.listener.created(holder)
        body = holder.regions[0].block
        for op in ops:
            op.detach()
            body.add_op(op)
        self._replace_uses(result, holder.results[0], hold=True)
        body.add_op(returning([result]))
        self.changes += 1

    def erase(self, op: Operation) -> None:
        """Remove an operation that has no uses left, with all it holds."""
        self.nodes -= count_nodes(op)
        self.changes += 1
        self.count_erased(op)
        self.listener.erasing(op)
        op.detach()
        op.erase()

    def replace_uses(self, old: SSAValue, new: SSAValue) -> None:
        """Use `new` wherever `old` is used; names stay where they are."""
        self._replace_uses(old, new, hold=False)

    def _replace_uses(self, old: SSAValue, new: SSAValue, *, hold: bool) -> None:
        """`hold`: what was concluded from the old value is concluded from the new one as well."""
        users = dict.fromkeys(use.operation for use in old.uses)
        old.replace_all_uses_with(new)
        for user in users:
            self._touch(user, hold=hold)

    def replace_values(self, op: Operation, values: Sequence[SSAValue | None]) -> str | None:
        """Replace results by existing values (None: a result without uses) and remove `op`.

        A value that takes the place of an output takes its name. Where it cannot, nothing changes
        and the reason is returned.
        """
        pairs = list(zip(op.results, values, strict=True))
        renamings: list[tuple[SSAValue, str]] = []
        for (result, value), name in zip(pairs, result_names(op), strict=True):
            if value is not None and is_returned(result):
                problem = _cannot_return(value, op)
                if problem or any(value is taken for taken, _ in renamings):
                    return f"it names the output '{name}', and {problem or 'two outputs are one'}"
                renamings.append((value, name))
        for value, name in renamings:
            _rename(value, name)
        for result, value in pairs:
            if value is not None:
                self.replace_uses(result, value)
        self.erase(op)
        return None

    def replace_by_constants(self, op: NodeOp, arrays: Sequence[Array | None]) -> None:
        """Replace a node by one constant for each result that is used; forget unused inputs.

        The constants bear the names of the results and the names of the folded nodes as
        provenance. Inputs that only `op` used go when they are constants themselves. Facts of
        readers hold, as the constants are what the node would have given.
        """
        sources = dict.fromkeys(v.owner for v in op.operands if not isinstance(v.owner, Block))
        provenance = _provenance(op, sources)
        label: str | None = node_name(op)
        given = list(zip(op.results, arrays, result_names(op), strict=True))
        for result, array, name in given:
            if result.first_use is None:
                continue
            assert array is not None
            constant = self.constant_before(op, array, Names(label, (name,)))
            set_from_folding(constant, provenance)
            label = None
            self._replace_uses(result, constant.results[0], hold=True)
        self.erase(op)
        for source in sources:
            if is_constant(source) and source.results[0].first_use is None:
                self.erase(source)

    def constant_before(self, anchor: Operation, array: Array, names: Names) -> Operation:
        """Insert a new constant.

        It is a Constant node, but for graphs that do not import the operator set it belongs to.
        """
        block = anchor.parent
        assert block is not None
        is_node = "" in opset_versions(anchor)
        constant = (ConstantOp if is_node else InitializerOp).create(
            result_types=[tensor_type_of(array)],
            properties={"value": TensorAttr.of(array)},
            attributes={"onnx.names": NamesAttr(names)},
        )
        self.insert_before(constant, anchor if is_node else block.first_op or anchor)
        return constant

    def _touch(self, op: Operation, *, hold: bool = False) -> None:
        if not hold:
            self.drop_facts(noted_on(op))
        self.changes += 1
        self.listener.changed(op)


def count_nodes(root: Operation) -> int:
    """Nodes in and below an operation; constants do not count, a chain that is one counts once."""
    if not root.regions or isinstance(root, ElementWiseOp):
        return int(_counts(root))
    inner = (op for region in root.regions for block in region.blocks for op in block.ops)
    return int(_counts(root)) + sum(map(count_nodes, inner))


def _counts(op: Operation) -> bool:
    return isinstance(op, NodeOp) and not op.has_trait(ConstantLike)


def returning(values: Sequence[SSAValue]) -> ReturnOp:
    """The end of a body that declares nothing beside its nodes."""
    names = (ValueInfo(f"result_{i}") for i in range(len(values)))
    interface = InterfaceAttr(Interface(outputs=tuple(names)))
    return ReturnOp.create(operands=values, properties={"interface": interface})


def is_returned(value: SSAValue) -> bool:
    """Whether a value is an output of its graph, body or function."""
    return any(isinstance(use.operation, ReturnOp) for use in value.uses)


def names_graph_output(op: Operation) -> str | None:
    """The name of the first result that is an output of the model, or None."""
    block = op.parent
    if block is None or not isinstance(block.parent_op(), GraphOp):
        return None
    for result in op.results:
        for use in result.uses:
            if isinstance(use.operation, ReturnOp):
                return interface(block).outputs[use.index].name
    return None


def _cannot_return(value: SSAValue, op: Operation) -> str | None:
    """Why `value` cannot be an output of the block of `op` in the place of a result of `op`."""
    owner = value.owner
    if isinstance(owner, Block):
        return "its input is an input of the same graph" if owner is op.parent else "it is outer"
    if owner.parent is not op.parent:
        return "its input is made outside of the body"
    if not isinstance(owner, NodeOp):
        return "its input is an initializer"
    if is_returned(value):
        return "its input is an output already"
    return None


def _rename(value: SSAValue, name: str) -> None:
    assert isinstance(value, OpResult)
    op, index = value.op, value.index
    names = list(result_names(op))
    if names[index] == name:
        return
    names[index] = name
    op.attributes["onnx.names"] = NamesAttr(Names(node_name(op), tuple(names)))


def _provenance(op: NodeOp, sources: dict[Operation, None]) -> tuple[str, ...]:
    own = node_name(op) or next((name for name in result_names(op) if name), op.op_type)
    names: dict[str, None] = {own: None}
    for source in sources:
        names.update(dict.fromkeys(folded_nodes(source) or ()))
    return tuple(names)[:MAX_PROVENANCE]
