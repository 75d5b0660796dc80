"""Pages that are made from the product say what the product says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from foldline.cli import root
from foldline.stages.pipeline import PIPELINE
from foldline.support.debug_options import DEBUG_NAMES
from foldline.support.option_table import OPTIONS
from foldline.support.passes import PASSES
from tests.architecture.tree import ROOT

DOCS = ROOT / "docs"
_FILE = re.compile(r"`((?:stages|dialects|kernels|lowering|foldline|tests)/[\w/]+\.py)`")


def _page() -> str:
    result = CliRunner().invoke(root, ["passes", "--markdown"])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_page_of_passes_is_current() -> None:
    message = "run foldline passes --markdown > docs/passes.md"
    assert (DOCS / "passes.md").read_text() == _page(), message


def test_the_page_of_options_is_current() -> None:
    result = CliRunner().invoke(root, ["options", "--markdown"])
    message = "run foldline options --markdown > docs/options.md"
    assert (DOCS / "options.md").read_text() == result.stdout, message
    assert all(f"| `{key}` |" in result.stdout for key in OPTIONS)
    assert all(f"| `--{name}" in result.stdout for name in DEBUG_NAMES)


def test_the_page_names_every_pass_and_stage() -> None:
    page = _page()
    assert all(page.count(f"\n| `{name}`") == 1 for name in PASSES)
    assert re.findall(r"^### \d\. (\w+)$", page, re.MULTILINE) == [s.name for s in PIPELINE]
    reasons = [placed.reason for s in PIPELINE for step in s.steps for placed in step.placed]
    assert all(reason in page for reason in reasons)


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.name)
def test_what_pages_name_exists(page: Path) -> None:
    """Files, and commands of the command line."""
    text = page.read_text()
    for name in re.findall(
        r"`((?:stages|dialects|kernels|lowering|foldline|tests)/[\w/]+\.py)`", text
    ):
        assert (ROOT / name).is_file(), name
    for name in re.findall(r"`foldline ([a-z]+)\b", text):
        assert name in root.commands, name
