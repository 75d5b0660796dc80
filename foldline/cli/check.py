"""`foldline check`: are two models equal?"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

import click

from foldline.cli.flags import json_flag
from foldline.cli.output import model_source, print_json, print_table, progress

if TYPE_CHECKING:
    from foldline.checking import CheckResult

DIFFERENT = 1


@click.command("check")
@click.argument("a")
@click.argument("b")
@click.option("--inputs", metavar="FILE.npz", help="Also compare on these inputs.")
@click.option("--rtol", type=float, help="Allowed error, relative to the largest value.")
@click.option("--seed", default=0, show_default=True, help="Of the random inputs.")
@json_flag
@click.pass_context
def check_command(
    ctx: click.Context,
    a: str,
    b: str,
    inputs: str | None,
    rtol: float | None,
    seed: int,
    as_json: bool,
) -> None:
    """Compare models A and B on random, edge and given inputs; exit with 1 if they differ.

    Without --rtol outputs must agree bit for bit (any NaN equals any other).
    """
    if a == b == "-":
        raise click.UsageError("only one of the models can come from standard input")
    from foldline.checking import check
    from foldline.cli.arrays import load_npz

    given = load_npz(inputs) if inputs else None
    with progress("comparing"):
        result = check(model_source(a), model_source(b), inputs=given, rtol=rtol, seed=seed)
    if as_json:
        print_json(result_json(result))
    else:
        print_result(result, err=False)
    ctx.exit(0 if result.equal else DIFFERENT)


def result_json(result: CheckResult) -> dict[str, Any]:
    """A result as plain data; an error that is not finite becomes null."""
    cases = [
        {**vars(case), "max_error": case.max_error if isfinite(case.max_error) else None}
        for case in result.cases
    ]
    return {"equal": result.equal, "cases": cases}


def print_result(result: CheckResult, err: bool) -> None:
    """A result as a table, and the verdict."""
    rows = (
        (case.name, case.equal, case.output or "-", f"{case.max_error:.3g}", case.message)
        for case in result.cases
    )
    print_table("Comparison", ("inputs", "equal", "output", "error", "what differs"), rows, err)
    click.echo("equal" if result.equal else "different", err=err)
