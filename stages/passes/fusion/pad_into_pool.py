"""pad-into-pool: let a pool add the border that a Pad before it adds.

    AveragePool(Pad(x, p, 0)) {pads = q}   ->   AveragePool(x) {pads = p + q, count_include_pad = 1}
    MaxPool(Pad(x, p, -inf)) {pads = q}    ->   MaxPool(x) {pads = p + q}

MaxPool does with zeros as well where `x` is not negative, as after Relu. Requires constant sizes
that are not negative, none of them for images or channels, and a Pad that nothing else reads;
`auto_pad` becomes numbers. Left alone: an AveragePool that pads without counting its pads,
`ceil_mode`, which drops windows in the pads, indices, and pads as wide as the window. Last bits of
AveragePool may move, as sums are formed in another order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.ir import OpResult, SSAValue

from foldline.dialects.onnx.math import ClipOp
from foldline.dialects.onnx.op import NodeOp, OnnxOp
from foldline.dialects.onnx.resizing import PadOp
from foldline.dialects.onnx.types import AbsentType
from foldline.stages.replacing import is_parametric
from foldline.stages.rewrite.borders import joined_pads, with_pads
from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.rule_pass import RulePass, built_in
from foldline.stages.rewrite.transform import Transform
from foldline.support.passes import PASSES

NOT_NEGATIVE = frozenset(("HardSigmoid", "Relu", "Sigmoid", "Softmax", "Softplus"))
"""Operators of ONNX whose results are 0 or more."""


def _pattern() -> Pattern:
    pattern = Pattern()
    pad = pattern.node("Pad", name="pad")
    pool = pattern.node(("AveragePool", "MaxPool"), name="pool")
    pattern.edge(pad, pool, 0)
    pattern.results = [(pool, 0)]
    return pattern


def _can_join(match: Match) -> bool:
    pad, pool = match.op("pad"), match.op("pool")
    assert isinstance(pad, PadOp)
    assert isinstance(pool, OnnxOp)
    if is_parametric(pad) or is_parametric(pool):
        return match.refuse("its attributes are given by the callers of the function")
    problem = _pool_problem(pool) or _fill_problem(pad, pool)
    if problem is not None:
        return match.refuse(problem)
    kernel = pool.ints_of("kernel_shape") or ()
    pads = joined_pads(pad, pool, kernel)
    if isinstance(pads, str):
        return match.refuse(pads)
    if any(size >= k for size, k in zip(pads, (*kernel, *kernel), strict=True)):
        return match.refuse(f"pads {list(pads)} are as wide as the window {list(kernel)}")
    match.notes["pads"] = pads
    return True


def _pool_problem(pool: OnnxOp) -> str | None:
    if pool.int_of("ceil_mode"):
        return "ceil_mode drops windows that begin in the pads"
    if any(not isinstance(result.type, AbsentType) for result in pool.results[1:]):
        return "indices count the elements of the padded input"
    if any(d > 1 for d in pool.ints_of("dilations") or ()):
        return "a dilated window may see pads only"
    if pool.op_type == "MaxPool":
        return None
    if pool.since < 7:
        return f"AveragePool of version {pool.since} never counts pads"
    pads_itself = any(pool.ints_of("pads") or ()) or pool.value_of("auto_pad") not in (
        *(None, "", "NOTSET", "VALID"),
    )
    if pads_itself and not pool.int_of("count_include_pad"):
        return "the AveragePool does not count the pads that it adds itself"
    return None


def _fill_problem(pad: PadOp, pool: OnnxOp) -> str | None:
    found = pad.fill_known()
    if found is None:
        return "the value of the Pad is not constant"
    value = 0 if found.value is None else found.value
    if pool.op_type == "AveragePool":
        return None if value == 0 else f"the Pad adds {value} and not 0"
    if value == -math.inf or (value == 0 and _is_not_negative(pad.data)):
        return None
    return f"the Pad adds {value}, which may be greater than the elements"


def _is_not_negative(value: SSAValue) -> bool:
    op = value.op if isinstance(value, OpResult) else None
    if isinstance(op, ClipOp):
        bounds = op.bounds()
        return bounds is not None and bounds.minimum is not None and bounds.minimum >= 0
    return isinstance(op, NodeOp) and not op.domain and op.op_type in NOT_NEGATIVE


def _join(build: RuleBuilder, match: Match) -> SSAValue:
    pad, pool = match.op("pad"), match.op("pool")
    changed: dict[str, Any] = {"pads": match.notes["pads"]}
    if pool.op_type == "AveragePool":
        changed["count_include_pad"] = 1
    return with_pads(build, pool, [pad.operands[0]], **changed)


TRANSFORM = built_in("pad-into-pool", _pattern(), _join, _can_join)


@dataclass(frozen=True)
class PadIntoPool(RulePass):
    """Let pools pad."""

    name = "pad-into-pool"
    INFO: ClassVar = PASSES["pad-into-pool"]

    @property
    def transform(self) -> Transform:
        """The rule."""
        return TRANSFORM
