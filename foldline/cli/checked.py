"""`--check` of the commands that compile: when to compare, on what, and how closely."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from foldline.cli.check import print_result, result_json
from foldline.cli.output import progress
from foldline.support.debug_options import CHECK_MODES, CheckMode
from foldline.support.errors import InvalidArgumentError

if TYPE_CHECKING:
    from foldline.compiler import CompiledModel
    from foldline.workbench.watching import Watch

Command = TypeVar("Command", bound=Callable[..., Any])

END: CheckMode = "end"


class CheckedCommand(click.Command):
    """A command in which `--check` alone means `--check=end`, whatever stands behind it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Say what is left out."""
        end = args.index("--") if "--" in args else len(args)
        said = [f"--check={END}" if arg == "--check" else arg for arg in args[:end]]
        return super().parse_args(ctx, said + args[end:])


def check_flags(command: Command) -> Command:
    """Give a command the flags of a comparison."""
    for decorate in (
        click.option(
            "--rtol", type=float, help="With --check: allowed error, relative to the largest value."
        ),
        click.option("--inputs", metavar="FILE.npz", help="With --check: compare on these, too."),
        click.option(
            "--check",
            type=click.Choice(CHECK_MODES),
            metavar=f"[={'|'.join(CHECK_MODES)}]",
            help="Compare with the original before writing (end), also after each stage or pass, "
            "or undo what makes a difference (revert).",
        ),
    ):
        command = decorate(command)
    return command


@dataclass(frozen=True)
class Check:
    """What the flags or a configuration say."""

    mode: CheckMode | None = None
    inputs: str | None = None
    rtol: float | None = None

    def __post_init__(self) -> None:
        if self.mode is None and (self.inputs is not None or self.rtol is not None):
            raise click.UsageError("--inputs and --rtol belong to --check")

    def feed(self) -> dict[str, Any] | None:
        """The inputs that are given."""
        from foldline.cli.arrays import load_npz

        return load_npz(self.inputs) if self.inputs else None

    def watch(self, original: str | None, options: Any) -> Watch | None:
        """What compares on the way; None where that is only done at the end.

        `original` is the model, where a compile begins with something else.
        """
        if self.mode in (None, END):
            return None
        from foldline.compiler import imported
        from foldline.workbench.watching import Watch

        module = None if original is None else imported(original, options)
        return Watch(self.mode, self.feed(), self.rtol, module)

    def at_end(
        self, source: str | bytes, compiled: CompiledModel, as_json: bool, to_stderr: bool
    ) -> dict[str, Any]:
        """Compare with the original. Raises InvalidArgumentError where they differ."""
        from foldline.checking import check

        with progress("checking"):
            result = check(source, compiled, inputs=self.feed(), rtol=self.rtol)
        if not as_json:
            print_result(result, err=to_stderr)
        if not result.equal:
            case = next(case for case in result.cases if not case.equal)
            raise InvalidArgumentError(
                f"the compiled model differs from the original, nothing is written: "
                f"inputs {case.name!r}, output {case.output!r}: {case.message}"
            )
        return result_json(result)


def watched_json(watch: Watch, as_json: bool, to_stderr: bool) -> dict[str, Any]:
    """What a comparison on the way found; printed, too, unless as JSON."""
    undone = [str(finding) for finding in watch.undone]
    if not as_json:
        for line in undone:
            click.echo(f"undone: {line}", err=to_stderr)
        click.echo("equal", err=to_stderr)
    return {"equal": True, "mode": watch.mode, "undone": undone}
