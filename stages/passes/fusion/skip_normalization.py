"""skip-normalization: a sum and the normalisation of its rows become one operator.

    s = Add(x, z);  y = LayerNormalization(s, scale, bias)
        ->   y, s = SkipLayerNormalization(x, z, scale, bias)

and so RMSNormalization, of ONNX or of the fused dialect. The sum is a result where something else
reads it, as in networks that normalise before each layer. The operators are of the fused dialect:
files get their parts. Bits are kept: the sum is rounded, and then normalised by the same kernel.
Left alone: normalisations of which mean and deviation are read, or that scale to another type, and
operator sets in which Add broadcasts by an attribute.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.ir import SSAValue

from foldline.dialects.fused import FUSED_DOMAIN
from foldline.dialects.onnx.op import OnnxOp, opset_versions
from foldline.dialects.onnx.types import AbsentType, element_type
from foldline.stages.replacing import is_parametric
from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.rule_pass import RulePass, built_in
from foldline.stages.rewrite.stand_in import BROADCASTS
from foldline.stages.rewrite.transform import Transform
from foldline.support.passes import PASSES

NORMALISATIONS = ("LayerNormalization", "RMSNormalization")
SETTINGS = ("axis", "epsilon", "stash_type")


def _pattern() -> Pattern:
    pattern = Pattern()
    total = pattern.node("Add", name="sum")
    both = [f"{domain}::{name}" for domain in ("ai.onnx", FUSED_DOMAIN) for name in NORMALISATIONS]
    rows = pattern.node(both, name="rows")
    pattern.edge(total, rows, 0)
    pattern.results = [(total, 0), *((rows, place) for place in range(3))]
    return pattern


def _can_fuse(match: Match) -> bool:
    total, rows = match.op("sum"), match.op("rows")
    version = opset_versions(total).get("", 0)
    if version < BROADCASTS:
        return match.refuse(f"Add of operator set {version} broadcasts only where told to")
    if rows.results[0] not in match.outputs:
        return match.refuse("nothing reads the rows")
    if is_parametric(rows):
        return match.refuse("its attributes are given by the callers of the function")
    if any(not isinstance(result.type, AbsentType) for result in rows.results[1:]):
        return match.refuse("mean and deviation are results as well")
    own, others = element_type(total.results[0].type), rows.operands[1:]
    types = {element_type(value.type) for value in others if not isinstance(value.type, AbsentType)}
    if own is None or types != {own}:
        found = ", ".join(sorted(map(str, types)))
        return match.refuse(f"rows of {own} are scaled and shifted by {found}")
    return True


def _fuse(build: RuleBuilder, match: Match) -> list[SSAValue]:
    total, rows = match.op("sum"), match.op("rows")
    assert isinstance(rows, OnnxOp)
    settings: dict[str, Any] = {name: rows.value_of(name) for name in SETTINGS}
    if rows.value_of("inverse"):
        settings["inverse"] = 1
    wanted = match.outputs
    made = build.op(
        f"Skip{rows.op_type}",
        *total.operands,
        *rows.operands[1:],
        domain=FUSED_DOMAIN,
        outputs=len(wanted),
        **settings,
    )
    results: tuple[SSAValue, ...] = made if len(wanted) > 1 else (made,)
    return [results[-1 if value.owner is total else 0] for value in wanted]


TRANSFORM = built_in("skip-normalization", _pattern(), _fuse, _can_fuse)


@dataclass(frozen=True)
class SkipNormalization(RulePass):
    """Let normalisations add what they normalise."""

    name = "skip-normalization"
    INFO: ClassVar = PASSES["skip-normalization"]

    @property
    def transform(self) -> Transform:
        """The rule."""
        return TRANSFORM
