"""The `foldline` command, and the edge where exceptions become exit codes.

0 done · 1 the model or the request is wrong · 2 wrong usage · 3 an error of Foldline itself
"""

from __future__ import annotations

import platform
import shlex
import sys
import tempfile
import traceback
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import click

import foldline
from foldline.cli.check import check_command
from foldline.cli.compile import compile_command
from foldline.cli.listing import ops_command, options_command, passes_command
from foldline.cli.optimize import optimize_command
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
        """Run; a wrong request is a message, and only our own errors leave a reproducer."""
        arguments = extra.get("args") or (args[0] if args else None) or sys.argv[1:]
        try:
            return super().main(*args, **extra)
        except FoldlineError as error:
            click.echo(f"Error: {error}", err=True)
            sys.exit(REQUEST_IS_WRONG)
        except OSError as error:
            name = f": {error.filename}" if error.filename else ""
            click.echo(f"Error: {error.strerror or error}{name}", err=True)
            sys.exit(REQUEST_IS_WRONG)
        except Exception as error:
            folder = write_reproducer(list(arguments))
            click.echo(f"Internal error: {type(error).__name__}: {error}", err=True)
            click.echo(f"What is needed to reproduce it is in {folder}", err=True)
            sys.exit(INTERNAL_ERROR)


def write_reproducer(arguments: list[str]) -> Path:
    """Write command line, versions and the traceback being handled to a new folder."""
    folder = Path(tempfile.mkdtemp(prefix="foldline-reproducer-"))
    command = shlex.join(["foldline", *arguments])
    (folder / "command.txt").write_text(f"cd {shlex.quote(str(Path.cwd()))}\n{command}\n")
    (folder / "traceback.txt").write_text(traceback.format_exc())
    lines = [f"python {platform.python_version()}", platform.platform()]
    lines += [f"foldline {foldline.__version__}"]
    lines += [f"{name} {_version(name)}" for name in ("numpy", "onnx", "xdsl", "ml_dtypes")]
    (folder / "versions.txt").write_text("\n".join(lines) + "\n")
    return folder


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


@click.group(cls=Root, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(foldline.__version__, prog_name="foldline")
def root() -> None:
    """Compile, optimise, check and run ONNX models, and see how."""


for _command in (
    compile_command,
    optimize_command,
    check_command,
    run_command,
    step_command,
    passes_command,
    ops_command,
    options_command,
):
    root.add_command(_command)


def main() -> None:
    """Entry point of the `foldline` script."""
    root.main(prog_name="foldline")
