"""`foldline bisect`: the pass, and the change, that breaks a model."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foldline.cli.flags import json_flag, option_flags, options_said
from foldline.cli.output import model_source, print_json, progress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xdsl.dialects.builtin import ModuleOp

    from foldline.workbench.bisect import Finding
    from foldline.workbench.reproducer import Trial

FOUND = 1


@click.command("bisect")
@click.argument("model")
@click.option("--inputs", metavar="FILE.npz", help="Also compare on these inputs.")
@click.option("--rtol", type=float, help="Error that is no fault, relative to the largest value.")
@click.option("-o", "--output", metavar="FOLDER", help="Write a small model that breaks there.")
@click.option(
    "--rules",
    multiple=True,
    metavar="FILE|MODULE",
    help="Rules to run as well: a .py file, which is run, a .yaml file, or a module.",
)
@json_flag
@option_flags
@click.pass_context
def bisect_command(
    ctx: click.Context,
    model: str,
    inputs: str | None,
    rtol: float | None,
    output: str | None,
    rules: tuple[str, ...],
    as_json: bool,
) -> None:
    """Find the first pass, and the first change it makes, that changes outputs of MODEL.

    Exits with 1 if there is one. Without --rtol errors up to 1e-3 are taken for rounding, and in
    quantised models errors up to 5e-2.
    """
    from foldline.cli.arrays import load_npz
    from foldline.rules import chosen
    from foldline.workbench.bisect import find_change
    from foldline.workbench.comparison import Comparison
    from foldline.workbench.reproducer import Trial, refuse_full
    from foldline.workbench.stepper import Stepper

    if output is not None:
        refuse_full(Path(output))
    trial = Trial(options_said(), tuple(chosen(rules, ())) if rules else (), rtol)
    with progress("looking for the change"):
        stepper = Stepper.of(model_source(model), trial.options, trial.rules)
        start = stepper.here.ahead
        mode = str(start.run.context.options["mode"])
        given = load_npz(inputs) if inputs else None
        compare = Comparison(stepper.original, mode, given, rtol)
        finding = find_change(start, compare)
    nodes = None
    if finding is not None and output is not None:
        feed = compare.feed(finding.case)
        nodes = _write(Path(output), finding, stepper.original, feed, trial, rules)
    if as_json:
        print_json(_document(finding) | ({} if output is None else {"nodes": nodes}))
    else:
        click.echo(_sentence(finding, output, nodes))
    ctx.exit(0 if finding is None else FOUND)


def _write(
    folder: Path,
    finding: Finding,
    original: ModuleOp,
    feed: Mapping[str, Any],
    trial: Trial,
    rules: tuple[str, ...],
) -> int | None:
    """Write a reproducer; how many nodes its model has, None where no part breaks by itself."""
    from foldline.workbench.reproducer import smallest, write_folder

    with progress("making the model small"):
        small = smallest(finding, original, feed, trial)
    if small is not None:
        write_folder(folder, small, finding, trial, rules)
    return None if small is None else small.nodes


def _sentence(finding: Finding | None, output: str | None, nodes: int | None) -> str:
    if finding is None:
        return "no pass changes what the model computes"
    if output is None:
        return str(finding)
    if nodes is None:
        return f"{finding}\nno part of the model breaks by itself; nothing is written"
    return f"{finding}\nwrote {output}: {nodes} {'nodes' if nodes > 1 else 'node'} left"


def _document(finding: Finding | None) -> dict[str, Any]:
    if finding is None:
        return {"found": False}
    change = None if finding.change is None else asdict(finding.change)
    if change is not None:
        change |= {"touched": sorted(change["touched"]), "op_types": sorted(change["op_types"])}
    return {
        "found": True,
        "pass": finding.culprit,
        "node": finding.node,
        "change": change,
        "inputs": finding.case.name,
        "output": finding.case.output,
        "message": finding.case.message,
        "raises": None if finding.error is None else type(finding.error).__name__,
    }
