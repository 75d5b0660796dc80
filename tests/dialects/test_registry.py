from __future__ import annotations

import pytest

from foldline.dialects import DIALECTS, OPERATORS, operator_class
from foldline.dialects.onnx.math import ClipOp
from foldline.dialects.onnx.schema import newest_versions, operators
from tests.dialects.ir import context


def test_every_known_operator_has_a_class() -> None:
    assert OPERATORS.keys() == operators().keys()
    assert operator_class("", "Clip") is ClipOp


@pytest.mark.parametrize("key", [("", "Clipp"), ("ai.onnx", "Clip"), ("com.microsoft", "Nothing")])
def test_unknown_operators_have_none(key: tuple[str, str]) -> None:
    assert operator_class(*key) is None


def test_names_of_operations_and_attributes_are_unique() -> None:
    own = DIALECTS[1:]
    names = [op.name for dialect in own for op in dialect.operations]
    names += [attribute.name for dialect in own for attribute in dialect.attributes]
    assert len(set(names)) == len(names)


def test_all_dialects_load_into_a_fresh_context() -> None:
    loaded = {dialect.name for dialect in context().loaded_dialects}
    assert loaded == {"builtin", "onnx", "com_microsoft", "fold", "fused", "plan"}


def test_only_domains_of_onnx_have_a_newest_version() -> None:
    assert set(newest_versions()) == {domain for domain, _ in operators()} - {
        "com.microsoft",
        "foldline",
    }
    assert newest_versions()[""] >= 22
