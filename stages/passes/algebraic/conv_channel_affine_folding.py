"""conv-channel-affine-folding: fold constant Mul and Add on channels into the Conv before them.

    Add(Mul(Conv(x, W, b), s), o)                       ->   Conv(x, W s, b s + o)
    %p, %q = Split(Conv(x, W), axis 1); %r = Mul(%p, s) ->   %r, %q = Split(Conv(x, W s'), axis 1)

Requires constant weights and constants that differ along the channels only. Between the Conv and
its Mul and Add may stand Reshape, Squeeze and Unsqueeze that keep samples and channels apart,
Splits of the channels, and Slices side by side that take other channels each; whatever else reads a
branch ends it, and its channels stay as they are. Of a chain the longest part that folds does.
Computed in float64 and rounded once. Last bits move, and what overflowed between may not.
Left alone: values that are outputs or have other readers, parameters that would not be finite,
routes deeper than 64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from xdsl.ir import SSAValue

from foldline.dialects.onnx.indexing import SliceOp
from foldline.dialects.onnx.math import AddOp, MulOp
from foldline.dialects.onnx.nn import ConvOp
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.shape import SplitOp
from foldline.dialects.onnx.tensor import Array, Tensor, splat
from foldline.stages.context import PassContext
from foldline.stages.passes.algebraic._common import (
    MAX_DEPTH,
    ConstantMakingPass,
    FreshNames,
    candidates,
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
from foldline.stages.passes.algebraic._views import (
    CHANNEL_VIEWS,
    CHANNELS,
    Part,
    channel_slice,
    is_channel_view,
    split_parts,
)
from foldline.stages.replacing import drop_unused
from foldline.stages.symbols.facts import Dims
from foldline.support.passes import PASSES


@dataclass(frozen=True)
class ConvChannelAffineFolding(ConstantMakingPass):
    """Fold Mul and Add into Conv."""

    name = "conv-channel-affine-folding"
    INFO: ClassVar = PASSES["conv-channel-affine-folding"]

    def run(self, context: PassContext) -> None:
        """Look at each Conv and what it leads to; each value belongs to one Conv at most."""
        names, changes = FreshNames(context.module), context.rewriter.changes
        for op in candidates(self, context, ConvOp):
            route = _Route(op, context)
            problem = route.find() or (
                _fold(self, context, route, names) if route.branches else None
            )
            for reason in dict.fromkeys([problem] if problem else route.problems):
                context.remark("declined", self.name, op, reason)
        tidy(context, changes)


@dataclass(frozen=True)
class _Branch:
    """A chain of Mul and Add on some of the channels."""

    part: Part
    """The value before the chain, and its channels."""
    chain: Sequence[NodeOp]
    constants: Sequence[Tensor]
    scale: Array
    offset: Array


class _Route:
    """What a Conv leads to."""

    def __init__(self, conv: ConvOp, context: PassContext):
        self.conv = conv
        self.branches: list[_Branch] = []
        self.problems: list[str] = []
        """Why branches end where something could have been folded."""
        self._knowledge = context.knowledge
        self._waiting: list[tuple[Part, int]] = []

    def find(self) -> str | None:
        """Find the branches; why there are none whatever stands behind, if so."""
        conv, weights = self.conv, float_tensor(self.conv.W)
        if conv.results[0].first_use is None:
            return None
        dims = self._knowledge.dims(conv.results[0])
        channels = None if dims is None or len(dims) <= CHANNELS else dims[CHANNELS].value
        if weights is None or channels is None or weights.array.shape[:1] != (channels,):
            self._note_if_affine("its weights are not constant, or its channels not known")
            return None
        if (problem := refusal_at(conv, 7)) is not None:
            self._note_if_affine(problem)
            return None
        self._narrow = np.promote_types(np.float32, _working(weights.array.dtype))
        self._waiting.append((Part(conv.results[0], 0, channels), 0))
        while self._waiting:
            part, depth = self._waiting.pop()
            if depth > MAX_DEPTH or self._step(part, depth) > MAX_DEPTH:
                return f"what it leads to is deeper than {MAX_DEPTH}"
        return None

    def _step(self, part: Part, depth: int) -> int:
        """Follow one value to what reads it; how deep that is."""
        dims = self._knowledge.dims(part.value)
        channels = part.stop - part.start
        if dims is None or len(dims) <= CHANNELS or dims[CHANNELS].value != channels:
            return depth
        use = only_use(part.value, self.conv)
        op = None if use is None or use.index != 0 else use.operation
        if use is not None and isinstance(use.operation, MulOp | AddOp):
            return self._chain(part, depth)
        if isinstance(op, CHANNEL_VIEWS):
            if is_channel_view(op, self._knowledge, channels):
                self._waiting.append((Part(op.results[0], part.start, part.stop), depth + 1))
            else:
                self.problems.append(f"{op.op_type} is not certain to keep the channels")
        elif isinstance(op, SplitOp):
            found = split_parts(op, dims)
            if isinstance(found, str) or found[0] != CHANNELS:
                self.problems.append(found if isinstance(found, str) else "Split of another axis")
            else:
                self._go_on(part, found[1], depth)
        else:
            self._slices(part, dims, depth)
        return depth

    def _slices(self, part: Part, dims: Dims, depth: int) -> None:
        """Go on behind Slices, if nothing else reads a value."""
        uses = tuple(part.value.uses)
        slices = [use.operation for use in uses if isinstance(use.operation, SliceOp)]
        beside = [op for op in slices if op.parent is self.conv.parent]
        if not beside or len(beside) < len(uses) or any(use.index for use in uses):
            if len(uses) > 1:
                self._note_if_affine("a value has several readers, or is an output", part.value)
            return
        assert dims is not None
        found = [channel_slice(op, dims, part.stop - part.start) for op in beside]
        problem = next((each for each in found if isinstance(each, str)), None)
        parts = sorted((p for p in found if isinstance(p, Part)), key=lambda p: p.start)
        if any(a.stop > b.start for a, b in pairwise(parts)):
            problem = problem or "Slices overlap"
        if problem is None:
            self._go_on(part, parts, depth)
        else:
            self.problems.append(problem)

    def _go_on(self, part: Part, parts: Sequence[Part], depth: int) -> None:
        for each in reversed(parts):
            inner = Part(each.value, part.start + each.start, part.start + each.stop)
            self._waiting.append((inner, depth + 1))

    def _chain(self, part: Part, depth: int) -> int:
        """Note what a chain of Mul and Add does; how deep its last folded one is."""
        value, channels = part.value, part.stop - part.start
        scale, offset = np.ones(channels), np.zeros(channels)
        chain: list[NodeOp] = []
        constants: list[Tensor] = []
        while (use := only_use(value, self.conv)) is not None:
            op = use.operation
            if not isinstance(op, MulOp | AddOp):
                break
            constant = float_tensor(op.operands[1 - use.index])
            given = self._per_channel(value, constant, channels)
            if constant is None or isinstance(given, str):
                self.problems.append(str(given))
                break
            with np.errstate(over="ignore", under="ignore"):
                if isinstance(op, MulOp):
                    scale, offset = scale * given, offset * given
                else:
                    offset = offset + given
                narrow = [rounded(array, self._narrow) for array in (scale, offset)]
            if not all(map(is_finite, narrow)):
                self.problems.append("the product or sum of its constants is not finite")
                return depth
            chain.append(op)
            constants.append(constant)
            value = op.results[0]
            if depth + len(chain) > MAX_DEPTH:
                return depth + len(chain)
        if chain:
            self.branches.append(_Branch(part, chain, constants, scale, offset))
        return depth + len(chain)

    def _per_channel(self, value: SSAValue, constant: Tensor | None, channels: int) -> Array | str:
        """A constant as one number, or one for each channel; or why it is neither."""
        dims = self._knowledge.dims(value)
        if constant is None:
            return "the other operand of Mul or Add is not a constant of floats"
        shape = constant.array.shape
        if dims is None or len(shape) > len(dims):
            return f"a constant of shape {list(shape)} has more axes than what it is put to"
        aligned = (1,) * (len(dims) - len(shape)) + shape
        others = [n for axis, n in enumerate(aligned) if axis != CHANNELS]
        if any(n != 1 for n in others) or aligned[CHANNELS] not in (1, channels):
            return f"a constant of shape {list(shape)} is not one number for each of {channels}"
        if not is_finite(constant.array):
            return "a constant of Mul or Add is not finite"
        return constant.array.reshape(-1).astype(np.float64)

    def _note_if_affine(self, problem: str, value: SSAValue | None = None) -> None:
        """Note why nothing is done, where Mul or Add says that something could have been."""
        for use in (self.conv.results[0] if value is None else value).uses:
            op = use.operation
            if isinstance(op, MulOp | AddOp) and float_tensor(op.operands[1 - use.index]):
                self.problems.append(problem)
                return


def _working(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The narrowest type in which factors have to be finite."""
    return dtype if dtype == np.float64 else np.dtype(np.float32)


def _fold(
    options: ConvChannelAffineFolding, context: PassContext, route: _Route, names: FreshNames
) -> str | None:
    """Give the Conv other parameters and take the chains away; or the reason why not."""
    conv = route.conv
    made = _parameters(conv, route.branches)
    if isinstance(made, str):
        return made
    weights, bias = made
    given = [constant for branch in route.branches for constant in branch.constants]
    for array, old in ((weights, conv.W), (bias, conv.B)):
        if array is not None:
            problem = growth(stored([array]), [float_tensor(old), *given], options.max_bytes)
            if problem is not None:
                return problem
    rewriter, operands = context.rewriter, list(conv.operands)
    if weights is not None:
        name = names.fresh("algebraic_conv_weight")
        operands[1] = new_constant(context, conv, weights, name)
    if bias is not None:
        name = names.fresh("algebraic_conv_bias")
        operands[2:] = [new_constant(context, conv, bias, name)]
    old_operands = tuple(conv.operands[1:])
    rewriter.set_operands(conv, operands)
    drop_unused(rewriter, old_operands)
    for branch in route.branches:
        for op in branch.chain:
            channels = f"channels {branch.part.start} to {branch.part.stop}"
            context.remark("applied", options.name, op, f"is in {channels} of the Conv before it")
            remove(context, op, branch.part.value)
    return None


def _parameters(
    conv: ConvOp, branches: Sequence[_Branch]
) -> tuple[Array | None, Array | None] | str:
    """New weights and bias, computed in float64 and rounded once; or why there are none.

    None stands for one that stays as it is.
    """
    weights, bias = float_tensor(conv.W), float_tensor(conv.B)
    assert weights is not None
    channels, dtype = len(weights.array), weights.array.dtype
    if conv.B is not None and (bias is None or bias.array.shape != (channels,)):
        return "its bias is not a constant with a number for each channel"
    if not is_finite(weights.array) or (bias is not None and not is_finite(bias.array)):
        return "its weights or bias are not finite"
    scale, offset = np.ones(channels), np.zeros(channels)
    for branch in branches:
        scale[branch.part.start : branch.part.stop] = branch.scale
        offset[branch.part.start : branch.part.stop] = branch.offset
    with np.errstate(over="ignore", under="ignore"):
        total = offset if bias is None else bias.array.astype(np.float64) * scale + offset
        new_weights = rounded(scaled(weights, scale), dtype)
        new_bias = rounded(_short(total), dtype if bias is None else bias.array.dtype)
    if not (is_finite(new_weights) and is_finite(new_bias)):
        return "the folded weights or bias are not finite"
    keeps_bias = not offset.any() and (bias is None or (scale == 1).all())
    return None if (scale == 1).all() else new_weights, None if keeps_bias else new_bias


def _short(array: Array) -> Array:
    """Equal numbers as one that is repeated."""
    return splat(array[0], array.shape, array.dtype) if (array == array[0]).all() else array


def scaled(weights: Tensor, factors: Array) -> Array:
    """Weights with a factor for each output channel, in float64; repeated elements stay so."""
    if weights.is_splat and (factors == factors[0]).all():
        return splat(float(weights.array.flat[0]) * factors[0], weights.array.shape, np.float64)
    return widened(weights) * factors.reshape(-1, *[1] * (weights.array.ndim - 1))
