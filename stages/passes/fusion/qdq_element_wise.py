"""qdq-element-wise: an element-wise operator between DequantizeLinear and QuantizeLinear is one.

    QuantizeLinear(Sigmoid(DequantizeLinear(x)))                   ->   QLinearActivation(x)
    QuantizeLinear(Add(DequantizeLinear(a), DequantizeLinear(b)))  ->   QLinearAdd(a, b)

So are other activations, Mul, GlobalAveragePool, and BatchNormalization with constant parameters.
Scales and zero points are constants, one for each tensor, of 8 bits and one type. Requires that
nothing else reads the float between; a DequantizeLinear that others read stays for them. The
operators are of the fused dialect: files get their parts. Bits are kept: the parts compute the
entries of a table, or run one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.ir import SSAValue

from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.nn import BatchNormalizationOp
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.quantisation import QuantizeLinearOp
from foldline.stages.rewrite.activations import (
    ACTIVATION_OPERATORS,
    Activation,
    activation_of,
)
from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.quantised import Codes, dequantised, quantised
from foldline.stages.rewrite.rule_pass import RulePass, built_in
from foldline.stages.rewrite.transform import Transform
from foldline.support.passes import PASSES

PAIRS = ("Add", "Mul")
"""Operators of two quantised tensors."""

POOL = "GlobalAveragePool"


def _pattern() -> Pattern:
    pattern = Pattern()
    operators = [*ACTIVATION_OPERATORS, *PAIRS, "BatchNormalization", POOL]
    middle = pattern.node(operators, name="middle")
    quantise = pattern.node("QuantizeLinear", name="quantise")
    pattern.edge(middle, quantise, 0)
    pattern.results = [(quantise, 0)]
    return pattern


def _can_quantise(match: Match) -> bool:
    middle, quantise = match.op("middle"), match.op("quantise")
    assert isinstance(quantise, QuantizeLinearOp)
    y = quantised(quantise)
    if isinstance(y, str):
        return match.refuse(f"the result: {y}")
    inputs = [dequantised(x) for x in middle.operands[: 2 if middle.op_type in PAIRS else 1]]
    for x in inputs:
        if isinstance(x, str):
            return match.refuse(f"the input: {x}")
        if x.axis is not None:
            return match.refuse("the input has a scale for each index of an axis")
        if x.dtype != y.dtype:
            return match.refuse(f"the input is {x.dtype.name}, the result {y.dtype.name}")
    match.notes.update(inputs=inputs, y=y)
    problem = _problem(match, middle)
    return problem is None or match.refuse(problem)


def _problem(match: Match, middle: NodeOp) -> str | None:
    if middle.op_type in PAIRS or middle.op_type == POOL:
        return None
    if isinstance(middle, BatchNormalizationOp):
        return _norm_problem(middle)
    found = activation_of(middle)
    match.notes["activation"] = found
    return found if isinstance(found, str) else None


def _norm_problem(norm: BatchNormalizationOp) -> str | None:
    if norm.trains():
        return "the BatchNormalization trains"
    if norm.value_of("spatial") == 0:
        return "every element has statistics of its own"
    for value in norm.operands[1:5]:
        tensor = constant_tensor(value)
        if tensor is None:
            return "the parameters of the BatchNormalization are not constant"
        if tensor.array.dtype != np.float32 or not np.isfinite(tensor.array).all():
            return "the parameters of the BatchNormalization are not finite floats"
    return None


def _quantise(build: RuleBuilder, match: Match) -> SSAValue:
    middle = match.op("middle")
    inputs: list[Codes] = match.notes["inputs"]
    y: Codes = match.notes["y"]
    given = [part for x in inputs for part in (x.value, x.scale_value, x.zero_value)]
    given += [y.scale_value, y.zero_in(build)]
    if middle.op_type in PAIRS or middle.op_type == POOL:
        return build.fused(f"QLinear{middle.op_type}", *given)
    if isinstance(middle, BatchNormalizationOp):
        epsilon = middle.value_of("epsilon")
        parameters = middle.operands[1:5]
        return build.fused("QLinearBatchNormalization", *given, *parameters, epsilon=epsilon)
    applied = match.notes["activation"]
    assert isinstance(applied, Activation)
    return build.fused(
        "QLinearActivation",
        *given,
        activation=applied.name,
        activation_params=applied.params or None,
    )


TRANSFORM = built_in("qdq-element-wise", _pattern(), _quantise, _can_quantise)


@dataclass(frozen=True)
class QdqElementWise(RulePass):
    """Form quantised activations, sums and products."""

    name = "qdq-element-wise"
    INFO: ClassVar = PASSES["qdq-element-wise"]

    @property
    def transform(self) -> Transform:
        """The rule."""
        return TRANSFORM
