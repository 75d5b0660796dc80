"""How large reports are, and how long a browser takes to open and redraw them.

    python -m benchmarks.report_redraw [--nodes 10000] [--runs 5]

Of ppocrv4_det and of two generated graphs, in headless Chromium (Debian: chromium,
chromium-driver). Times are by `performance.now()` in the page, from the call until the frame
after it has been drawn: medians, in milliseconds.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import onnx
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

import foldline
from benchmarks.common import table, versions, write_results
from benchmarks.scale_models import BUILDERS
from benchmarks.zoo import model_path
from foldline.workbench.page import document, write_page
from foldline.workbench.recorder import StageRecorder

GENERATED = ("mixed", "chain")
ACTIONS = {
    "stage": "report.select(number % report.model.stages.length, 'after')",
    "side": "report.select(report.stage || 1, number % 2 ? 'before' : 'after')",
    "open": """
        const closed = report.picture.cy.nodes('.region');
        if (closed.length) closed[0].emit('tap'); else report.picture.collapseAll();
    """,
    "find": """
        const nodes = report.view.nodes;
        report.picture.reveal(nodes[(number * 7919) % nodes.length]);
    """,
}
"""What a reader does; `number` counts the runs."""

TIMED = """
    const [number, done] = arguments, begin = performance.now();
    {action};
    requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - begin)));
"""
LOADED = """
    const [timing] = performance.getEntriesByType('navigation');
    return timing.loadEventEnd - timing.startTime;
"""


def main() -> int:
    """Write, open and redraw the reports; print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    if shutil.which("chromedriver") is None:
        print("chromedriver is not installed", file=sys.stderr)
        return 1
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, _browser() as chrome:
        for name, model in _models(arguments.nodes):
            path = Path(folder) / f"{name}.html"
            _write(path, name, model)
            rows.append(_measured(chrome, path, arguments.runs))
    headers = ("report", "MB", "load", *ACTIONS)
    print(table(headers, [[str(row[header]) for header in headers] for row in rows]))
    write_results("report_redraw", {"versions": versions(), "rows": rows})
    return 0


def _models(nodes: int) -> Iterator[tuple[str, onnx.ModelProto]]:
    if model_path("ppocrv4_det").is_file():
        yield "ppocrv4_det", onnx.load(model_path("ppocrv4_det"))
    for builder in GENERATED:
        yield builder, BUILDERS[builder](nodes)


def _write(path: Path, name: str, model: onnx.ModelProto) -> None:
    recorder = StageRecorder()
    compiled = foldline.compile(model, observers=[recorder])
    write_page(path, document(name, recorder, compiled.report))


@contextmanager
def _browser() -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1400,900"):
        options.add_argument(flag)
    chrome = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        yield chrome
    finally:
        chrome.quit()


def _measured(chrome: webdriver.Chrome, path: Path, runs: int) -> dict[str, Any]:
    chrome.get(path.as_uri())
    row: dict[str, Any] = {"report": path.stem, "MB": round(path.stat().st_size / 1e6, 2)}
    row["load"] = round(chrome.execute_script(LOADED))
    for action, script in ACTIONS.items():
        timed = TIMED.replace("{action}", script)
        taken = [chrome.execute_async_script(timed, number) for number in range(runs)]
        row[action] = round(statistics.median(taken))
    return row


if __name__ == "__main__":
    sys.exit(main())
