"""conv-activation: a convolution takes up what is added to it and the activation that follows.

    Relu(Conv(x, W, b))           ->   fused.Conv(x, W, b) {activation = "Relu"}
    Relu(Add(Conv(x, W, b), z))   ->   fused.Conv(x, W, b, z) {activation = "Relu"}
    Add(Conv(x, W, b), z)         ->   fused.Conv(x, W, b, z)
    y = Conv(x, W, b), Relu(y), Shape(y)
        ->   y = fused.Conv(x, W, b) {activation = "Relu"}, y, Shape(y)

So with ConvTranspose, with Sum of two for Add, and with every activation that fused operators know:
Clip with constant bounds, Gelu, HardSigmoid, HardSwish, LeakyRelu, Relu, Sigmoid, Swish, Tanh. The
kernel convolves, adds and activates as the single operators do: bits are preserved, up to which of
two NaNs a sum of them is, which hangs on where they lie in memory in either case. Left alone: a
result that is read elsewhere; the farther of two convolutions that are added; additions of
constants that are one number a channel, which belong into the bias, and of what is known to have
another shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.ir import Block, Operation, SSAValue

from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.op import NodeOp, opset_versions, plain_value
from foldline.dialects.onnx.types import dims_of
from foldline.stages.replacing import is_parametric, only_reader
from foldline.stages.rewrite.activations import (
    ACTIVATION_OPERATORS,
    Activation,
    IsActivation,
    activation_of,
)
from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.rule_pass import RulePass, built_in
from foldline.stages.rewrite.transform import Transform
from foldline.support.passes import PASSES

CONVOLUTIONS = ("Conv", "ConvTranspose")


def _with_sum() -> Pattern:
    pattern = Pattern()
    conv = pattern.node(CONVOLUTIONS, name="conv")
    total = pattern.node(("Add", "Sum"), where=_has_two_operands, name="sum")
    activation = pattern.node(
        ACTIVATION_OPERATORS, where=IsActivation(), name="activation", optional=True
    )
    pattern.edge(conv, total)
    pattern.edge(total, activation, 0)
    pattern.results = [(activation, 0)]
    return pattern


def _without_sum(shapes: int = 0) -> Pattern:
    pattern = Pattern()
    conv = pattern.node(CONVOLUTIONS, name="conv")
    activation = pattern.node(ACTIVATION_OPERATORS, where=IsActivation(), name="activation")
    pattern.edge(conv, activation, 0)
    pattern.results = [(activation, 0)]
    for number in range(shapes):
        shape = pattern.node("Shape", name=f"shape {number}")
        pattern.edge(conv, shape, 0)
        pattern.results.append((shape, 0))
    return pattern


def _has_two_operands(op: NodeOp) -> bool:
    return len(op.operands) == 2


def _can_fuse(match: Match) -> bool:
    conv = match.op("conv")
    if is_parametric(conv):
        return match.refuse("its attributes are given by the callers of the function")
    total = _node(match, "sum")
    if total is not None:
        problem = _sum_problem(conv, total)
        if problem is not None:
            return match.refuse(problem)
    return True


def _sum_problem(conv: NodeOp, total: NodeOp) -> str | None:
    """Why the sum cannot be part of the convolution."""
    added = _added(conv, total)
    if added is conv.results[0]:
        return "the result of the convolution is added to itself"
    if _stands_between(added.owner, conv, total):
        return "the other convolution that is added stands nearer to the sum"
    if opset_versions(total).get("", 0) < 7 and total.attribute_values().get("broadcast"):
        return "what is added is broadcast by its axis"
    ours, other = dims_of(conv.results[0].type), dims_of(added.type)
    if ours is None or other is None:
        return None if constant_tensor(added) is None else "a constant is added, of unknown rank"
    if len(ours) != len(other) or any(
        isinstance(a, int) and isinstance(b, int) and a != b
        for a, b in zip(ours, other, strict=True)
    ):
        return f"what is added has the sizes {list(other)} and not {list(ours)}"
    return None


def _stands_between(other: Operation | Block, conv: NodeOp, total: NodeOp) -> bool:
    """Whether another convolution, which could take up the sum as well, stands after `conv`.

    The nearer one is chosen, as in a file that was made of the result it is the nearer one again.
    """
    if not isinstance(other, NodeOp) or other.op_type not in CONVOLUTIONS:
        return False
    if only_reader(other.results[0]) is not total:
        return False
    here = conv.next_op
    while here is not None and here is not total:
        if here is other:
            return True
        here = here.next_op
    return False


def _added(conv: NodeOp, total: NodeOp) -> SSAValue:
    place = 1 if total.operands[0] is conv.results[0] else 0
    return total.operands[place]


def _node(match: Match, name: str) -> NodeOp | None:
    return match[name] if any(node.name == name for node in match.pattern.nodes) else None


def _fuse(build: RuleBuilder, match: Match) -> list[SSAValue]:
    fused = _fused(build, match)
    made: dict[object, SSAValue] = {
        op: build.like(op, [fused]) for op in match.nodes if op.op_type == "Shape"
    }
    return [made.get(value.owner, fused) for value in match.outputs]


def _fused(build: RuleBuilder, match: Match) -> SSAValue:
    conv, total = match.op("conv"), _node(match, "sum")
    window: dict[str, Any] = {k: plain_value(v) for k, v in conv.onnx_attributes.items()}
    inputs = [conv.operand(place) for place in range(3)]
    if total is not None:
        inputs.append(_added(conv, total))
    activation = _node(match, "activation")
    found = Activation("") if activation is None else activation_of(activation)
    assert isinstance(found, Activation), "the pattern wants one"
    return build.fused(
        conv.op_type,
        *inputs,
        **window,
        activation=found.name or None,
        activation_params=found.params or None,
    )


_PATTERNS = [_with_sum(), _without_sum(), _without_sum(shapes=1), _without_sum(shapes=2)]

TRANSFORM = built_in("conv-activation", _PATTERNS, _fuse, _can_fuse)


@dataclass(frozen=True)
class ConvActivation(RulePass):
    """Let convolutions add and activate."""

    name = "conv-activation"
    INFO: ClassVar = PASSES["conv-activation"]

    @property
    def transform(self) -> Transform:
        """The rule."""
        return TRANSFORM
