"""The session in docs/stepping.md, replayed: each command is run, each answer is equal."""

from __future__ import annotations

import re

from click.testing import CliRunner

from foldline.cli import root
from foldline.workbench.commands import COMMANDS
from tests.architecture.stepping_page import MODEL, PAGE, replayed
from tests.zoo.light_models import FOLDER


def test_the_session_is_what_the_commands_say() -> None:
    page = PAGE.read_text()
    message = "run python -m tests.architecture.stepping_page"
    assert replayed(page).splitlines() == page.splitlines(), message


def test_a_changed_answer_is_seen() -> None:
    page = f"```text\n$ foldline step {MODEL}\n(foldline) next\n[2] before something else\n```\n"
    assert replayed(page).splitlines() == [
        "```text",
        f"$ foldline step {MODEL}",
        "[1] the model as imported; 446 nodes",
        "(foldline) next",
        "[2] before prepare/protect-quantisation; 446 nodes",
        "```",
    ]


def test_the_page_explains_every_command_and_no_other() -> None:
    rows = re.findall(r"^\| `(\w+)", PAGE.read_text(), re.MULTILINE)
    assert rows == [command.names[0] for command in COMMANDS]


def test_the_page_says_where_its_model_is() -> None:
    assert f"onnx/backend/test/data/light/{MODEL}" in PAGE.read_text()
    assert (FOLDER / MODEL).is_file()
    assert CliRunner().invoke(root, ["step", "--help"]).exit_code == 0
