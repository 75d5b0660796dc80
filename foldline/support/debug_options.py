"""What a compile shows of itself: one frozen `DebugOptions`, with one name per setting.

The same word is the flag (`--dump-to`), the YAML key (`debug: {dump-to: …}`) and the name in the
environment variable (`FOLDLINE_DEBUG="dump-to=out,remarks=*,time"`). Stronger sources win name by
name: command line, then YAML, then the environment.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, get_args

from foldline.support.passes import PASSES, STAGES
from foldline.support.suggest import did_you_mean, refuse

VARIABLE = "FOLDLINE_DEBUG"
DUMP_FOLDER = Path("foldline-dump")
"""Where dumps of each pass go when no folder is named: under the current one."""

CheckMode: TypeAlias = Literal["end", "stages", "passes", "revert"]
"""When the command line compares with the original, see `foldline.workbench.watching`."""
CHECK_MODES: tuple[CheckMode, ...] = get_args(CheckMode)


class _Bad(ValueError):
    """A value is not valid; the text says what would be."""


def _stage(value: Any) -> str:
    if not isinstance(value, str) or value not in STAGES:
        raise _Bad(f"{value!r} is not a stage{did_you_mean(str(value), STAGES)}")
    return value


def _pass_name(value: Any) -> str:
    """A pass, or `stage/pass` to mean one of several places."""
    stage, _, name = str(value).rpartition("/")
    if stage:
        _stage(stage)
    if name not in PASSES:
        raise _Bad(f"{value!r} is not a pass{did_you_mean(name, PASSES)}")
    return str(value)


def _glob(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise _Bad(f"{value!r} is not a pass name or glob")
    return value


def _folder(value: Any) -> Path:
    if not isinstance(value, str | Path) or not str(value):
        raise _Bad(f"{value!r} is not a folder")
    return Path(value)


def _switch(value: Any) -> bool:
    if not (isinstance(value, bool) or value in ("true", "false")):
        raise _Bad(f"{value!r} is neither true nor false")
    return value in (True, "true")


def _many(check: Callable[[Any], str]) -> Callable[[Any], tuple[str, ...]]:
    def check_each(value: Any) -> tuple[str, ...]:
        single = isinstance(value, str) or not isinstance(value, Sequence)
        return tuple(check(item) for item in cast("Sequence[Any]", [value] if single else value))

    return check_each


@dataclass(frozen=True)
class DebugOptions:
    """What to stop after, dump, print and explain. Changes nothing in the result."""

    stop_after: str | None = field(default=None, metadata={"check": _stage})
    """Run no stage after this one."""
    dump_to: Path | None = field(default=None, metadata={"check": _folder})
    """Folder for the IR after each stage: `0.import.mlir`, `1.prepare.mlir` …"""
    dump_each_pass: bool = field(default=False, metadata={"check": _switch})
    """Also after each pass that changed something: `2.stage1.03.constant-folding.mlir`."""
    print_after: tuple[str, ...] = field(default=(), metadata={"check": _many(_pass_name)})
    """Print the IR after these passes (`constant-folding` or `stage1/constant-folding`)."""
    remarks: tuple[str, ...] = field(default=(), metadata={"check": _many(_glob)})
    """Show the remarks of passes that match one of these globs."""
    time: bool = field(default=False, metadata={"check": _switch})
    """Show how long each pass took."""


DEBUG_NAMES: tuple[str, ...] = tuple(f.name.replace("_", "-") for f in fields(DebugOptions))
"""The names as flags and YAML keys spell them."""


def resolve_debug(
    *scopes: Mapping[str, Any], labels: Sequence[str] = ("command line", "configuration")
) -> DebugOptions:
    """The debug options that `scopes`, strongest first, and then the environment ask for.

    Raises one `InvalidOption` naming every unknown name and bad value.
    """
    problems: list[str] = []
    settings: dict[str, Any] = dict(environment(problems))
    for position in reversed(range(len(scopes))):
        label = labels[position] if position < len(labels) else "debug"
        settings.update(check_debug(scopes[position], label, problems))
    refuse(problems)
    if settings.get("dump_each_pass"):
        settings.setdefault("dump_to", DUMP_FOLDER)
    return DebugOptions(**settings)


def check_debug(scope: Mapping[str, Any], label: str, problems: list[str]) -> dict[str, Any]:
    """Valid settings of one source by field name; what is wrong is appended to `problems`."""
    checks = {f.name.replace("_", "-"): (f.name, f.metadata["check"]) for f in fields(DebugOptions)}
    settings: dict[str, Any] = {}
    for given, value in scope.items():
        name = str(given).replace("_", "-")
        if name not in checks:
            hint = did_you_mean(name, DEBUG_NAMES)
            problems.append(f"{given} ({label}): unknown debug option{hint}")
            continue
        attribute, check = checks[name]
        try:
            settings[attribute] = check(value)
        except _Bad as error:
            problems.append(f"{given} ({label}): {error}")
    return settings


def environment(problems: list[str]) -> dict[str, Any]:
    """What `FOLDLINE_DEBUG` asks for; a name without value means true, a repeated one a list."""
    given: dict[str, list[Any]] = {}
    for item in filter(None, map(str.strip, os.environ.get(VARIABLE, "").split(","))):
        name, assigned, value = item.partition("=")
        given.setdefault(name, []).append(value if assigned else True)
    scope = {name: values[0] if len(values) == 1 else values for name, values in given.items()}
    return check_debug(scope, VARIABLE, problems)
