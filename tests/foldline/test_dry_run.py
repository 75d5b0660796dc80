"""What optional passes would change: in bodies too, bit by bit, without touching the model."""

from __future__ import annotations

import pytest
from onnx import parser

from foldline.compiler import Compiler
from foldline.dry_run import Finding, dry_run, optional_passes
from foldline.support.errors import InvalidModel, PassFailed
from foldline.support.passes import PASSES

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
SPLIT = f"{HEAD} g (float[6] x) => (float[3] p, float[3] q) {{ [cut] p, q = Split(x) }}"
BODY = f"""{HEAD} g (float[6] x, bool t) => (float[3] y) {{
    y = If (t) <then_branch = a () => (float[3] p) {{ p, r = Split(x) }},
                else_branch = a () => (float[3] q) {{ s, q = Split(x) }}> }}"""
EXP = (
    f"""{HEAD} g (float[3] x) => (float[3] y) <float c = {{2.5}}> {{ e = Exp(x) y = Mul(e, c) }}"""
)


def findings(text: str, **options: object) -> dict[str, Finding]:
    model = parser.parse_model(text)
    before = model.SerializeToString()
    found = {finding.name: finding for finding in dry_run(model, options=options)}
    assert model.SerializeToString() == before
    return found


def test_optional_passes_are_those_that_are_off() -> None:
    names = optional_passes()
    assert {name for name, info in PASSES.items() if info.opt_in} <= set(names)
    assert "constant-folding" not in names


def test_nodes_and_constants() -> None:
    found = findings(SPLIT)["static-split-to-slice"].changes
    assert found.removed == (("Split", "cut"),)
    assert [kind for kind, _ in found.added] == ["Slice", "Slice"]
    assert found.modified == ()
    assert found.constants[0] == 0
    assert found.constants[1] > 0


def test_nodes_of_bodies() -> None:
    found = findings(BODY)["static-split-to-slice"].changes
    assert [kind for kind, _ in found.removed] == ["Split", "Split"]
    assert [kind for kind, _ in found.added] == ["Slice", "Slice"]


def test_another_operator_under_a_name() -> None:
    found = findings(EXP)["exp-positive-scale-folding"].changes
    assert "Mul -> Exp" in [kind for kind, _ in found.modified]


def test_what_is_asked_for_is_not_tried() -> None:
    name = "static-split-to-slice"
    for on in (True, False):
        assert name not in findings(SPLIT, **{f"passes.{name}": on})


def test_exact_mode_has_nothing_that_moves_bits() -> None:
    assert "exp-positive-scale-folding" in findings(EXP)
    assert "exp-positive-scale-folding" not in findings(EXP, mode="exact")


def test_a_pass_that_fails_is_a_finding_and_the_others_are_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that fails says nothing about the others."""
    compile_ = Compiler.compile

    def failing(self: Compiler, model: object, **given: object) -> object:
        options = given.get("options")
        if isinstance(options, dict) and "passes.exp-positive-scale-folding" in options:
            raise PassFailed("it broke")
        return compile_(self, model, **given)  # pyright: ignore

    monkeypatch.setattr(Compiler, "compile", failing)
    found = findings(SPLIT)
    assert found["exp-positive-scale-folding"].problem == "it broke"
    assert "static-split-to-slice" in found


def test_a_model_that_is_wrong_is_an_error() -> None:
    with pytest.raises(InvalidModel):
        list(dry_run(b"\x00"))
