"""YAML compile configurations: read, checked as a whole, turned into scopes of options.

    model.yaml -> Configuration(entries: graph scopes, options: session scope, debug)

The pydantic models say which keys there are and make the JSON Schema for editors; values are
checked by the tables of options, passes and debug options. Everything wrong in a file is raised as
one `InvalidOption`. Nothing in a configuration is executed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema

from foldline.support.debug_options import DEBUG_NAMES, CheckMode, check_debug
from foldline.support.errors import InvalidOption
from foldline.support.option_table import OPTIONS, PASS_TOGGLE, SHAPE_KEY
from foldline.support.options import check_scope
from foldline.support.passes import PASSES, STAGES
from foldline.support.suggest import did_you_mean, refuse
from foldline.support.yaml_file import read_yaml

PACKAGED = Path(__file__).parent / "configs"
"""Configurations that ship with Foldline; named without folder and suffix."""


@dataclass(frozen=True)
class Entry:
    """One model to compile, and what holds for it alone."""

    model: Path
    output: Path | None
    options: Mapping[str, Any]
    """Graph scope."""


@dataclass(frozen=True)
class Configuration:
    """A configuration file, checked; relative paths are resolved against its folder."""

    path: Path
    entries: tuple[Entry, ...]
    output: Path | None
    """Where a model goes that the caller names himself."""
    options: Mapping[str, Any]
    """Session scope."""
    debug: Mapping[str, Any]
    """A scope for `resolve_debug`."""
    rules: tuple[str, ...] = ()
    """Names of rules to enable; they are loaded by the command line, or installed."""
    check: CheckMode | None = None
    """When the command line compares with the original: `--check`."""

    def entry_for(self, model: Path) -> Entry:
        """The entry of a model that the caller names; without one, what holds for all."""
        same = (entry for entry in self.entries if entry.model.resolve() == model.resolve())
        return next(same, Entry(model, self.output, {}))


def load_config(source: str | Path) -> Configuration:
    """Read a YAML configuration, by path or by the name of a packaged one.

    Raises `InvalidOption` naming every unknown key (with the nearest valid one) and bad value.
    """
    path = find_config(source)
    raw = read_yaml(path)
    problems: list[str] = []
    try:
        ConfigurationFile.model_validate(raw)
    except ValidationError as error:
        problems += [_wording(each["loc"], each["type"], each["msg"]) for each in error.errors()]
    entries = tuple(_entries(raw, path.parent, problems))
    options = _scope(raw, "", problems, graph=False)
    said = _mapping(raw.get("debug"))
    debug = {key: value for key, value in said.items() if key in DEBUG_NAMES}
    check_debug(debug, "debug", problems)
    refuse([f"{path}: {problem}" for problem in problems])
    if "dump-to" in debug:
        debug = {**debug, "dump-to": path.parent / debug["dump-to"]}
    output, rules = _path(raw.get("output"), path.parent), tuple(raw.get("rules", ()))
    return Configuration(path, entries, output, options, debug, rules, said.get("check"))


def find_config(source: str | Path) -> Path:
    """The file that a path or the name of a packaged configuration means."""
    path = Path(source)
    if path.is_file():
        return path
    packaged = {file.stem: file for file in PACKAGED.glob("*.yaml")}
    if str(source) in packaged:
        return packaged[str(source)]
    hint = did_you_mean(str(source), packaged)
    raise InvalidOption(f"{source}: no such file, and no packaged configuration{hint}")


def configuration_schema() -> dict[str, Any]:
    """JSON Schema of configuration files."""
    return ConfigurationFile.model_json_schema(by_alias=True)


def _options_schema() -> dict[str, Any]:
    rows = [row for row in OPTIONS.values() if row.key != SHAPE_KEY]
    described = {row.key: {**row.kind.schema, "description": row.help} for row in rows}
    spellings = {f"ge.{key}": {"$comment": "as without ge."} for key in described}
    spellings |= {row.underscored: dict(row.kind.schema) for row in rows}
    return {
        "type": "object",
        "properties": {**spellings, **described},
        "patternProperties": {
            r"^(ge\.)?inputs\..+\.shape$": dict(OPTIONS[SHAPE_KEY].kind.schema),
            rf"^(ge\.)?passes\.({'|'.join(PASSES)})$": dict(PASS_TOGGLE.kind.schema),
        },
        "additionalProperties": False,
    }


def _editors(schema: Mapping[str, Any]) -> WithJsonSchema:
    """For a value that a table checks: pydantic lets it pass, editors get the table's schema."""
    return WithJsonSchema(dict(schema))


_PASSES = OPTIONS["passes.enable"].kind.schema
_SWITCH = {"type": "boolean"}
_TEXTS = OPTIONS["fold.skip"].kind.schema


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", alias_generator=lambda name: name.replace("_", "-"))


class PassLists(_Section):
    """Passes to run, and not to run, whatever the level."""

    enable: Annotated[Any, _editors(_PASSES)] = ()
    disable: Annotated[Any, _editors(_PASSES)] = ()


class InputSettings(_Section):
    """What is pinned of one input."""

    shape: Annotated[Any, _editors(OPTIONS[SHAPE_KEY].kind.schema)]


class DebugSettings(_Section):
    """What the compile shows of itself, and when it is checked."""

    stop_after: Annotated[Any, _editors({"enum": list(STAGES)})] = None
    dump_to: Annotated[Any, _editors({"type": "string"})] = None
    dump_each_pass: Annotated[Any, _editors(_SWITCH)] = False
    print_after: Annotated[Any, _editors(_TEXTS)] = ()
    remarks: Annotated[Any, _editors(_TEXTS)] = ()
    time: Annotated[Any, _editors(_SWITCH)] = False
    check: CheckMode | None = None


class _Settings(_Section):
    options: Annotated[dict[str, Any], WithJsonSchema(_options_schema())] = Field(default={})
    passes: PassLists = PassLists()
    inputs: dict[str, InputSettings] = Field(default={})


def _plain_entry(value: Any) -> Any:
    return {"model": value} if isinstance(value, str) else value


class ModelEntry(_Settings):
    """One of several models: its path, or its path and what holds for it alone."""

    model: str
    output: str | None = None


class ConfigurationFile(_Settings):
    """A compile configuration."""

    model: str | None = None
    models: list[
        Annotated[
            ModelEntry,
            BeforeValidator(_plain_entry, json_schema_input_type=str | ModelEntry),
        ]
    ] = Field(default=[])
    output: str | None = None
    rules: list[str] = Field(default=[])
    debug: DebugSettings = DebugSettings()


_SECTIONS: dict[str, type[BaseModel]] = {
    "passes": PassLists,
    "inputs": InputSettings,
    "debug": DebugSettings,
    "models": ModelEntry,
}


def _wording(location: tuple[int | str, ...], kind: str, message: str) -> str:
    """A pydantic error in our words: where, what is wrong, the nearest valid key."""
    where = ".".join(map(str, location))
    if kind != "extra_forbidden":
        return f"{where}: {message}"
    section: type[BaseModel] = ConfigurationFile
    for part in location[:-1]:
        if section is not InputSettings:
            section = _SECTIONS.get(str(part), section)
    valid = [field.alias or name for name, field in section.model_fields.items()]
    return f"{where}: unknown key{did_you_mean(str(location[-1]), valid)}"


def _entries(raw: Mapping[str, Any], folder: Path, problems: list[str]) -> Iterator[Entry]:
    """Every model of the file; what pydantic has found wrong in shape is passed over."""
    model, models = raw.get("model"), raw.get("models")
    if model is not None and models is not None:
        problems.append("models: cannot stand beside model")
    if models is not None and raw.get("output") is not None:
        problems.append("output: cannot stand beside models; each entry names its own")
    if isinstance(model, str):
        yield Entry(folder / model, _path(raw.get("output"), folder), {})
    for index, item in enumerate(cast("list[Any]", models) if isinstance(models, list) else []):
        entry = _mapping(_plain_entry(item))
        options = _scope(entry, f"models.{index}.", problems, graph=True)
        named = _path(entry.get("model"), folder)
        if named is not None:
            yield Entry(named, _path(entry.get("output"), folder), options)


def _scope(
    section: Mapping[str, Any], prefix: str, problems: list[str], graph: bool
) -> dict[str, Any]:
    """The `options`, `passes` and `inputs` of a section as one checked scope of options."""
    passes, inputs = _mapping(section.get("passes")), _mapping(section.get("inputs"))
    said = {f"passes.{key}": passes[key] for key in ("enable", "disable") if key in passes}
    pinned = {name: _mapping(settings) for name, settings in inputs.items()}
    said |= {f"inputs.{name}.shape": s["shape"] for name, s in pinned.items() if "shape" in s}
    options = _mapping(section.get("options"))
    problems += [f"{prefix}options.{key}: already said as {key}" for key in said if key in options]
    kind = "graph" if graph else "session"
    return check_scope({**options, **said}, f"{prefix}options", kind, problems)


def _mapping(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _path(value: Any, folder: Path) -> Path | None:
    return folder / value if isinstance(value, str) else None
