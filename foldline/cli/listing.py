"""`foldline passes | ops | options`: what there is, and what holds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from foldline.cli.flags import LABEL, json_flag, option_flags, options_said
from foldline.cli.output import print_json, print_table
from foldline.support.debug_options import DEBUG_NAMES, VARIABLE
from foldline.support.option_table import OPTIONS
from foldline.support.options import resolve
from foldline.support.passes import PASSES


@click.command("passes")
@click.option("--markdown", is_flag=True, help="Print the page docs/passes.md.")
@json_flag
def passes_command(markdown: bool, as_json: bool) -> None:
    """List the passes: level, switch, whether they preserve bits."""
    if markdown:
        from foldline.cli.passes_page import passes_page

        click.echo(passes_page(), nl=False)
        return
    if as_json:
        print_json([vars(info) for info in PASSES.values()])
        return
    headers = ("pass", "from", "switch", "bits", "opt-in", "builds on", "what it does")
    rows = (
        (i.name, i.level, i.switch or "-", i.preserves_bits, i.opt_in, i.runs_after, i.help)
        for i in PASSES.values()
    )
    print_table("Passes", headers, rows, err=False)


@click.command("ops")
@click.argument("glob", default="*")
@json_flag
def ops_command(glob: str, as_json: bool) -> None:
    """List the operators that the installed ONNX or a kernel knows, and their kernels."""
    rows = [row for row in _operators() if fnmatch(row["operator"], glob)]
    if as_json:
        print_json(rows)
        return
    headers = ("domain", "operator", "versions", "kernels")
    cells = ((r["domain"] or "ai.onnx", r["operator"], r["versions"], r["kernels"]) for r in rows)
    print_table("Operators", headers, cells, err=False)


def _operators() -> Iterator[dict[str, Any]]:
    import onnx.defs

    from foldline.kernels.registry import all_kernels

    import_module("foldline.kernels")
    versions: dict[tuple[str, str], set[int]] = defaultdict(set)
    for schema in onnx.defs.get_all_schemas_with_history():
        versions[schema.domain, schema.name].add(schema.since_version)
    grades: dict[tuple[str, str], set[str]] = defaultdict(set)
    for entry in all_kernels():
        grades[entry.domain, entry.op_type].add(entry.grade)
    for domain, name in sorted(versions.keys() | grades.keys()):
        yield {
            "domain": domain,
            "operator": name,
            "versions": sorted(versions[domain, name]),
            "kernels": sorted(grades[domain, name]),
        }


@click.command("options")
@click.argument("model", required=False)
@click.option("--explain", is_flag=True, help="Print each value and the scope that set it.")
@click.option("--config", metavar="FILE", help="With --explain: the configuration that holds.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of configurations.")
@click.option("--markdown", is_flag=True, help="Print the page docs/options.md.")
@json_flag
@option_flags
def options_command(
    model: str | None,
    explain: bool,
    config: str | None,
    schema: bool,
    markdown: bool,
    as_json: bool,
) -> None:
    """List the options, or explain what holds for MODEL under a configuration and flags."""
    if schema:
        from foldline.config import configuration_schema

        print_json(configuration_schema())
    elif markdown:
        from foldline.cli.options_page import options_page

        click.echo(options_page(), nl=False)
    elif explain:
        _explain(model, config, as_json)
    elif model or config:
        raise click.UsageError("MODEL and --config go with --explain")
    else:
        _list_options(as_json)


def _list_options(as_json: bool) -> None:
    rows = [(r.key, r.kind.text, r.shown, r.scopes, r.help) for r in OPTIONS.values()]
    if as_json:
        names = ("key", "values", "default", "scopes", "help")
        print_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    print_table("Options", ("key", "values", "default", "scopes", "help"), rows, err=False)
    click.echo(f"\nDebug, as flags, under debug: in YAML, or in {VARIABLE}:")
    click.echo(f"  {', '.join(DEBUG_NAMES)}")


def _explain(model: str | None, config: str | None, as_json: bool) -> None:
    scopes, labels = [options_said()], [LABEL]
    if config:
        from foldline.config import load_config

        configuration = load_config(config)
        if model:
            scopes.append(dict(configuration.entry_for(Path(model)).options))
            labels.append(f"{configuration.path}: {model}")
        scopes.append(dict(configuration.options))
        labels.append(str(configuration.path))
    lines = resolve(*scopes, labels=labels).explain()
    if as_json:
        print_json([vars(line) for line in lines])
        return
    rows = ((line.key, _as_written(line.value), line.origin) for line in lines)
    print_table("What holds", ("key", "value", "set by"), rows, err=False)


def _as_written(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value
