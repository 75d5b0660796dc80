"""`foldline diff`: what is different between two models, node by node."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from foldline.cli.flags import json_flag
from foldline.cli.output import model_source, print_json, progress

if TYPE_CHECKING:
    from foldline.workbench.difference import Difference

DIFFERENT = 1


@click.command("diff")
@click.argument("a")
@click.argument("b")
@click.option("--all", "shows_all", is_flag=True, help="Also constants, and types that A lacks.")
@json_flag
@click.pass_context
def diff_command(ctx: click.Context, a: str, b: str, shows_all: bool, as_json: bool) -> None:
    """Compare the nodes of two models or dumps (.mlir) A and B; exit with 1 if they differ.

    A line that begins with - is of a node that only A has, and says what became of it; + is of one
    that only B has; ~ is of one that both have, and says what of it changed. Names alone are no
    difference.
    """
    if a == b == "-":
        raise click.UsageError("only one of the models can come from standard input")
    from foldline.workbench.difference import difference
    from foldline.workbench.reading import read_module

    with progress("comparing"):
        before, after = (read_module(model_source(model)) for model in (a, b))
        found = difference(before, after, inferred=shows_all)
        shown = found if shows_all else found.without_constants()
    if as_json:
        print_json(_document(shown))
    else:
        for line in (*shown.lines(), shown.summary()):
            click.echo(line)
    ctx.exit(DIFFERENT if found else 0)


def _document(found: Difference) -> dict[str, Any]:
    return {
        "same": found.same,
        "changed": [
            {"before": asdict(c.before), "after": asdict(c.after), "what": c.what}
            for c in found.changed
        ],
        "removed": [{"node": asdict(r.node), "fate": r.fate} for r in found.removed],
        "added": [asdict(node) for node in found.added],
    }
