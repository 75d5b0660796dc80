"""`foldline optimize`: the same compile as users of such tools spell it, and what it could do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from foldline.cli.capabilities import print_capabilities, print_findings, print_rewrites
from foldline.cli.checked import CheckedCommand
from foldline.cli.compile import Delivery, jobs_of, request_flags, run_jobs

SUFFIX = "_opt.onnx"


@click.command("optimize", cls=CheckedCommand)
@click.argument("source", metavar="IN", required=False)
@click.argument("target", metavar="OUT", required=False)
@click.option("-m", "--model", metavar="IN", help="The same as IN; OUT is IN_opt.onnx then.")
@click.option("-o", "--output", metavar="OUT", help="The same as OUT.")
@click.option("-l", "--list-capabilities", is_flag=True, help="List what can be turned on or off.")
@click.option("--list-rewrites", is_flag=True, help="List the rewrites and what they look for.")
@click.option(
    "--check-optim", is_flag=True, help="Say what optional passes would change; write nothing."
)
@click.option("-v", "--verbose", is_flag=True, help="With one of these: say more.")
@request_flags
def optimize_command(
    source: str | None,
    target: str | None,
    model: str | None,
    output: str | None,
    list_capabilities: bool,
    list_rewrites: bool,
    check_optim: bool,
    verbose: bool,
    config: str | None,
    rules: tuple[str, ...],
    **delivery: Any,
) -> None:
    """Write an optimised copy of the model IN to OUT (- for pipes)."""
    request = Delivery(**delivery)
    if list_capabilities or list_rewrites:
        if list_capabilities:
            print_capabilities(verbose, request.as_json)
        if list_rewrites:
            print_rewrites(verbose, request.as_json)
        return
    if model and source and not target and not output:
        source, target = None, source
    if (source and model) or (target and output):
        raise click.UsageError("a model is named both as argument and by flag")
    is_named = model is not None and model != "-"
    source, target = source or model, target or output
    if source and not target and is_named:
        target = str(Path(source).with_suffix("")) + SUFFIX
    if not source or not (target or check_optim):
        raise click.UsageError(f"missing {'OUT' if source else 'IN'}")
    jobs = jobs_of(source, target, config, rules)
    if check_optim:
        for job in jobs:
            print_findings(job, verbose, request.as_json)
    else:
        run_jobs(jobs, request)
