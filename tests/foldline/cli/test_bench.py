"""`foldline bench` times what it is asked to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest
from click.testing import CliRunner

from foldline.cli import root

MODEL = """<ir_version: 10, opset_import: ["" : 20]>
g (float[N, 4] x) => (float[N, 4] y) { a = Relu(x) b = Identity(a) y = Neg(b) }"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(MODEL), file)
    return str(file)


def test_a_row_for_each_level_and_number_of_threads(path: str) -> None:
    words = ["bench", path, "--levels", "O0,O1", "--threads-each", "1,2", "--seconds", "0"]
    result = CliRunner().invoke(root, [*words, "--json"])
    rows: list[dict[str, Any]] = json.loads(result.stdout)
    assert [(row["level"], row["threads"]) for row in rows] == [
        ("O0", 1),
        ("O0", 2),
        ("O1", 1),
        ("O1", 2),
    ]
    assert rows[-1]["nodes"] == 2
    assert all(0 < row["best"] <= row["median"] for row in rows)
    assert all(row["runs"] == 3 for row in rows)
    table = CliRunner().invoke(root, words).stdout.splitlines()
    assert table[0].split()[:3] == ["model", "level", "threads"]
    assert len(table) == 5


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--levels", "O9"], "'O9' is none of O0, O1, O2, O3"),
        (["--threads-each", "0"], "'0' is no number from 1 on"),
    ],
)
def test_what_is_not_known_is_refused(path: str, words: list[str], message: str) -> None:
    result = CliRunner().invoke(root, ["bench", path, *words])
    assert result.exit_code == 2
    assert message in result.output
