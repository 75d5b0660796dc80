"""The option `--oo-level` and the marks of the ONNX backend suite.

`slow` marks what is not in the fast cover of features, `xfail` what known_failures.txt lists, and
in exact mode known_failures_exact.txt too. The option is there when the command line names this
folder:

    pytest tests/conformance --oo-level O1
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx.reference
import pytest

from tests.conformance import suite
from tests.conformance.table import TEST_ID

KNOWN_FAILURES = Path(__file__).parent / "known_failures.txt"
KNOWN_IN_EXACT_MODE = Path(__file__).parent / "known_failures_exact.txt"
_VARIANT_ID = re.compile(r"/test_variants.py::\w+\[(?P<case>test_\w+)\]$")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let one choose the level of the full run."""
    parser.addoption("--oo-level", default=suite.GuardedBackend.level, help="O0, O1, O2 or O3")


@pytest.fixture(autouse=True, scope="session")
def _level(pytestconfig: pytest.Config) -> None:
    default = suite.GuardedBackend.level
    suite.GuardedBackend.level = pytestconfig.getoption("--oo-level", default)


@pytest.fixture(autouse=True)
def _no_reference_evaluator(monkeypatch: pytest.MonkeyPatch) -> None:
    """The node tests are made by then, so only the backend under test could still call it."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the backend under test called onnx.reference.ReferenceEvaluator")

    monkeypatch.setattr(onnx.reference.ReferenceEvaluator, "__init__", refuse)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark before `-m` selects."""
    everywhere, exact = (list(_known(f)) for f in (KNOWN_FAILURES, KNOWN_IN_EXACT_MODE))
    for item in items:
        _mark_variant(item)
        if not (test := TEST_ID.search(item.nodeid)):
            continue
        name = item.name
        is_node = test["category"] == "NodeModel"
        is_exact = "test_onnx_conformance_exact.py" in item.nodeid
        is_covered = is_node and name not in suite.fast_names()
        if is_exact or is_covered or test["category"] == "RealModel":
            item.add_marker(pytest.mark.slow)
        for pattern, reason in (*everywhere, *(exact if is_exact else ())):
            if pattern.search(name):
                item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


def _mark_variant(item: pytest.Item) -> None:
    """In other shapes too, a test outside the cover of features is slow."""
    variant = _VARIANT_ID.search(item.nodeid)
    if variant and f"{variant['case']}_cpu" not in suite.fast_names():
        item.add_marker(pytest.mark.slow)


def _known(file: Path) -> Iterator[tuple[re.Pattern[str], str]]:
    for line in file.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            pattern, reason = line.split(maxsplit=1)
            yield re.compile(pattern), reason
