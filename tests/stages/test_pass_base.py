"""Passes as xDSL sees them."""

from __future__ import annotations

import pytest
from xdsl.context import Context
from xdsl.passes import PassPipeline

from foldline.stages.passes import ALL_PASSES
from foldline.support.passes import PASSES
from tests.stages.check import from_onnx, op_types

AVAILABLE = {cls.name: lambda cls=cls: cls for cls in ALL_PASSES}
MODEL = """g (float[3] x) => (float[3] y) <float[3] w = {1, 2, 3}> {
    a = Neg(w) i = Identity(x) d = Exp(x) y = Mul(a, i)
}"""


def test_classes_refer_to_their_row() -> None:
    for cls in ALL_PASSES:
        assert cls.INFO is PASSES[cls.name]


@pytest.mark.parametrize(
    ("spec", "left"),
    [
        ("infer-shapes,constant-folding", ["Identity", "Exp", "Mul"]),
        ("infer-shapes,constant-folding{max-bytes=8},prune", ["Identity", "Mul"]),
        ('infer-shapes,constant-folding{skip="op:Neg"}', ["Neg", "Identity", "Exp", "Mul"]),
        ("eliminate-identity,prune,merge-equal-constants", ["Neg", "Mul"]),
    ],
)
def test_they_run_by_specification(spec: str, left: list[str]) -> None:
    module = from_onnx(MODEL)
    PassPipeline.parse_spec(AVAILABLE, spec).apply(Context(), module)
    assert op_types(module) == left
