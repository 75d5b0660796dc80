"""`foldline step`: go through a compile by hand."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foldline.cli.flags import json_flag, option_flags, options_said
from foldline.cli.output import model_source, print_json, progress
from foldline.support.errors import InvalidArgumentError

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completer

    from foldline.workbench.console import Console
    from foldline.workbench.stepper import Stepper

PROMPT = "(foldline) "


@click.command("step")
@click.argument("model", required=False)
@click.option("--script", metavar="FILE", help="Read commands from a file (- for a pipe).")
@click.option("--resume", metavar="FOLDER", help="Go on from what `save` wrote.")
@click.option(
    "--rules",
    multiple=True,
    metavar="FILE|MODULE",
    help="Rules to run as well: a .py file, which is run, a .yaml file, or a module.",
)
@json_flag
@option_flags
def step_command(
    model: str | None,
    script: str | None,
    resume: str | None,
    rules: tuple[str, ...],
    as_json: bool,
) -> None:
    """Step through the compile of MODEL: passes, changes, breakpoints, why, undo.

    `help` lists the commands. A script's commands are shown with their answers; with --json a line
    of JSON each: `{"command": …, "answer": [lines]}`.
    """
    from foldline.workbench.console import Console

    if (model is None) == (resume is None):
        raise click.UsageError("give MODEL, or --resume FOLDER")
    console = Console(_stepper(model, resume, rules), _read_inputs)
    if as_json:
        _follow(console, _script_lines(script), _as_json)
        return
    click.echo(console.where())
    if script is not None or not _is_terminal():
        _follow(console, _script_lines(script), _as_typed)
    else:
        _converse(console)


def _is_terminal() -> bool:
    return sys.stdin.isatty()


def _stepper(model: str | None, resume: str | None, rules: tuple[str, ...]) -> Stepper:
    from foldline.rules import chosen
    from foldline.workbench import saved_steps
    from foldline.workbench.stepper import Stepper

    loaded = tuple(chosen(rules, ())) if rules else ()
    if resume is not None:
        return saved_steps.load(Path(resume), loaded)
    assert model is not None, "one of the two is given"
    with progress(f"reading {model}"):
        return Stepper.of(model_source(model), options_said(), loaded)


def _read_inputs(path: str) -> Mapping[str, Any]:
    from foldline.cli.arrays import load_npz

    return load_npz(path)


def _script_lines(script: str | None) -> Iterator[str]:
    if script in (None, "-"):
        yield from sys.stdin
        return
    try:
        yield from Path(script).read_text().splitlines()
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(f"'{script}' is no text: {error}") from error


def _follow(console: Console, lines: Iterable[str], show: Callable[[str, list[str]], None]) -> None:
    """Execute commands, and show each with its answer."""
    for line in lines:
        if line.strip():
            show(line.strip(), _answered(console, line))
        if console.is_over:
            return


def _as_typed(command: str, answer: list[str]) -> None:
    for text in (f"{PROMPT}{command}", *answer):
        click.echo(text)


def _as_json(command: str, answer: list[str]) -> None:
    print_json({"command": command, "answer": answer})


def _converse(console: Console) -> None:
    """Prompt for commands, with history and completion, until the end of input."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import FileHistory

    session: PromptSession[str] = PromptSession(
        history=FileHistory(str(_history_file())), completer=_completer(console)
    )
    while not console.is_over:
        try:
            for text in _answered(console, session.prompt(PROMPT)):
                click.echo(text)
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


def _completer(console: Console) -> Completer:
    from prompt_toolkit.completion import Completer, Completion

    class Words(Completer):
        """Completes commands and the names of what is there now."""

        def get_completions(self, document: Any, complete_event: Any) -> Iterator[Completion]:
            begun: str = document.text_before_cursor
            for word in console.words(begun):
                yield Completion(word, -len(begun.rpartition(" ")[2]))

    return Words()


def _answered(console: Console, line: str) -> list[str]:
    with progress(line):
        return list(console.execute(line))


def _history_file() -> Path:
    """Where the lines of earlier sessions are kept: FOLDLINE_HISTORY, else the user's folder."""
    chosen = os.environ.get("FOLDLINE_HISTORY")
    file = Path(chosen or Path(click.get_app_dir("foldline")) / "step-history")
    file.parent.mkdir(parents=True, exist_ok=True)
    return file
