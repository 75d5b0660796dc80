"""group-normalization: InstanceNormalization between Reshapes becomes one GroupNormalization.

    Reshape(InstanceNormalization(Reshape(x, [0, groups, -1]), s, b), shape of x)
    Add(Mul(..., scale), bias)   ->   GroupNormalization(x, scale, bias)

where s is ones and b zeros, and scale and bias are constants with one entry a channel, of shape
[C, 1, ...]. Requires that the second Reshape gives the shape of x back, by what is known of sizes;
what reads the shape of its result then reads that of x.

GroupNormalization of ONNX from operator set 21 on (before, its scale is one a group), below that
one of the fused dialect, which files get as its parts. Bits move, by at most 8 eps of the largest
result times `1 + |mean| / deviation` of the group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from xdsl.ir import Operation, SSAValue

from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.tensor import Array
from foldline.dialects.onnx.traits import ReadsShapeOnly
from foldline.dialects.onnx.types import dims_of, static_shape
from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.rule_pass import RulePass, built_in
from foldline.stages.rewrite.stand_in import can_stand_in, made
from foldline.stages.rewrite.tracing import PatternOperators, Traced, traced
from foldline.stages.rewrite.transform import Transform
from foldline.support.passes import PASSES

PER_CHANNEL = 21
"""From this operator set on, scale and bias of GroupNormalization have one entry a channel."""


def _is_all(value: float) -> Any:
    def accepts(array: Array) -> bool:
        return bool((array == value).all())

    return accepts


def _splits_channels(array: Array) -> bool:
    """Whether an array is the shape [0, groups, -1]."""
    return array.shape == (3,) and array[0] == 0 and array[1] > 0 and array[2] == -1


def _copies_zeros(op: Any) -> bool:
    return not op.attribute_values().get("allowzero")


@traced
def _pattern(op: PatternOperators, x: Traced) -> tuple[Traced, Traced]:
    groups = op.constant(where=_splits_channels, name="groups")
    rows = op.Reshape(x, groups, name="split", where=_copies_zeros)
    ones, zeros = op.constant(where=_is_all(1)), op.constant(where=_is_all(0))
    normal = op.InstanceNormalization(rows, ones, zeros, name="norm")
    joined = op.Reshape(normal, name="join")
    return joined, joined * op.constant(name="scale") + op.constant(name="bias")


def _reads_shape(op: Operation) -> bool:
    return op.has_trait(ReadsShapeOnly)


def _accepts(match: Match) -> bool:
    x, joined = match.value("x"), match.op("join").results[0]
    dims, groups = dims_of(x.type), match.constant("groups")
    assert groups is not None
    if dims is None or len(dims) < 3 or not isinstance(dims[1], int):
        return match.refuse("the channels of the input are not known")
    channels = dims[1]
    if channels == 0 or channels % int(groups[1]):
        return match.refuse(f"{channels} channels are no {int(groups[1])} groups")
    if not match.knowledge.same_shape(x, joined):
        return match.refuse("the second Reshape is not known to give the shape of the input back")
    if not all(
        use.operation in match.ordered or _reads_shape(use.operation) for use in joined.uses
    ):
        return match.refuse("the result of the second Reshape is read outside as well")
    wanted = (channels, *(1,) * (len(dims) - 2))
    for name in ("scale", "bias"):
        shape = static_shape(match.value(name).type)
        if shape is None or shape[-len(wanted) :] != wanted or len(shape) > len(dims):
            return match.refuse(f"the {name} is of shape {shape} instead of {wanted}")
        if any(size != 1 for size in shape[: -len(wanted)]):
            return match.refuse(f"the {name} is of shape {shape} instead of {wanted}")
    return can_stand_in(match, "GroupNormalization", x, since=PER_CHANNEL)


def _replace(build: RuleBuilder, match: Match) -> list[SSAValue]:
    x, join, groups = match.value("x"), match.op("join"), match.constant("groups")
    assert groups is not None
    given = [match.value("scale"), match.value("bias")]
    if not match.notes["domain"]:
        given = [build.constant(_vector(value)) for value in given]
    elif static_shape(x.type) is None:
        given.append(join.operands[1])
    settings = {
        "num_groups": int(groups[1]),
        "epsilon": match.op("norm").attribute_values()["epsilon"],
    }
    rows = made(build, match, "GroupNormalization", x, *given, **settings)
    return [x if value is join.results[0] else rows for value in match.outputs]


def _vector(value: SSAValue) -> Array:
    tensor = constant_tensor(value)
    assert tensor is not None
    return np.ascontiguousarray(tensor.array).reshape(-1)


TRANSFORM = built_in("group-normalization", _pattern, _replace, _accepts)


@dataclass(frozen=True)
class GroupNormalization(RulePass):
    """Form GroupNormalization of InstanceNormalization between Reshapes."""

    name = "group-normalization"
    INFO: ClassVar = PASSES["group-normalization"]

    @property
    def transform(self) -> Transform:
        """The rule."""
        return TRANSFORM
