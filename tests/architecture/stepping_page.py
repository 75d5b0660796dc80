"""The recorded session of docs/stepping.md: its commands, and what they answer today.

python -m tests.architecture.stepping_page     writes the answers into the page
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from click.testing import CliRunner

from foldline.cli import root
from foldline.cli.step import PROMPT
from tests.architecture.tree import ROOT
from tests.zoo.light_models import FOLDER

PAGE = ROOT / "docs" / "stepping.md"
MODEL = "light_shufflenet.onnx"
_BLOCK = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_STARTS = f"$ foldline step {MODEL}\n"


def replayed(page: str) -> str:
    """The page with the answers that its commands give when run in order, as one session."""
    blocks = [block for block in _BLOCK.findall(page) if PROMPT in block]
    commands = [
        line.removeprefix(PROMPT)
        for block in blocks
        for line in block.splitlines()
        if line.startswith(PROMPT)
    ]
    head, *answers = _session(commands)
    waiting = iter(answers)
    return _BLOCK.sub(lambda block: _filled(block[1], head, waiting), page)


def _session(commands: list[str]) -> list[str]:
    """What the command says at first, and each command with its answer."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(FOLDER / MODEL, folder)
        script = Path(folder) / "script"
        script.write_text("\n".join(commands))
        arguments = ["step", str(Path(folder) / MODEL), "--script", str(script)]
        result = CliRunner().invoke(root, arguments)
    assert result.exit_code == 0, result.output
    return re.split(rf"^(?={re.escape(PROMPT)})", result.stdout, flags=re.MULTILINE)


def _filled(block: str, head: str, answers: Iterator[str]) -> str:
    if PROMPT not in block:
        return f"```text\n{block}```"
    text = _STARTS + head if block.startswith(_STARTS) else ""
    text += "".join(next(answers) for _ in range(block.count(PROMPT)))
    return f"```text\n{text}```"


if __name__ == "__main__":
    PAGE.write_text(replayed(PAGE.read_text()))
