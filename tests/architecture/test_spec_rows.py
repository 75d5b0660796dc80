"""Every row of a specification is cited by the name of a test, or of a case of one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT

FILE = Path(__file__).with_name("spec_rows.txt")
CITATION = re.compile(r"\bdef (test_\w+)|[\"' \[]((?:row_\d|A\d)\w*)")


def _runtime(row: str) -> str:
    if row[0].isalpha():
        return rf"_{row}_"
    kind = "row" if "." in row else "section"
    return rf"_{kind}_{row.replace('.', '_')}_"


def _rules(row: str) -> str:
    return rf"test_(\d+_)?(\w\d_)?{row}[abc]?_" if row[0].isalpha() else rf"test_{row}_"


FORMS: dict[str, Callable[[str], str]] = {
    "folding": lambda row: rf"(rows?|and)_{row}(?!_?\d)",
    "rules": _rules,
    "algebraic": lambda row: rf"(?<![a-zA-Z0-9])A0*{row}(?!\d)",
    "runtime": _runtime,
}
"""How a name cites a row of each list."""


def names() -> set[str]:
    """The names of all tests, and of the cases that cite a row."""
    found: set[str] = set()
    for file in (ROOT / "tests").rglob("test_*.py"):
        found.update(a or b for a, b in CITATION.findall(file.read_text()))
    return found


def rows(text: str) -> Iterator[tuple[str, str, str]]:
    """List, row and word of each demand; '' where any citation will do."""
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        which, first, *rest = line.split()
        if which == "runtime" and first[0].isdigit():
            yield from ((which, first, word) for word in rest)
        else:
            for part in (first, *rest):
                yield from ((which, row, "") for row in _spread(part))


def _spread(part: str) -> Iterator[str]:
    first, _, last = part.partition("..")
    letter = first.rstrip("0123456789")
    start = int(first[len(letter) :])
    end = int(last[len(letter) :]) if last else start
    yield from (f"{letter}{number}" for number in range(start, end + 1))


NAMES = names()


@pytest.mark.parametrize(("which", "row", "word"), list(rows(FILE.read_text())))
def test_a_row_is_cited(which: str, row: str, word: str) -> None:
    form = re.compile(FORMS[which](row))
    assert any(form.search(name) and word in name for name in NAMES)


def test_ranges_are_spread() -> None:
    assert list(rows("# no row\n\nrules s1..s3 7 f2")) == [
        ("rules", row, "") for row in ("s1", "s2", "s3", "7", "f2")
    ]
    assert list(rows("runtime 3.1 a b")) == [("runtime", "3.1", "a"), ("runtime", "3.1", "b")]


@pytest.mark.parametrize(
    ("which", "row", "name"),
    [
        ("folding", "3", "test_row_3_1_conv"),
        ("folding", "3", "test_row_31_and_38"),
        ("rules", "s1", "test_s10_more"),
        ("rules", "1", "test_14_an_empty_name"),
        ("algebraic", "6", "test_row_A60_foreign"),
        ("runtime", "3.1", "test_row_31_a_chain"),
        ("runtime", "t1", "test_t10_more"),
    ],
)
def test_other_rows_are_no_citation(which: str, row: str, name: str) -> None:
    assert not re.search(FORMS[which](row), name)
