"""Flags made from the registries: one for each option, pass and debug setting.

What a flag says is collected on click's context, under the key it stands for; commands read it
with `options_said` and `debug_said`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from foldline.support.option_table import OPTIONS, SHAPE_KEY, OptionRow
from foldline.support.options import check_scope
from foldline.support.pass_states import toggle_key
from foldline.support.passes import PASSES, STAGES
from foldline.support.suggest import refuse

Command = TypeVar("Command", bound=Callable[..., Any])

LABEL = "command line"
json_flag = click.option("--json", "as_json", is_flag=True, help="Print JSON.")

_OPTIONS, _DEBUG = "foldline.options", "foldline.debug"


def option_flags(command: Command) -> Command:
    """Give a command a flag for every option and every pass, `--set` and `--input-shape`."""
    for name, info in reversed(PASSES.items()):
        click.option(
            f"--enable-{name}/--disable-{name}",
            f"toggle_{name.replace('-', '_')}",
            default=None,
            expose_value=False,
            callback=_collector(toggle_key(name)),
            help=info.help,
        )(command)
    for row in reversed(list(OPTIONS.values())):
        if row.key != SHAPE_KEY:
            _row_flag(row)(command)
    click.option(
        "--set",
        "assignments",
        multiple=True,
        metavar="KEY=VALUE",
        expose_value=False,
        callback=_collect_assignments,
        help="Set any option by key.",
    )(command)
    click.option(
        "--input-shape",
        "input_shapes",
        multiple=True,
        metavar="NAME:DIMS",
        expose_value=False,
        callback=_collect_shapes,
        help="Pin the dimensions of an input, as in x:1,3,224,224; ? leaves one as it is.",
    )(command)
    return command


def debug_flags(command: Command) -> Command:
    """Give a command the flags that show what a compile does."""
    for flag, settings in reversed(DEBUG_FLAGS.items()):
        click.option(f"--{flag}", expose_value=False, callback=_debug_collector(flag), **settings)(
            command
        )
    return command


DEBUG_FLAGS: dict[str, dict[str, Any]] = {
    "stop-after": {"metavar": "STAGE", "help": f"Run no later stage: {', '.join(STAGES)}."},
    "dump-to": {"metavar": "DIR", "help": "Write the IR after each stage to this folder."},
    "dump-each-pass": {"is_flag": True, "help": "Write it after each pass that changed something."},
    "print-after": {"metavar": "PASS", "multiple": True, "help": "Print the IR after this pass."},
    "remarks": {"metavar": "GLOB", "multiple": True, "help": "Show the remarks of these passes."},
    "time": {"is_flag": True, "help": "Show how long each pass took."},
}


def options_said() -> dict[str, Any]:
    """The options that the flags of this command set, checked: a graph scope."""
    said: dict[str, Any] = click.get_current_context().meta.get(_OPTIONS, {})
    problems: list[str] = []
    scope = check_scope(said, LABEL, "graph", problems)
    refuse(problems)
    return scope


def debug_said() -> dict[str, Any]:
    """The debug settings that the flags of this command set."""
    return click.get_current_context().meta.get(_DEBUG, {})


class _OneSpelling(click.Option):
    """A flag of several spellings that shows one of them in help."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        record = super().get_help_record(ctx)
        return record and (f"{self.opts[0]} {self.metavar}", record[1])


def _row_flag(row: OptionRow) -> Callable[[Command], Command]:
    spellings = dict.fromkeys((f"--{row.key}", f"--ge.{row.key}", f"--{row.underscored}"))
    return click.option(
        *spellings,
        f"option_{row.underscored}",
        cls=_OneSpelling,
        multiple=row.kind.many,
        metavar=row.kind.text,
        expose_value=False,
        callback=_collector(row.key),
        help=row.help if row.shown == "-" else f"{row.help} Default: {row.shown}.",
    )


def _say(ctx: click.Context, key: str, value: Any) -> None:
    said: dict[str, Any] = ctx.meta.setdefault(_OPTIONS, {})
    if key in said:
        raise click.UsageError(f"{key} is set twice", ctx)
    said[key] = value


def _collector(key: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def collect(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value is None or value == ():
            return
        each = [part for item in value for part in item.split(",")] if parameter.multiple else value
        _say(ctx, key, each)

    return collect


def _collect_assignments(
    ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> None:
    for item in value:
        key, assigned, text = item.partition("=")
        if not assigned:
            raise click.BadParameter(f"{item!r} is not KEY=VALUE", ctx, parameter)
        _say(ctx, key, text)


def _collect_shapes(ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> None:
    for item in value:
        name, separator, dims = item.rpartition(":")
        if not separator or not name:
            raise click.BadParameter(f"{item!r} is not NAME:DIMS", ctx, parameter)
        _say(ctx, f"inputs.{name}.shape", dims)


def _debug_collector(flag: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def collect(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value:
            said: dict[str, Any] = ctx.meta.setdefault(_DEBUG, {})
            said[flag] = value

    return collect
