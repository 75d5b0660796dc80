"""What takes the place of a match: ONNX's operator where the model's version has it, else ours."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from foldline.dialects.fused import FUSED_DOMAIN
from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.op import opset_versions
from foldline.dialects.onnx.schema import signature
from foldline.dialects.onnx.types import element_of, element_type, rank
from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.match import Match
from foldline.support.dtypes import ElementType

BROADCASTS = 7
"""From this operator set on, operators broadcast without being told."""


def element_of_value(value: SSAValue) -> ElementType | None:
    """The element type of a value, if it is known."""
    attribute = element_type(value.type)
    return None if attribute is None else element_of(attribute)


def can_stand_in(match: Match, op_type: str, x: SSAValue, since: int = 0) -> bool:
    """Whether an operator can be made here for `x`; `made` makes it then.

    It is ONNX's from version `since` of the operator set on, if that has it, else the fused one.
    The reason is given to the match where neither takes the element type of `x`.
    """
    versions = opset_versions(match.ordered[-1])
    version = versions.get("", 0)
    element = element_of_value(x)
    if element is None:
        return match.refuse("the element type is not known")
    if version < BROADCASTS:
        return match.refuse(f"operator set {version} broadcasts only where attributes say so")
    domain, found = "", signature("", op_type, version)
    if found is None or found.is_deprecated or version < since:
        domain, found = FUSED_DOMAIN, signature(FUSED_DOMAIN, op_type, 1)
    if found is None or f"tensor({element.name})" not in found.inputs[0].types:
        return match.refuse(f"{op_type} of operator set {version} does not take {element.name}")
    match.notes["domain"] = domain
    return True


def made(
    build: RuleBuilder, match: Match, op_type: str, *inputs: SSAValue | None, **attributes: Any
) -> Any:
    """The operator that `can_stand_in` found."""
    return build.op(op_type, *inputs, domain=match.notes["domain"], **attributes)


def keeps_rank(match: Match, x: SSAValue) -> bool:
    """Whether constants of one element leave the rank of `x` as it is."""
    constants = [constant_tensor(value) for op in match.ordered for value in op.operands]
    highest = max(
        (t.array.ndim for t in constants if t is not None and t.array.size == 1), default=0
    )
    own = rank(x.type)
    if highest > (0 if own is None else own):
        return match.refuse(f"a constant of rank {highest} raises the rank of the input")
    return True


def fits_attribute(match: Match, x: SSAValue, *numbers: float) -> bool:
    """Whether numbers can be attributes, which are float32, without a loss that `x` would show."""
    element = element_of_value(x)
    if element is None or element.numpy != np.float64:
        return True
    wrong = next((n for n in numbers if float(np.float32(n)) != n), None)
    return wrong is None or match.refuse(f"{wrong!r} is no float32, as an attribute has to be")
