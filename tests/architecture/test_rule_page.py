"""The page on writing rules does what it says: its code runs, in order, in one namespace."""

from __future__ import annotations

import re

import pytest
import yaml

from foldline import transforms
from tests.architecture.pages import blocks, run_code
from tests.architecture.tree import ROOT

NAME = "writing-a-rule.md"
PAGE = (ROOT / "docs" / NAME).read_text()


def test_the_code_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names = run_code(NAME)
    rows = {row.name: row.replacements for row in names["report"].rows}
    assert rows == {"tanh-to-sigmoid": 1, "merge-relus": 1}
    printed = capsys.readouterr().out
    assert printed.startswith("['Tanh']\n")
    assert "tanh-to-sigmoid: 1 matches, 1 replaced" in printed
    (miss,) = blocks(NAME, "text")
    assert miss in printed
    applied = [row.name for row in names["compiled"].session().applied_passes]
    assert applied[applied.index("tanh-to-sigmoid") + 1] == "merge-relus"


def test_the_rules_as_data_are_rules() -> None:
    (block,) = blocks(NAME, "yaml")
    rules = transforms.rules_from(yaml.safe_load(block))
    assert [rule.name for rule in rules] == ["silu", "softmax-of-scaled"]


@pytest.mark.parametrize("name", re.findall(r"`transforms\.(\w+)", PAGE))
def test_what_the_page_names_is_there(name: str) -> None:
    assert hasattr(transforms, name)
