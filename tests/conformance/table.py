"""The closing table of the ONNX backend suite: hooks for the outermost conftest.

Workers run the tests, and the process that gathers their reports loads no conftest further in.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict

import onnx
import pytest

TEST_ID = re.compile(r"(?P<module>\w+)\.py::OnnxBackend(?P<category>\w+)Test::")
_OUTCOMES = ("passed", "failed", "xfailed", "skipped")
_counts: dict[str, Counter[str]] = defaultdict(Counter)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count outcomes by module and category."""
    if (test := TEST_ID.search(report.nodeid)) and (report.when == "call" or report.skipped):
        outcome = "xfailed" if hasattr(report, "wasxfail") else report.outcome
        module = test["module"].removeprefix("test_onnx_conformance").strip("_") or "full"
        for row in (f"{module} {test['category']}", f"{module} total"):
            _counts[row][outcome] += 1


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the counts."""
    if not _counts:
        return
    terminalreporter.section(f"ONNX backend suite, onnx {onnx.__version__}")
    terminalreporter.write_line(f"{'category':32}" + "".join(f"{name:>9}" for name in _OUTCOMES))
    for row, counts in sorted(_counts.items()):
        numbers = "".join(f"{counts[name]:>9}" for name in _OUTCOMES)
        terminalreporter.write_line(f"{row:32}{numbers}")
