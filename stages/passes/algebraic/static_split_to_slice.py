"""static-split-to-slice: turn a Split into a Slice for each of its results.

    %a, %b = Split(%x) sizes (2, 4)   ->   %a = Slice(%x, 0, 2); %b = Slice(%x, 2, 6)

Requires an axis of known size and constant sizes that are positive and add up to it; equal parts,
and from operator set 18 on a last part that is smaller, need not be given. Results that nothing
reads get no Slice. Elements are only copied, so bits are preserved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from foldline.dialects.onnx.shape import SplitOp
from foldline.stages.passes.algebraic._common import refusal_at
from foldline.stages.passes.algebraic._views import split_parts
from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.rule_pass import RulePass, built_in
from foldline.stages.rewrite.transform import Transform
from foldline.support.passes import PASSES


def _pattern() -> Pattern:
    pattern = Pattern()
    pattern.node("Split", name="split")
    return pattern


def _is_static(match: Match) -> bool:
    split = match.op("split")
    assert isinstance(split, SplitOp)
    if (problem := refusal_at(split, 10)) is not None:
        return match.refuse(problem)
    found = split_parts(split, match.knowledge.dims(split.input))
    if isinstance(found, str):
        return match.refuse(found)
    match.notes.update(axis=found[0], parts={part.value: part for part in found[1]})
    return True


def _slices(build: RuleBuilder, match: Match) -> list[SSAValue]:
    split = match.op("split")
    assert isinstance(split, SplitOp)
    parts, axis = match.notes["parts"], match.notes["axis"]
    found = [parts[output] for output in match.outputs]
    return [
        build.op(
            "Slice", split.input, starts=[part.start], ends=[part.stop], axes=[axis], steps=[1]
        )
        for part in found
    ]


TRANSFORM = built_in("static-split-to-slice", _pattern(), _slices, _is_static)


@dataclass(frozen=True)
class StaticSplitToSlice(RulePass):
    """Turn Split into Slice."""

    name = "static-split-to-slice"
    INFO: ClassVar = PASSES["static-split-to-slice"]

    @property
    def transform(self) -> Transform:
        """The rule."""
        return TRANSFORM
