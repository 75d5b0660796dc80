"""Which options hold for a compile: scopes are checked, merged and frozen here.

    graph scope > session scope > `set_options` > the user's file > the default at the level

What a scope says of single passes (`passes.enable`, `passes.disable`) is merged pass by pass, so
a flag for one pass does not drop what a configuration says of another. Everything wrong, in every
scope, is raised as one `InvalidOption`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from foldline.support.option_table import OPTIONS, PASS_TOGGLE, SHAPE_KEY, Scope
from foldline.support.option_values import BadValue, Shape
from foldline.support.pass_states import PassState, Setting, pass_states, toggle_key
from foldline.support.passes import PASSES
from foldline.support.suggest import did_you_mean, refuse
from foldline.support.yaml_file import read_yaml

USER_FILE_VARIABLE = "FOLDLINE_CONFIG"

_LISTS = {"passes.enable": True, "passes.disable": False}
_INPUT_SHAPE = re.compile(r"inputs\.(?P<name>.+)\.shape")
_SPELLINGS = {
    spelling: row.key for row in OPTIONS.values() for spelling in (row.key, row.underscored)
}
_global_scope: dict[str, Any] = {}


@dataclass(frozen=True)
class Explanation:
    """One line of what holds: an option or pass, its value, and what set it."""

    key: str
    value: Any
    origin: str


@dataclass(frozen=True)
class Options:
    """Options as resolved: a value for every key. Made by `resolve`."""

    values: Mapping[str, Any]
    """By canonical key, `inputs.NAME.shape` included."""
    origins: Mapping[str, str]
    """The label of the scope that set a key; a key absent here has its default."""
    passes: Mapping[str, PassState]
    """The state of every pass by name."""

    def __getitem__(self, key: str) -> Any:
        """The value of a canonical key, in the form its checker gives."""
        return self.values[key]

    @property
    def said(self) -> dict[str, Any]:
        """What is not a default, whoever said it: a scope that gives these options again."""
        return {key: self.values[key] for key in self.values if key in self.origins}

    @property
    def level(self) -> str:
        """`O0` … `O3`."""
        return self.values["oo.level"]

    @property
    def threads(self) -> int:
        """Threads a session uses unless it is told otherwise."""
        return self.values["threads"]

    @property
    def input_shapes(self) -> dict[str, Shape]:
        """Pinned dimensions by input name."""
        return {match["name"]: self.values[key] for key in self.values if (match := _pins(key))}

    def enabled(self, pass_name: str) -> bool:
        """Whether a pass runs; `KeyError` if there is no such pass."""
        return self.passes[pass_name].on

    def explain(self) -> tuple[Explanation, ...]:
        """Every option and pass with its value and what set it."""
        options = (
            Explanation(key, value, self.origins.get(key, "default"))
            for key, value in self.values.items()
        )
        passes = (Explanation(name, state.on, state.because) for name, state in self.passes.items())
        return (*options, *passes)


def resolve(*scopes: Mapping[str, Any], labels: Sequence[str] = ("graph", "session")) -> Options:
    """Merge `scopes`, strongest first, over the global scope and the defaults.

    The first is a graph scope, the others are session scopes; `labels` name them in messages.
    `set_options` and the user's file always stand behind them.
    """
    problems: list[str] = []
    layers: list[tuple[str, Mapping[str, Any]]] = []
    for position, scope in enumerate(scopes):
        label = labels[position] if position < len(labels) else "session"
        kind: Scope = "session" if position else "graph"
        layers.append((label, check_scope(scope, label, kind, problems)))
    layers += [("set_options", dict(_global_scope)), _user_layer(problems)]

    settings: dict[str, Setting] = {}
    for strength, (label, layer) in enumerate(reversed(layers)):
        settings |= {key: Setting(value, label, strength) for key, value in layer.items()}
    options = _freeze(settings, problems)
    refuse(problems)
    return options


def check_scope(
    scope: Mapping[str, Any], label: str, kind: Scope, problems: list[str]
) -> dict[str, Any]:
    """One scope under canonical keys with checked values, lists of passes as `passes.NAME`.

    What is wrong is appended to `problems`. The result is itself a scope.
    """
    checked: dict[str, Any] = {}
    said: dict[str, str] = {}
    for given, value in scope.items():
        key = canonical_key(given)
        if key is None:
            hint = did_you_mean(str(given).removeprefix("ge."), OPTIONS)
            problems.append(f"{given} ({label}): unknown option{hint}")
        elif key in said:
            problems.append(f"{given} ({label}): already said as {said[key]}")
        else:
            said[key] = given
            _check_value(key, given, value, label, kind, checked, problems)
    return checked


def canonical_key(given: object) -> str | None:
    """The key that a spelling means (`ge.oo.level`, `oo_level`), or None."""
    if not isinstance(given, str):
        return None
    plain = given.removeprefix("ge.")
    if _is_toggle(plain) or _pins(plain):
        return plain
    return None if plain == SHAPE_KEY else _SPELLINGS.get(plain)


def set_options(options: Mapping[str, Any]) -> None:
    """Make `options` the global scope: what holds in this process where nothing else is said.

    Replaces what an earlier call set; an empty mapping clears it. Raises `InvalidOption` when
    anything is wrong, and then changes nothing.
    """
    problems: list[str] = []
    checked = check_scope(options, "set_options", "global", problems)
    refuse(problems)
    _global_scope.clear()
    _global_scope.update(checked)


def user_file() -> Path | None:
    """The user's file of options: `$FOLDLINE_CONFIG`, else the one in the XDG folder if it exists.

    An empty `$FOLDLINE_CONFIG` means none.
    """
    named = os.environ.get(USER_FILE_VARIABLE)
    if named is not None:
        return Path(named) if named else None
    folder = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    path = Path(folder).expanduser() / "foldline" / "options.yaml"
    return path if path.is_file() else None


def _user_layer(problems: list[str]) -> tuple[str, dict[str, Any]]:
    path = user_file()
    if path is None:
        return "user file", {}
    return str(path), check_scope(read_yaml(path), str(path), "global", problems)


def pins_input(key: str) -> bool:
    """Whether a key pins dimensions of an input: `inputs.x.shape`."""
    return _pins(key) is not None


def flags_of(options: Mapping[str, Any]) -> list[str]:
    """The flags of the command line that say what a scope says, as `check_scope` gives it."""
    return [f"--set={key}={_as_text(value)}" for key, value in options.items()]


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join("?" if item is None else str(item) for item in cast("Any", value))
    return str(value)


def _pins(key: str) -> re.Match[str] | None:
    return None if key == SHAPE_KEY else _INPUT_SHAPE.fullmatch(key)


def _is_toggle(key: str) -> bool:
    return any(key == toggle_key(name) for name in PASSES)


def _check_value(
    key: str,
    given: str,
    value: Any,
    label: str,
    kind: Scope,
    checked: dict[str, Any],
    problems: list[str],
) -> None:
    """Put the checked value of one key into `checked`, or what is wrong into `problems`."""
    row = PASS_TOGGLE if _is_toggle(key) else OPTIONS[SHAPE_KEY if _pins(key) else key]
    if kind not in row.scopes:
        problems.append(f"{given} ({label}): belongs to one model, it cannot be set globally")
        return
    try:
        accepted = row.kind.check(value)
    except BadValue as error:
        problems.append(f"{given} ({label}): {error}")
        return
    said = {toggle_key(n): _LISTS[key] for n in accepted} if key in _LISTS else {key: accepted}
    for each, meant in said.items():
        if checked.setdefault(each, meant) != meant:
            problems.append(f"{each} ({label}): is both enabled and disabled")


def _freeze(settings: Mapping[str, Setting], problems: list[str]) -> Options:
    level_setting = settings.get("oo.level")
    level: str = level_setting.value if level_setting else OPTIONS["oo.level"].default("")
    values = {key: row.default(level) for key, row in OPTIONS.items() if key != SHAPE_KEY}
    values |= {key: s.value for key, s in settings.items() if not _is_toggle(key)}
    passes = pass_states(level, values["mode"], settings, problems)
    origins = {key: setting.label for key, setting in settings.items() if key in values}
    toggles = {n: settings[key] for n in PASSES if (key := toggle_key(n)) in settings}
    for key, on in _LISTS.items():
        said = {name: setting.label for name, setting in toggles.items() if setting.value is on}
        values[key] = tuple(said)
        origins |= {key: ", ".join(dict.fromkeys(said.values()))} if said else {}
    return Options(MappingProxyType(values), MappingProxyType(origins), MappingProxyType(passes))
