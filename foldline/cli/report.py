"""`foldline report`: a compile as one page to look at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foldline.cli.flags import json_flag, option_flags, options_said
from foldline.cli.output import model_source, print_json, progress
from foldline.support.errors import InvalidArgumentError, KernelFailed, UnsupportedOperator

if TYPE_CHECKING:
    from foldline.compiler import CompiledModel
    from foldline.workbench.recorder import StageRecorder


@click.command("report")
@click.argument("model")
@click.option(
    "-o", "--output", default="report.html", show_default=True, help="Where to write the page."
)
@click.option("--run", is_flag=True, help="Time each step of a run as well.")
@click.option("--input", "files", multiple=True, metavar="NAME=FILE.npy", help="Give an input.")
@click.option("--seed", default=0, show_default=True, help="Of the inputs that are made up.")
@click.option("--force", "--overwrite", is_flag=True, help="Replace an existing page.")
@click.option(
    "--rules",
    multiple=True,
    metavar="FILE|MODULE",
    help="Rules to run as well: a .py file, which is run, a .yaml file, or a module.",
)
@json_flag
@option_flags
def report_command(
    model: str,
    output: str,
    run: bool,
    files: tuple[str, ...],
    seed: int,
    force: bool,
    rules: tuple[str, ...],
    as_json: bool,
) -> None:
    """Compile MODEL (- for standard input) and write what happened as one HTML page.

    The model is run on the given inputs, made-up ones for the rest, for its memory plan.
    """
    from foldline.compiler import compile
    from foldline.rules import chosen
    from foldline.workbench.recorder import StageRecorder

    refuse_existing(output, force)
    recorder = StageRecorder()
    loaded = tuple(chosen(rules, ())) if rules else ()
    with progress(f"compiling {model}"):
        compiled = compile(
            model_source(model), options=options_said(), observers=[recorder], rules=loaded
        )
    with progress("running"):
        found = _run(compiled, files, seed, profile=run)
    write_report(output, model, recorder, compiled, found)
    if as_json:
        print_json({"model": model, "page": output, "report": compiled.report.to_json()})
    else:
        click.echo(f"wrote {output}")


def write_report(
    output: str,
    model: str,
    recorder: StageRecorder,
    compiled: CompiledModel,
    run: dict[str, Any] | None = None,
) -> None:
    """Write the page of a compile that `recorder` looked on."""
    from foldline.workbench.page import document, write_page

    title = "standard input" if model == "-" else Path(model).name
    with progress("drawing"):
        write_page(Path(output), document(title, recorder, compiled.report, run))


def refuse_existing(output: str, force: bool) -> None:
    """Before any work: a page that is there is replaced when asked only."""
    if Path(output).exists() and not force:
        raise InvalidArgumentError(f"{output}: exists; --force replaces it")


def _run(
    compiled: CompiledModel, files: tuple[str, ...], seed: int, *, profile: bool
) -> dict[str, Any]:
    """The memory plan and profile; where made-up inputs do not fit the model, why."""
    from foldline.cli.run import feed_of
    from foldline.workbench.measured import measured

    try:
        session = compiled.session()
        return measured(session, feed_of(session, files, seed), profile=profile)
    except (InvalidArgumentError, KernelFailed, UnsupportedOperator) as error:
        if profile or files:
            raise
        return {"why": str(error)}
