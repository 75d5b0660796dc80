"""The `foldline` command, and the edge where exceptions become exit codes.

0 done · 1 the model or the request is wrong · 2 wrong usage · 3 an error of Foldline itself
"""

from __future__ import annotations

import signal
import sys
from typing import Any, NoReturn

import click

import foldline
from foldline.cli.bench import bench_command
from foldline.cli.bisect import bisect_command
from foldline.cli.check import check_command
from foldline.cli.compile import compile_command
from foldline.cli.crash import Crash, write_reproducer
from foldline.cli.diff import diff_command
from foldline.cli.doctor import doctor_command
from foldline.cli.gui import gui_command
from foldline.cli.listing import ops_command, options_command, passes_command
from foldline.cli.optimize import optimize_command
from foldline.cli.report import report_command
from foldline.cli.run import run_command
from foldline.cli.step import step_command
from foldline.support.errors import FoldlineError
from foldline.support.suggest import did_you_mean

REQUEST_IS_WRONG, INTERNAL_ERROR = 1, 3


class Root(click.Group):
    """A group that names the nearest command, and turns exceptions into messages."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or say which is near."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            ctx.fail(f"there is no command {name!r}{did_you_mean(name, self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run; a wrong request is a message, and only our own faults leave a reproducer."""
        arguments = extra.get("args") or (args[0] if args else None) or sys.argv[1:]
        try:
            return super().main(*args, **extra)
        except Crash as crash:
            _leave_reproducer(list(arguments), crash.error, crash)
        except FoldlineError as error:
            click.echo(f"Error: {error}", err=True)
            sys.exit(REQUEST_IS_WRONG)
        except OSError as error:
            name = f": {error.filename}" if error.filename else ""
            click.echo(f"Error: {error.strerror or error}{name}", err=True)
            sys.exit(REQUEST_IS_WRONG)
        except Exception as error:
            _leave_reproducer(list(arguments), error)


def _leave_reproducer(
    arguments: list[str], error: Exception, crash: Crash | None = None
) -> NoReturn:
    """Say what is wrong, and where it can be seen again; leave with the code for it."""
    is_internal = not isinstance(error, FoldlineError)
    kind = f"Internal error: {type(error).__name__}" if is_internal else "Error"
    click.echo(f"{kind}: {error}", err=True)
    folder = write_reproducer(arguments, error, crash)
    click.echo(f"What is needed to reproduce it is in {folder}", err=True)
    sys.exit(INTERNAL_ERROR if is_internal else REQUEST_IS_WRONG)


@click.group(cls=Root, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(foldline.__version__, prog_name="foldline")
def root() -> None:
    """Compile, optimise, check and run ONNX models, and see how."""


for _command in (
    compile_command,
    optimize_command,
    check_command,
    run_command,
    bench_command,
    step_command,
    diff_command,
    bisect_command,
    report_command,
    doctor_command,
    gui_command,
    passes_command,
    ops_command,
    options_command,
):
    root.add_command(_command)


def _terminated(number: int, frame: object) -> None:
    sys.exit(128 + number)


def main() -> None:
    """Entry point of the `foldline` script; being terminated is an exit that cleans up."""
    signal.signal(signal.SIGTERM, _terminated)
    root.main(prog_name="foldline")
