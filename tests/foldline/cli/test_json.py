"""Every command speaks JSON where a machine might read what it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest
from click.testing import CliRunner

from foldline.cli.root import root
from tests.foldline.test_compiler import foldable

FOR_PEOPLE = {"gui"}
"""A terminal interface says nothing that a machine could read."""

USES: dict[str, tuple[str, ...]] = {
    "compile": ("MODEL",),
    "optimize": ("MODEL", "OUT"),
    "check": ("MODEL", "MODEL"),
    "run": ("MODEL", "--random"),
    "bench": ("MODEL", "--seconds", "0"),
    "step": ("MODEL", "--script", "SCRIPT"),
    "diff": ("MODEL", "MODEL"),
    "bisect": ("MODEL",),
    "report": ("MODEL", "-o", "PAGE"),
    "doctor": ("--no-self-test",),
    "passes": (),
    "ops": (),
    "options": (),
}
"""How each is used; names in capitals stand for files."""


def test_every_command_has_the_flag_and_is_here() -> None:
    spoken = {
        name
        for name, command in root.commands.items()
        if any("--json" in parameter.opts for parameter in command.params)
    }
    assert spoken == root.commands.keys() - FOR_PEOPLE
    assert spoken == USES.keys()


@pytest.mark.parametrize("name", USES)
def test_what_it_prints_is_json(name: str, tmp_path: Path) -> None:
    files = {
        "MODEL": tmp_path / "model.onnx",
        "OUT": tmp_path / "out.onnx",
        "PAGE": tmp_path / "page.html",
        "SCRIPT": tmp_path / "script",
    }
    onnx.save(foldable(), files["MODEL"])
    files["SCRIPT"].write_text("help\n\nquit\n")
    arguments = [str(files.get(word, word)) for word in USES[name]]
    result = CliRunner().invoke(root, [name, *arguments, "--json"])
    assert result.exit_code == 0, result.output
    documents: list[Any] = [json.loads(line) for line in result.stdout.splitlines()]
    assert all(documents)
    if name == "step":
        assert [document["command"] for document in documents] == ["help", "quit"]
    else:
        assert len(documents) == 1
