"""The page on passes does what it says: its code runs, and so do the tests in it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from foldline.stages.pass_base import NodePass
from foldline.support.passes import PASSES
from tests.architecture.pages import blocks, run_code

PAGE = "writing-a-pass.md"
NAMES = re.findall(r"^def (test_\w+)", "\n".join(blocks(PAGE, "python")), re.MULTILINE)


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names of the page, its row in the table."""
    row: dict[str, Any] = {}
    exec(blocks(PAGE, "python")[0], row)
    monkeypatch.setitem(PASSES, row["ROW"].name, row["ROW"])
    return run_code(PAGE)


@pytest.mark.parametrize("name", NAMES)
def test_the_tests_of_the_page_hold(page: dict[str, Any], name: str) -> None:
    test: Callable[[], None] = page[name]
    test()


def test_file_class_pass_and_row_bear_one_name(page: dict[str, Any]) -> None:
    made: NodePass = page["PASS"]
    assert made.name == made.INFO.name == "drop-double-negation"
    assert type(made).__name__ == "DropDoubleNegation"
    assert made.INFO == page["ROW"]
    assert NAMES == ["test_it_applies", "test_it_declines", "test_values_stay"]
