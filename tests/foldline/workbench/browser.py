"""A headless Chromium for the tests of the report, and what its pictures show."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from foldline.kernels.registry import Array

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--force-device-scale-factor=1",
    "--window-size=1400,900",
)
WAIT_SECONDS = 120
"""For scripts; far more than they need, for the machine may be busy."""


@contextmanager
def browser() -> Iterator[webdriver.Chrome]:
    """A browser of its own; skips where there is none."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("no chromium with chromedriver here (Debian: chromium, chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    opened = webdriver.Chrome(options=options, service=Service(driver))
    try:
        opened.set_script_timeout(WAIT_SECONDS)
        yield opened
    finally:
        opened.quit()


class Opened:
    """A report in a browser."""

    def __init__(self, chrome: webdriver.Chrome, path: Path):
        self.chrome = chrome
        chrome.get(path.as_uri())

    def js(self, script: str, *arguments: Any) -> Any:
        """What a script returns; `report` is the page's object."""
        return self.chrome.execute_script(script, *arguments)

    def shown(self) -> set[str]:
        """Labels of the elements of the picture, lines joined by a blank."""
        labels = self.js("return report.picture.cy.nodes().map((node) => node.data('label'))")
        return {label.replace("\n", " ") for label in labels}

    def names(self) -> set[str]:
        """Names of the nodes of the stage and side that are chosen, constants left out."""
        return set(
            self.js("return report.view.nodes.filter((n) => !n.isConstant).map((n) => n.label)")
        )

    def settle(self) -> None:
        """Wait until what was asked for is drawn: two frames."""
        self.chrome.execute_async_script(
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done));"
        )

    def errors(self) -> list[str]:
        """What scripts complained of, warnings too."""
        return [entry["message"] for entry in self.chrome.get_log("browser")]

    def pixels(self) -> Array:
        """A screenshot: height, width, RGB."""
        self.settle()
        image = Image.open(BytesIO(self.chrome.get_screenshot_as_png()))
        return np.asarray(image.convert("RGB"))

    def color(self, name: str) -> tuple[int, int, int]:
        """A colour of the style sheet."""
        text: str = self.js("return color(arguments[0])", name).removeprefix("#")
        return int(text[:2], 16), int(text[2:4], 16), int(text[4:6], 16)

    def area(self, identifier: str) -> Array:
        """The pixels of one element."""
        box = self.js(
            "const b = document.getElementById(arguments[0]).getBoundingClientRect();"
            "return [b.top, b.bottom, b.left, b.right].map(Math.round)",
            identifier,
        )
        top, bottom, left, right = box
        return self.pixels()[top:bottom, left:right]


def count(pixels: Array, color: tuple[int, int, int]) -> int:
    """How many pixels have a colour, or one that cannot be told from it."""
    return int((np.abs(pixels.astype(int) - color).max(axis=-1) <= 3).sum())
