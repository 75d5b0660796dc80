"""export(import(m)) is m, compared as serialised bytes, but for the listed normalisations."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import ModelProto

from foldline.dialects.onnx.verifier import verify_model
from foldline.exporter import export_model
from foldline.importer import import_model
from tests.conformance.suite import node_cases
from tests.foldline.importer.comparison import normalised

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
FILES = sorted(DATA.rglob("*.onnx"))


def assert_unchanged(model: ModelProto) -> None:
    before = model.SerializeToString(deterministic=True)
    notes: list[str] = []
    module = import_model(model, notes)
    verify_model(module)
    assert notes == []
    assert normalised(export_model(module)) == normalised(model)
    assert model.SerializeToString(deterministic=True) == before


@pytest.mark.slow
def test_every_node_case_of_the_suite() -> None:
    cases = node_cases()
    assert len(cases) > 1800
    for case in cases:
        assert_unchanged(case.model)


@pytest.mark.parametrize("category", ["light", "pytorch-converted", "pytorch-operator", "simple"])
def test_every_model_file_of_the_suite(category: str) -> None:
    files = [file for file in FILES if category in file.parts]
    assert files
    for file in files:
        assert_unchanged(onnx.load(file))
