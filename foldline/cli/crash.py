"""What a fault of Foldline itself leaves behind: a folder to see it again with.

command.txt, versions.txt, traceback.txt   always
state.mlir, original.mlir, tensors.npz …   before the step that failed: `foldline step --resume`
where.txt                                  the step and the node, and how to look
"""

from __future__ import annotations

import shlex
import tempfile
import traceback
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foldline.support.errors import FoldlineError, PassFailed, RuleFailed
from foldline.support.versions import version_lines
from foldline.workbench.caught import Caught

if TYPE_CHECKING:
    from foldline.stages.rewrite.transform import Transform


@dataclass
class Crash(Exception):
    """A compile failed by our own fault; carries what is needed to run it again."""

    error: Exception
    model: str | bytes
    options: Mapping[str, Any]
    rules: Sequence[Transform]


@contextmanager
def leaving_steps(
    model: str | bytes, options: Mapping[str, Any], rules: Sequence[Transform] = ()
) -> Generator[None]:
    """Around a compile: what fails in it by our own fault is raised as a Crash."""
    with Caught() as caught:
        yield
    error = caught.error
    if error is not None and _is_ours(error, rules):
        raise Crash(error, model, options, rules) from error
    if error is not None:
        raise error


def _is_ours(error: Exception, rules: Sequence[Transform]) -> bool:
    """Whether nobody else is to blame: not the model, the request, or a rule of the user."""
    names = {rule.name for rule in rules}
    if isinstance(error, RuleFailed):
        return error.transform not in names
    if isinstance(error, FoldlineError):
        return isinstance(error, PassFailed) and getattr(error, "culprit", None) not in names
    return not isinstance(error, OSError)


def write_reproducer(arguments: Sequence[str], error: Exception, crash: Crash | None) -> Path:
    """Write all that is known to a new folder."""
    folder = Path(tempfile.mkdtemp(prefix="foldline-reproducer-"))
    if crash is not None:
        _write_steps(folder, crash)
    command = shlex.join(["foldline", *arguments])
    (folder / "command.txt").write_text(f"cd {shlex.quote(str(Path.cwd()))}\n{command}\n")
    (folder / "traceback.txt").write_text("".join(traceback.format_exception(error)))
    (folder / "versions.txt").write_text("\n".join(version_lines()) + "\n")
    return folder


def _write_steps(folder: Path, crash: Crash) -> None:
    from foldline.workbench.crash import save_failed_step

    said: list[str] = []
    with Caught() as caught:  # the fault at hand must be told, whatever else is broken
        said = save_failed_step(folder, crash.error, crash.model, crash.options, crash.rules)
    if (error := caught.error) is not None:
        said = [f"the state before it cannot be written: {type(error).__name__}: {error}"]
    if said:
        (folder / "where.txt").write_text("\n".join(said) + "\n")
        if not (folder / "state.json").exists():
            click.echo(said[-1], err=True)
