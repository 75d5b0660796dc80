"""Each script in examples/ runs in an empty folder and says what it should."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT

EXAMPLES = ROOT / "examples"
SAID = {
    "optimise_and_check": ["equal: True", "[[8.0, 12.0], [8.0, 12.0], [8.0, 12.0]]"],
    "dynamic_shapes": [
        "open: ['Reshape', 'Tanh']",
        "0 -> (0, 3, 2)",
        "pinned: [2, 6]",
        "refused: ",
    ],
    "custom_rule": ["found: ['Relu', 'Relu']", "scale-last: 3 matches, ", "near: "],
    "stepping": ["is about to change 'product'", "same as the original here: True", "it is gone: "],
    "observing": ["prepare: ", "fusion: "],
    "folding_engine": [
        "products: MatMul: 1 computed",
        "host: Neg: 1 computed",
        "['Constant', 'Add']",
    ],
    "exact_bits": ["O0 1 ", "O3 3 ", "fast mode for comparison: "],
}


@pytest.mark.parametrize("name", SAID)
def test_it_runs(name: str, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    for text in SAID[name]:
        assert text in result.stdout


def test_every_script_is_listed_and_run() -> None:
    files = {path.stem for path in EXAMPLES.glob("*.py")}
    listed = re.findall(r"^\| `(\w+)\.py`", (EXAMPLES / "README.md").read_text(), re.MULTILINE)
    assert files == set(SAID) == set(listed)
