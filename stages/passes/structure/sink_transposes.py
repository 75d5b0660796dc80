"""sink-transposes: move transposes down, through operators that allow it, to where they cancel.

    Relu(Transpose<p>(x))                      ->   Transpose<p>(Relu(x))
    Add(Transpose<p>(x), Transpose<p>(y))      ->   Transpose<p>(Add(x, y))
    Mul(Transpose<p>(x), c)                    ->   Transpose<p>(Mul(x, c'))   c permuted back
    Concat<a>, Pad, integer Reduce             ->   the same, with axes remapped

Requires that at least one transpose above goes, as nothing else reads it, so that nodes do not get
more; that all inputs are transposed alike, constant or of one element; and one block, since a body
may run more often than what is around it. It ends, because transposes move down only.

Each element is computed from the same elements, so bits are preserved. That is why reductions and
Softmax of floats stay: what a sum of floats is hangs on the order of the elements in memory, and
the maximum of a +0 and a -0 as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, SSAValue

from foldline.dialects.onnx.attributes import Names, NamesAttr
from foldline.dialects.onnx.builder import Builder, Ops
from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.op import NodeOp, OnnxOp, node_name, result_names
from foldline.dialects.onnx.reduction import (
    ReduceMaxOp,
    ReduceMinOp,
    ReduceOp,
    ReduceProdOp,
    ReduceSumOp,
)
from foldline.dialects.onnx.resizing import PadOp
from foldline.dialects.onnx.shape import ConcatOp, TransposeOp
from foldline.dialects.onnx.traits import ElementWise
from foldline.dialects.onnx.types import (
    UNKNOWN,
    AbsentType,
    dims_of,
    element_of,
    element_type,
    rank,
    tensor_type,
)
from foldline.stages.context import PassContext
from foldline.stages.driver.visitor import NodeVisitor
from foldline.stages.pass_base import NodePass
from foldline.stages.passes.cleanup.cancel_transposes import order_of
from foldline.stages.replacing import (
    insert,
    is_parametric,
    label_of,
    like,
    names_of,
    only_reader,
    replace,
)
from foldline.support.passes import PASSES

SHARED_BYTES = 4096
"""A constant of more bytes that others read too is not copied to be permuted."""

Order: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class _Moved:
    """What stands above the transpose afterwards."""

    ops: Ops
    """The operator last."""
    order: Order
    """How its result is transposed to be what it was."""


@dataclass(frozen=True)
class SinkTransposes(NodePass):
    """Move transposes down."""

    name = "sink-transposes"
    INFO: ClassVar = PASSES["sink-transposes"]

    def visitor(self, context: PassContext) -> NodeVisitor:
        """The pass for one traversal."""
        return _Visitor(self.name, context)


class _Visitor(NodeVisitor):
    def __init__(self, name: str, context: PassContext):
        super().__init__(name, context)
        self._waiting: dict[NodeOp, None] = {}
        """Nodes below transposes that have other readers, which may go."""

    def visit(self, op: NodeOp) -> None:
        """Move the transposes that an operator reads below it."""
        rule = _rule(op)
        above = _transposes(op)
        if rule is None or not above or not isinstance(op, OnnxOp):
            return
        moved = self._moved(op, rule, above)
        if isinstance(moved, str):
            self.declined(op, moved)
        else:
            self._sink(op, moved, above[0])

    def finish(self) -> None:
        """Look again at nodes below transposes that have lost their other readers."""
        waiting, self._waiting = self._waiting, {}
        for op in waiting:
            if op.parent is not None and any(_goes(t, op) for t in _transposes(op)):
                self.requests.repass(op)

    def _moved(self, op: OnnxOp, rule: Rule, above: Sequence[TransposeOp]) -> _Moved | str:
        """What an operator becomes, or why it stays."""
        order, *others = {order_of(transpose) for transpose in above}
        if others or order is None:
            return "its inputs are transposed in different ways, or in an unknown one"
        if not any(_goes(transpose, op) for transpose in above):
            self._waiting[op] = None
            return "the transposes before it have other readers"
        if len(op.results) != 1 or rank(op.results[0].type) is None:
            return "the rank of its result is not known"
        if is_parametric(op):
            return "an attribute is a parameter of the function"
        return rule(self, op, order)

    def _sink(self, op: OnnxOp, moved: _Moved, above: TransposeOp) -> None:
        """Put an operator, and below it a transpose, in the place of `op`."""
        self.applied(op, f"transposes {list(moved.order)} move below it")
        if moved.order == tuple(range(len(moved.order))):
            moved.ops[-1].attributes["onnx.names"] = NamesAttr(names_of(op))
            replace(self.rewriter, op, moved.ops)
            return
        (result,) = insert(self.rewriter, moved.ops, op)
        names = Names(node_name(above), result_names(op))
        below = Builder.at(op).transpose(result, moved.order, op.results[0].type, names)
        replace(self.rewriter, op, below)

    def element_wise(self, op: OnnxOp, order: Order) -> _Moved | str:
        """Compute on what was transposed, and on the other inputs permuted back."""
        if "axis" in op.properties or "broadcast" in op.properties:
            return "its version broadcasts along an axis"
        inputs = self._inputs(op, order, broadcasts=True)
        return inputs if isinstance(inputs, str) else _Moved([_like(op, inputs, order)], order)

    def concat(self, op: OnnxOp, order: Order) -> _Moved | str:
        """Join along the axis that was moved."""
        inputs = self._inputs(op, order, broadcasts=False)
        if isinstance(inputs, str):
            return inputs
        made = _like(op, inputs, order)
        made.properties["axis"] = IntegerAttr(order[op.int_of("axis") or 0], 64)
        return _Moved([made], order)

    def pad(self, op: OnnxOp, order: Order) -> _Moved | str:
        """Pad the axes that were moved."""
        assert isinstance(op, PadOp)
        pads = op.pads_known()
        if pads is None:
            return "its pads are not constant"
        borders = np.zeros((2, len(order)), np.int64)
        for axis, before, after in zip(pads.axes, pads.before, pads.after, strict=True):
            borders[:, order[axis]] = before, after
        parameters = {
            "pads": borders.reshape(-1).tolist(),
            "constant_value": op.constant_value if op.since >= 11 else op.value_of("value"),
            "mode": op.value_of("mode"),
        }
        return self._rebuilt(op, parameters, order)

    def reduce(self, op: OnnxOp, order: Order) -> _Moved | str:
        """Reduce the axes that were moved; where they do not stay, the others close up."""
        assert isinstance(op, ReduceOp)
        element = element_type(op.data.type)
        row = None if element is None else element_of(element)
        if row is None or row.numpy.kind not in "iub":
            return "in floats, its result hangs on the order of the elements"
        given = op.axes_known()
        if given is None:
            return "its axes are not constant"
        if not given.value and op.noop_with_empty_axes:
            return "it reduces nothing"
        axes = sorted(order[axis] for axis in given.value or range(len(order)))
        kept = [axis for axis in order if axis not in axes]
        closed = tuple(sorted(kept).index(axis) for axis in kept)
        parameters = {"axes": axes, "keepdims": int(op.keepdims)}
        return self._rebuilt(op, parameters, order if op.keepdims else closed)

    def _rebuilt(self, op: OnnxOp, parameters: Mapping[str, Any], order: Order) -> _Moved:
        """The operator on what was transposed, with other parameters."""
        source, types = _untransposed(op.operands[0]), (_type_above(op, order),)
        ops = Builder.at(op).operator(type(op), [source], parameters, types, label_of(op))
        return _Moved(ops, order)

    def _inputs(self, op: OnnxOp, order: Order, broadcasts: bool) -> list[SSAValue] | str:
        """The inputs with their axes as they are above the transposes, or why one has none."""
        for index, value in enumerate(op.operands):
            problem = None if _is_transposed(value, op) else self._problem(value, op, order)
            if not problem and not broadcasts and rank(value.type) != len(order):
                problem = f"is not certain to have {len(order)} axes"
            if problem:
                return f"input {index} {problem}"
        return [self._input(value, op, order) for value in op.operands]

    def _problem(self, value: SSAValue, op: OnnxOp, order: Order) -> str | None:
        """Why an input that is not transposed does not become one that is; None if it does."""
        if isinstance(value.type, AbsentType):
            return None
        known = self.context.knowledge.dims(value)
        if known is None or len(known) > len(order):
            return f"is not certain to have {len(order)} axes at most"
        if all(size.value == 1 for size in known):
            return None
        tensor = constant_tensor(value)
        if tensor is None:
            return "is neither transposed nor constant"
        if tensor.data.stored_bytes > SHARED_BYTES and only_reader(value) is not op:
            return f"is a constant of {tensor.data.stored_bytes} bytes that others read too"
        return None

    def _input(self, value: SSAValue, op: OnnxOp, order: Order) -> SSAValue:
        """An input with its axes as they are above the transposes."""
        if _is_transposed(value, op):
            return _untransposed(value)
        tensor = constant_tensor(value)
        if tensor is None or tensor.array.size == 1:
            return value
        whole = tensor.array[(None,) * (len(order) - tensor.array.ndim)]
        moved = whole.transpose(_inverse(order))
        if not tensor.data.is_splat:
            moved = np.ascontiguousarray(moved)
        return self.rewriter.constant_before(op, moved, Names(None)).results[0]


Rule: TypeAlias = Callable[[_Visitor, OnnxOp, Order], "_Moved | str"]

RULES: dict[type[NodeOp], Rule] = {
    ConcatOp: _Visitor.concat,
    PadOp: _Visitor.pad,
    ReduceSumOp: _Visitor.reduce,
    ReduceProdOp: _Visitor.reduce,
    ReduceMaxOp: _Visitor.reduce,
    ReduceMinOp: _Visitor.reduce,
}
"""How transposes move below operators that are not element-wise."""


def _rule(op: NodeOp) -> Rule | None:
    return _Visitor.element_wise if op.has_trait(ElementWise) else RULES.get(type(op))


def _is_transposed(value: SSAValue, op: NodeOp) -> bool:
    """Whether a value is a transpose of the same block: a body may run more often."""
    return isinstance(value.owner, TransposeOp) and value.owner.parent is op.parent


def _transposes(op: NodeOp) -> list[TransposeOp]:
    return [
        value.owner
        for value in op.operands
        if isinstance(value.owner, TransposeOp) and value.owner.parent is op.parent
    ]


def _goes(transpose: TransposeOp, op: NodeOp) -> bool:
    return only_reader(transpose.results[0]) is op


def _untransposed(value: SSAValue) -> SSAValue:
    assert isinstance(value.owner, TransposeOp)
    return value.owner.data


def _inverse(order: Order) -> Order:
    return tuple(order.index(axis) for axis in range(len(order)))


def _like(op: OnnxOp, inputs: Sequence[SSAValue], order: Order) -> OnnxOp:
    return like(op, inputs, [_type_above(op, order)], label_of(op))


def _type_above(op: OnnxOp, order: Order) -> Attribute:
    """The type of what has the type of the result of `op` once it is transposed."""
    type_ = op.results[0].type
    dims, element = dims_of(type_), element_type(type_)
    if dims is None or element is None or len(dims) != len(order):
        return UNKNOWN
    return tensor_type(element, tuple(dims[axis] for axis in _inverse(order)))
