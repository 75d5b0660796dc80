"""The code on pages of docs/, block by block."""

from __future__ import annotations

import re
from typing import Any

from tests.architecture.tree import ROOT


def blocks(page: str, language: str) -> list[str]:
    """The fenced blocks of a language, in order."""
    text = (ROOT / "docs" / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def run_code(page: str, names: dict[str, Any] | None = None) -> dict[str, Any]:
    """Run the Python blocks of a page in one namespace, which is returned."""
    names = {"__name__": "page"} if names is None else names
    for block in blocks(page, "python"):
        exec(compile(block, page, "exec", dont_inherit=True), names)
    return names
