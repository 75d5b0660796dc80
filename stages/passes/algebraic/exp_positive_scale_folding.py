"""exp-positive-scale-folding: add the logarithm of a positive constant before Exp, not after it.

    Mul(Exp(Add(x, b)), c)   ->   Exp(Add(x, b + ln c))
    Mul(Exp(x), c)           ->   Exp(Add(x, ln c))

Between them may stand Identity, Reshape, Flatten, Squeeze and Unsqueeze of static shapes. Where
`b + ln c` would be larger than both, or not finite, `ln c` is added after `b` instead. Logarithms
and sums are computed in float64 and rounded once. The result differs in relaxed floating-point
overflow semantics: `exp(x)` may overflow where `exp(x + ln c)` does not, and the other way round.
Left alone: half precision, which holds sums too coarsely for their Exp; values that are outputs or
have other readers; a Mul with another one behind it, as their constants may only be harmless
together; factors that are repeated along some axes, if a view stands between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.ir import Operation, OpResult, SSAValue

from foldline.dialects.onnx.attributes import Names
from foldline.dialects.onnx.builder import Builder
from foldline.dialects.onnx.math import AddOp, ExpOp, MulOp
from foldline.dialects.onnx.tensor import Array, Tensor, splat
from foldline.stages.context import PassContext
from foldline.stages.passes.algebraic._common import (
    MAX_DEPTH,
    ConstantMakingPass,
    FreshNames,
    candidates,
    element_count,
    fits,
    float_tensor,
    growth,
    is_finite,
    new_constant,
    only_use,
    refusal_at,
    remove,
    rounded,
    stored,
    tidy,
    widened,
)
from foldline.stages.passes.algebraic._views import ORDERED_VIEWS, is_ordered_view
from foldline.stages.replacing import drop_unused, insert
from foldline.stages.symbols.knowledge import Knowledge
from foldline.support.passes import PASSES

WIDE = (np.dtype(np.float32), np.dtype(np.float64))
"""Types whose sums are exact enough for an Exp."""


@dataclass(frozen=True)
class ExpPositiveScaleFolding(ConstantMakingPass):
    """Fold a factor of Exp into what it is taken of."""

    name = "exp-positive-scale-folding"
    INFO: ClassVar = PASSES["exp-positive-scale-folding"]

    def run(self, context: PassContext) -> None:
        """Look at each Exp and the one route that leads away from it."""
        folding = _Folding(self, context, FreshNames(context.module))
        changes = context.rewriter.changes
        for op in candidates(self, context, ExpOp):
            found = _scaled(op, context.knowledge)
            reason = folding.fold(found) if isinstance(found, _Scaled) else found
            if reason is not None:
                context.remark("declined", self.name, op, reason)
        tidy(context, changes)


@dataclass(frozen=True)
class _Scaled:
    """An Exp whose elements are multiplied by positive constants."""

    exp: ExpOp
    value: SSAValue
    """What is multiplied: the Exp, or a view of it."""
    mul: MulOp
    scale: Tensor
    logarithm: Array
    """Of the scale, rounded to its type."""
    has_views: bool

    @property
    def what(self) -> str:
        """The scale, for messages."""
        return f"the factor of shape {list(self.scale.array.shape)}"


@dataclass(frozen=True)
class _Bias:
    """An Add of a constant that an Exp is taken of."""

    add: AddOp
    place: int
    tensor: Tensor


@dataclass(frozen=True)
class _Folding:
    """Rewrites what was found."""

    options: ExpPositiveScaleFolding
    context: PassContext
    names: FreshNames

    def fold(self, found: _Scaled) -> str | None:
        """Put the logarithm before the Exp; the reason why not, if not."""
        above = _above(found.exp, self.context.knowledge)
        if isinstance(above, str):
            return above
        bias = _bias(above, found, self.context.knowledge)
        if bias is not None:
            self._merge(found, bias)
        else:
            array = _placed(found, self.context.knowledge)
            if array is None:
                return f"{found.what} is not certain to meet the same elements before the Exp"
            self._add(array, found.exp.operands[0], found.exp)
        message = f"the logarithm of {found.what} is added before the Exp"
        self.context.remark("applied", self.options.name, found.exp, message)
        remove(self.context, found.mul, found.value)
        return None

    def _merge(self, found: _Scaled, bias: _Bias) -> None:
        """Let the Add before the Exp add the logarithm as well, or another one behind it."""
        add, limit = bias.add, self.options.max_bytes
        total = _sum(bias.tensor, found.logarithm)
        if total is None or growth(stored([total]), [bias.tensor, found.scale], limit):
            use = only_use(add.results[0], add)
            assert use is not None
            self._add(found.logarithm, add.results[0], use.operation)
            return
        old = tuple(add.operands)
        name = self.names.fresh("algebraic_exp_log_bias")
        constant = new_constant(self.context, add, total, name)
        operands = [constant if i == bias.place else value for i, value in enumerate(old)]
        self.context.rewriter.set_operands(add, operands)
        drop_unused(self.context.rewriter, [old[bias.place]])

    def _add(self, logarithm: Array, value: SSAValue, reader: Operation) -> None:
        """Let one reader of a value have it with the logarithm added."""
        rewriter, fresh = self.context.rewriter, self.names.fresh
        constant = new_constant(self.context, reader, logarithm, fresh("algebraic_exp_log_scale"))
        names = Names(fresh("algebraic_exp_log_add"), (fresh("algebraic_exp_adjusted"),))
        ops = Builder.at(reader).operator(AddOp, [value, constant], {}, (value.type,), names)
        (made,) = insert(rewriter, ops, reader)
        operands = [made if operand is value else operand for operand in reader.operands]
        rewriter.set_operands(reader, operands)


def _scaled(exp: ExpOp, knowledge: Knowledge) -> _Scaled | str | None:
    """The Mul that an Exp leads to; why it stays, or None if there is none."""
    value: SSAValue = exp.results[0]
    for passed in range(MAX_DEPTH):
        use = only_use(value, exp)
        if use is None:
            multiplied = any(isinstance(use.operation, MulOp) for use in value.uses)
            return "it, or a view of it, is an output or has other readers" if multiplied else None
        op = use.operation
        if isinstance(op, MulOp):
            return _checked(exp, value, op, 1 - use.index, knowledge, has_views=passed > 0)
        if not isinstance(op, ORDERED_VIEWS) or use.index:
            return None
        if not is_ordered_view(op, knowledge):
            return f"{op.op_type} behind it is of sizes that are not known"
        value = op.results[0]
    return f"more than {MAX_DEPTH} views stand between it and what follows"


def _checked(
    exp: ExpOp, value: SSAValue, mul: MulOp, place: int, knowledge: Knowledge, *, has_views: bool
) -> _Scaled | str:
    """The Mul as a factor, or why it cannot be one."""
    scale = float_tensor(mul.operands[place])
    if scale is None:
        return "what it is multiplied by is not a constant of floats"
    if (problem := refusal_at(exp, 7)) is not None:
        return problem
    array = scale.array
    if array.dtype not in WIDE:
        return f"a sum of {array.dtype} is too coarse for an Exp"
    factors = widened(scale)
    stored = factors.reshape(-1)[:1] if scale.is_splat else factors
    if not (array.size and np.isfinite(stored).all() and (stored > 0).all()):
        return "not all factors are finite and positive"
    if not fits(array.shape, knowledge.dims(value)):
        return f"a factor of shape {list(array.shape)} may make the product larger"
    if _meets_mul(mul.results[0], knowledge):
        return "another Mul stands behind the product"
    log = splat(np.log(stored[0]), array.shape, np.float64) if scale.is_splat else np.log(factors)
    return _Scaled(exp, value, mul, scale, rounded(np.asarray(log), array.dtype), has_views)


def _meets_mul(value: SSAValue, knowledge: Knowledge) -> bool:
    """Whether a value, or a view of it, may be multiplied again."""
    waiting = [(value, 0)]
    while waiting:
        here, level = waiting.pop()
        for use in here.uses:
            op = use.operation
            if isinstance(op, MulOp):
                return True
            if isinstance(op, ORDERED_VIEWS) and use.index == 0:
                if level + 1 >= MAX_DEPTH or not is_ordered_view(op, knowledge):
                    return True
                waiting.append((op.results[0], level + 1))
    return False


def _above(exp: ExpOp, knowledge: Knowledge) -> Sequence[SSAValue] | str:
    """What an Exp is taken of, and what that is a view of, and so on; or why that is not known."""
    values = [exp.operands[0]]
    while isinstance(values[-1].owner, ORDERED_VIEWS) and values[-1].owner.parent is exp.parent:
        view = values[-1].owner
        if not is_ordered_view(view, knowledge):
            return f"{view.op_type} before it is of sizes that are not known"
        if len(values) == MAX_DEPTH:
            return f"more than {MAX_DEPTH} views stand before it"
        values.append(view.operands[0])
    return values


def _bias(above: Sequence[SSAValue], found: _Scaled, knowledge: Knowledge) -> _Bias | None:
    """The Add of a constant before an Exp that can add the logarithm, too, or None."""
    value = above[-1]
    if not isinstance(value, OpResult) or not isinstance(value.op, AddOp):
        return None
    add = value.op
    tensors = [float_tensor(operand) for operand in add.operands]
    place = next((i for i, tensor in enumerate(tensors) if tensor is not None), None)
    if place is None or tensors[1 - place] is not None or add.parent is not found.exp.parent:
        return None
    if any(only_use(each, found.exp) is None for each in above):
        return None
    tensor, dims = tensors[place], knowledge.dims(value)
    assert tensor is not None
    is_plain = tensor.array.dtype == found.scale.array.dtype and is_finite(tensor.array)
    if not is_plain or not knowledge.same_shape(value, found.value):
        return None
    both_fit = fits(tensor.array.shape, dims) and fits(found.logarithm.shape, dims)
    return _Bias(add, place, tensor) if both_fit else None


def _sum(bias: Tensor, logarithm: Array) -> Array | None:
    """Both as one constant; None where it would be larger than both, or not finite."""
    shape = np.broadcast_shapes(bias.array.shape, logarithm.shape)
    count = int(np.prod(shape, dtype=object))
    if count > max(bias.array.size, logarithm.size):
        return None
    log = Tensor(logarithm, "raw")
    dtype = bias.array.dtype
    if all(t.is_splat or t.array.size == 1 for t in (bias, log)):
        both = np.float64(bias.array.flat[0]) + np.float64(logarithm.flat[0])
        total = splat(both, shape, np.float64) if count > 1 else np.full(shape, both)
    else:
        total = widened(bias) + widened(log)
    made = rounded(total, dtype)
    return made if is_finite(made) else None


def _placed(found: _Scaled, knowledge: Knowledge) -> Array | None:
    """The logarithm in a shape in which each element meets the same one before the Exp."""
    log, dims = found.logarithm, knowledge.dims(found.exp.operands[0])
    if dims is None:
        return None
    if log.size == 1:
        return log if log.ndim <= len(dims) else log.reshape(())
    if not found.has_views or knowledge.same_shape(found.exp.operands[0], found.value):
        return log if fits(log.shape, dims) else None
    if log.size != element_count(dims):
        return None
    sizes = tuple(size.value or 0 for size in dims)
    return splat(log.flat[0], sizes, log.dtype) if found.scale.is_splat else log.reshape(sizes)
