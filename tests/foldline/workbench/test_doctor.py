"""The doctor: what it looks at, what is a fault, and what is said to do about it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from foldline.cli.root import root
from foldline.kernels import blas
from foldline.workbench import doctor
from foldline.workbench.doctor import Finding, examine

GROUPS = ["environment", "packages", "blas", "cpu", "kernels", "engines", "exact mode"]


def found(group: str, name: str, findings: list[Finding] | None = None) -> Finding:
    (one,) = (
        f for f in findings or examine(self_tests=False) if (f.group, f.name) == (group, name)
    )
    return one


def test_everything_is_looked_at() -> None:
    findings = examine(self_tests=False)
    assert list(dict.fromkeys(f.group for f in findings)) == GROUPS
    assert not [f for f in findings if f.status == "fault"]
    assert found("kernels", "exact", findings).value.endswith("operators")
    assert found("engines", "host", findings).status == "ok"
    assert all(f.advice for f in findings if f.status != "ok")


def test_a_missing_package_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    right = doctor.version_of
    monkeypatch.setattr(
        doctor, "version_of", lambda p: "not installed" if p in ("xdsl", "pillow") else right(p)
    )
    needed, optional = found("packages", "xdsl"), found("packages", "pillow")
    assert needed.status == "fault"
    assert needed.advice.startswith("pip install xdsl")
    assert optional.status == "note"
    assert "foldline[image]" in optional.advice


def test_an_engine_that_cannot_be_loaded_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = doctor.EntryPoint("broken", "foldline.nowhere:Engine", doctor.GROUP)
    monkeypatch.setattr(doctor, "entry_points", lambda group: [entry])
    finding = found("engines", "broken")
    assert finding.status == "fault"
    assert "nowhere" in finding.advice


def test_a_blas_that_cannot_be_limited_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert blas.libraries
    monkeypatch.setattr(doctor, "libraries", lambda: ())
    finding = found("blas", "limit")
    assert finding.status == "note"
    assert "OPENBLAS_NUM_THREADS" in finding.advice


def test_the_slow_formulation_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "einsum_is_exact", lambda dtype: False)
    assert found("exact mode", "float32 products").status == "note"


def test_variables_that_change_what_is_done_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert found("environment", "OMP_NUM_THREADS").value == "3"


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(root, ["doctor", *arguments])
    return result.exit_code, result.output


def test_command_on_a_sound_machine() -> None:
    code, text = run()
    assert code == 0, text
    assert "all is well" in text
    assert "control flow" in text
    code, text = run("--json", "--no-self-test")
    document: dict[str, Any] = json.loads(text)
    assert code == 0
    assert document["healthy"] is True
    assert {row["group"] for row in document["findings"]} == set(GROUPS)


def test_command_where_a_test_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "self_test", lambda: [("convolution", "'y' is 1, expected 2")])
    code, text = run()
    assert code == 1
    assert "1 fault\n" in text
    assert "'y' is 1, expected 2; reinstall" in text
    code, text = run("--json")
    assert code == 1
    assert json.loads(text)["healthy"] is False
