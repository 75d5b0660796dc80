"""`foldline doctor`: what computes on this machine, and whether it computes right."""

from __future__ import annotations

from dataclasses import asdict
from itertools import groupby

import click

from foldline.cli.flags import json_flag
from foldline.cli.output import print_json, print_table, progress

FAULTY = 1


@click.command("doctor")
@click.option("--no-self-test", is_flag=True, help="Do not compile and run the test models.")
@json_flag
@click.pass_context
def doctor_command(ctx: click.Context, no_self_test: bool, as_json: bool) -> None:
    """Show versions, BLAS, processor, kernels and engines, test them; exit with 1 if one fails."""
    from foldline.workbench.doctor import examine

    with progress("examining"):
        found = examine(self_tests=not no_self_test)
    faults = [finding for finding in found if finding.status == "fault"]
    if as_json:
        print_json({"healthy": not faults, "findings": [asdict(finding) for finding in found]})
    else:
        for group, findings in groupby(found, key=lambda finding: finding.group):
            click.echo(f"{group}:")
            rows = [(f.name, f.value, f.status, f.advice) for f in findings]
            print_table(group, ("what", "found", "status", "what to do"), rows, err=False)
            click.echo()
        click.echo(
            f"{len(faults)} {'fault' if len(faults) == 1 else 'faults'}"
            if faults
            else "all is well"
        )
    ctx.exit(FAULTY if faults else 0)
