"""`foldline step`: go through a compile by hand."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foldline.cli.flags import option_flags, options_said
from foldline.cli.output import model_source, progress
from foldline.support.errors import InvalidArgumentError

if TYPE_CHECKING:
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
@option_flags
def step_command(
    model: str | None, script: str | None, resume: str | None, rules: tuple[str, ...]
) -> None:
    """Step through the compile of MODEL: passes, changes, breakpoints, why, undo.

    `help` lists the commands. A script's commands are shown with their answers.
    """
    from foldline.workbench.console import Console

    if (model is None) == (resume is None):
        raise click.UsageError("give MODEL, or --resume FOLDER")
    console = Console(_stepper(model, resume, rules), _read_inputs)
    click.echo(console.where())
    if script is not None or not sys.stdin.isatty():
        _follow(console, _script_lines(script))
    else:
        _converse(console)


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


def _follow(console: Console, lines: Iterable[str]) -> None:
    """Execute commands, each shown as if it had been typed."""
    for line in lines:
        if line.strip():
            click.echo(f"{PROMPT}{line.strip()}")
            _answer(console, line)
        if console.is_over:
            return


def _converse(console: Console) -> None:
    """Prompt for commands, with history and completion, until the end of input."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import Completer, Completion
    from prompt_toolkit.history import FileHistory

    class Words(Completer):
        """Completes commands and the names of what is there now."""

        def get_completions(self, document: Any, complete_event: Any) -> Iterator[Completion]:
            begun = document.get_word_before_cursor(WORD=True)
            for word in console.words():
                if begun and word.startswith(begun):
                    yield Completion(word, -len(begun))

    session: PromptSession[str] = PromptSession(
        history=FileHistory(str(_history_file())), completer=Words()
    )
    while not console.is_over:
        try:
            _answer(console, session.prompt(PROMPT))
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


def _answer(console: Console, line: str) -> None:
    for text in console.execute(line):
        click.echo(text)


def _history_file() -> Path:
    """Where the lines of earlier sessions are kept."""
    folder = Path(click.get_app_dir("foldline"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "step-history"
