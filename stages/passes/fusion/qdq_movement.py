"""qdq-movement: codes move as they are, where they would be dequantised and quantised again alike.

    QuantizeLinear(Transpose(DequantizeLinear(x)))   ->   Transpose(x)
    QuantizeLinear(DequantizeLinear(x))              ->   x

So for operators that only move elements, and for MaxPool, which chooses one. Scale and zero point
are constants, the same before and after, one for the tensor, of 8 bits. Requires that nothing else
reads the float between. Bits are kept: with a scale whose multiples are finite, quantising what was
dequantised gives the code back, as two roundings move a multiple of the scale by far less than half
of it; and larger codes stand for larger numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.ir import SSAValue

from foldline.dialects.onnx.op import NodeOp, OnnxOp
from foldline.dialects.onnx.quantisation import QuantizeLinearOp
from foldline.dialects.onnx.types import AbsentType
from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.quantised import Codes, dequantised, quantised
from foldline.stages.rewrite.rule_pass import RulePass, built_in
from foldline.stages.rewrite.transform import Transform
from foldline.support.dtypes import BY_NUMPY
from foldline.support.passes import PASSES

MOVERS = (
    *("DepthToSpace", "Expand", "Flatten", "Gather", "MaxPool", "Reshape", "Slice"),
    *("SpaceToDepth", "Squeeze", "Tile", "Transpose", "Unsqueeze"),
)
"""Operators whose result holds elements of their first input, and nothing else."""


def _moved() -> Pattern:
    pattern = Pattern()
    mover = pattern.node([*MOVERS, "Concat"], name="mover")
    quantise = pattern.node("QuantizeLinear", name="quantise")
    pattern.edge(mover, quantise, 0)
    pattern.results = [(quantise, 0)]
    return pattern


def _bare() -> Pattern:
    pattern = Pattern()
    quantise = pattern.node("QuantizeLinear", where=_reads_codes, name="quantise")
    pattern.results = [(quantise, 0)]
    return pattern


def _reads_codes(op: NodeOp) -> bool:
    return isinstance(dequantised(op.operands[0]), Codes)


def _gives_codes_back(match: Match) -> bool:
    quantise = match.op("quantise")
    assert isinstance(quantise, QuantizeLinearOp)
    mover = match["mover"] if match.pattern.nodes[0].name == "mover" else None
    moved = _moved_by(mover or quantise)
    y = quantised(quantise)
    if isinstance(y, str):
        return match.refuse(f"the result: {y}")
    for value in moved:
        x = dequantised(value)
        problem = x if isinstance(x, str) else _difference(x, y)
        if problem is not None:
            return match.refuse(f"the input: {problem}")
    problem = None if mover is None else _mover_problem(mover, y)
    return problem is None or match.refuse(problem)


def _moved_by(op: NodeOp) -> list[SSAValue]:
    return list(op.operands if op.op_type == "Concat" else op.operands[:1])


def _difference(x: Codes, y: Codes) -> str | None:
    """Why codes are others after they were dequantised and quantised."""
    if x.axis is not None:
        return "it has a scale for each index of an axis"
    if x.dtype != y.dtype:
        return f"its codes are {x.dtype.name}, those of the result {y.dtype.name}"
    scales = x.scale.reshape(()), y.scale.reshape(())
    if scales[0] != scales[1]:
        return f"its scale is {scales[0]:g}, that of the result {scales[1]:g}"
    if x.zero_array != y.zero_array:
        return f"its zero point is {x.zero_array}, that of the result {y.zero_array}"
    if max(map(abs, x.limits)) > float(np.finfo(np.float32).max):
        return "its largest codes stand for infinities"
    return None


def _mover_problem(mover: NodeOp, y: Codes) -> str | None:
    if any(not isinstance(result.type, AbsentType) for result in mover.results[1:]):
        return f"{mover.op_type} has more than one result"
    name = BY_NUMPY[y.dtype].name
    schema = mover.signature if isinstance(mover, OnnxOp) else None
    if schema is None or f"tensor({name})" not in schema.inputs[0].types:
        return f"{mover.op_type} of this operator set does not take {name}"
    return None


def _move(build: RuleBuilder, match: Match) -> SSAValue:
    if match.pattern.nodes[0].name != "mover":
        return _codes(match.op("quantise").operands[0])
    mover = match.op("mover")
    moved = [_codes(value) for value in _moved_by(mover)]
    return build.like(mover, [*moved, *mover.operands[len(moved) :]])


def _codes(value: SSAValue) -> SSAValue:
    found = dequantised(value)
    assert isinstance(found, Codes)
    assert found.value is not None
    return found.value


TRANSFORM = built_in("qdq-movement", [_moved(), _bare()], _move, _gives_codes_back)


@dataclass(frozen=True)
class QdqMovement(RulePass):
    """Move codes instead of floats."""

    name = "qdq-movement"
    INFO: ClassVar = PASSES["qdq-movement"]

    @property
    def transform(self) -> Transform:
        """The rule."""
        return TRANSFORM
