"""`foldline report`, and `compile --report`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result

from foldline.cli import root
from tests.foldline.workbench.reported import TEXT


@pytest.fixture(autouse=True)
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(onnx.parser.parse_model(TEXT), "model.onnx")


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(root, arguments)


def document(path: str) -> dict[str, Any]:
    text = Path(path).read_text("utf-8")
    match = re.search(r'id="data">(.*?)</script', text, re.DOTALL)
    assert match
    return json.loads(match[1])


def test_a_page_is_written_with_its_memory_plan() -> None:
    result = invoke("report", "model.onnx")
    assert (result.exit_code, result.output) == (0, "wrote report.html\n")
    found = document("report.html")
    assert found["title"] == "model.onnx"
    assert found["run"]["plan"]["arena_bytes"] > 0
    assert found["run"]["profile"] is None


def test_run_times_the_steps_on_the_given_inputs() -> None:
    np.save("x.npy", np.ones((5, 3, 8, 8), np.float32))
    result = invoke("report", "model.onnx", "-o", "a.html", "--run", "--input", "x=x.npy")
    assert result.exit_code == 0, result.output
    run = document("a.html")["run"]
    assert run["inputs"] == {"x": ["float32", 5, 3, 8, 8]}
    planned = [where for where, _ in run["plan"]["steps"]]
    assert run["profile"]["steps"]
    assert {where for where, _ in run["profile"]["steps"]} <= set(planned)


def test_options_are_those_of_compile() -> None:
    assert invoke("report", "model.onnx", "--oo.level", "O0").exit_code == 0
    found = document("report.html")
    computing = [row for row in found["stages"][-1]["rows"] if not found["nodes"][row][-1]]
    assert len(computing) == 5


def test_an_existing_page_is_replaced_by_force_only() -> None:
    Path("report.html").write_text("mine")
    result = invoke("report", "model.onnx")
    assert result.exit_code == 1
    assert "report.html: exists; --force replaces it" in result.stderr
    assert Path("report.html").read_text() == "mine"
    assert invoke("report", "model.onnx", "--force").exit_code == 0


def test_where_made_up_inputs_do_not_fit_the_page_says_why() -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[N] x, float[3] c) => (float[3] y) { y = Add(x, c) }
    """
    onnx.save(onnx.parser.parse_model(text), "model.onnx")
    assert invoke("report", "model.onnx").exit_code == 0
    assert "Add" in document("report.html")["run"]["why"]
    assert invoke("report", "model.onnx", "-o", "b.html", "--run").exit_code == 1
    assert not Path("b.html").exists()


def test_compile_writes_a_page_beside_the_model() -> None:
    result = invoke("compile", "model.onnx", "-o", "out.onnx", "--report", "page.html", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["page"] == "page.html"
    found = document("page.html")
    assert found["run"] is None
    assert len(found["remarks"]) == len(json.loads(result.stdout)["report"]["remarks"])
    assert Path("out.onnx").exists()
    again = invoke("compile", "model.onnx", "--report", "page.html")
    assert again.exit_code == 1
    assert "page.html: exists" in again.stderr
