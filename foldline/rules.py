"""Where rules of users come from: files, modules, and what is installed.

A Python file or module is run: so it is named on the command line or by a program, never by a model
or a configuration. It gives its list `RULES`, or else every transform among its variables. A YAML
file holds rules as data. Installed packages offer rules as entry points of the group
`foldline.rules`: a transform, a list of them, or a module.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterable, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from foldline.stages.rewrite.rules_as_data import load_rules
from foldline.stages.rewrite.transform import Transform
from foldline.support.errors import FoldlineError, InvalidArgumentError
from foldline.support.suggest import did_you_mean

GROUP = "foldline.rules"
"""The group of entry points."""


def rules_of(source: str) -> list[Transform]:
    """The rules of a file (.py, .yaml), of an installed entry point, or of a module.

    Raises InvalidArgumentError for what is not there, cannot be run, or holds no rule.
    """
    if Path(source).suffix in (".yaml", ".yml"):
        return load_rules(source)
    with _Foreign(source):
        if Path(source).suffix == ".py":
            return _listed(_run(Path(source)), source)
        entry = installed().get(source)
        return _listed(importlib.import_module(source) if entry is None else entry.load(), source)


def installed() -> dict[str, EntryPoint]:
    """The entry points of installed packages, by name."""
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def chosen(sources: Iterable[str], named: Sequence[str] = ()) -> list[Transform]:
    """All rules of `sources`, and the installed ones that a configuration enables by name.

    Raises InvalidArgumentError for a name that is neither loaded nor installed.
    """
    rules = [rule for source in sources for rule in rules_of(source)]
    for name in named:
        if any(rule.name == name for rule in rules):
            continue
        offered = installed()
        if name not in offered:
            hint = did_you_mean(name, [*offered, *(rule.name for rule in rules)])
            raise InvalidArgumentError(
                f"rules: '{name}' is neither installed nor loaded with --rules{hint}"
            )
        rules += rules_of(name)
    return rules


class _Foreign:
    """Where code of others runs: what it raises is a wrong request, not an error of ours."""

    def __init__(self, source: str):
        self.source = source

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, Exception) or isinstance(error, FoldlineError):
            return
        what = f"{type(error).__name__}: {error}"
        if isinstance(error, ModuleNotFoundError) and error.name and self._names(error.name):
            what = f"no such module, nor installed{did_you_mean(self.source, installed())}"
        raise InvalidArgumentError(f"rules {self.source}: {what}") from error

    def _names(self, module: str) -> bool:
        return f"{self.source}.".startswith(f"{module}.")


def _run(path: Path) -> ModuleType:
    if not path.is_file():
        raise InvalidArgumentError(f"rules {path}: no such file")
    spec = importlib.util.spec_from_file_location(f"foldline_rules_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _listed(found: Any, source: str) -> list[Transform]:
    """The transforms that a module or an entry point offers."""
    if isinstance(found, ModuleType):
        offered: Any = getattr(found, "RULES", None)
        if offered is None:
            offered = [value for value in vars(found).values() if isinstance(value, Transform)]
        found = offered
    rules = cast("list[Any]", [found] if isinstance(found, Transform) else list(found))
    rules = list(dict.fromkeys(rules))
    if not rules or not all(isinstance(rule, Transform) for rule in rules):
        raise InvalidArgumentError(f"rules {source}: holds no transform, and no list RULES of them")
    return rules
