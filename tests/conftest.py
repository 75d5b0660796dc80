"""What holds for every test: options come from the test, not from who runs it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from foldline.support.debug_options import VARIABLE
from foldline.support.options import USER_FILE_VARIABLE, set_options
from tests.conformance.table import pytest_runtest_logreport, pytest_terminal_summary

__all__ = ["pytest_runtest_logreport", "pytest_terminal_summary"]


@pytest.fixture(autouse=True)
def _own_options(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(USER_FILE_VARIABLE, "")
    monkeypatch.delenv(VARIABLE, raising=False)
    yield
    set_options({})
