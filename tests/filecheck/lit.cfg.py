"""So that `lit tests/filecheck` runs the same files that pytest does."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from lit.formats import ShTest

config: Any = globals()["config"]  # lit puts it there
config.name = "foldline"
config.test_format = ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.environment["PYTHONPATH"] = str(Path(__file__).resolve().parents[2])
config.substitutions = [
    ("foldline-opt", f"{sys.executable} -m foldline.cli.opt"),
    ("filecheck", f"{sys.executable} -m filecheck"),
]
