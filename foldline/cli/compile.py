"""`foldline compile`: a model in, a smaller equal one out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import click

from foldline.cli.checked import Check, CheckedCommand, check_flags, watched_json
from foldline.cli.crash import leaving_steps
from foldline.cli.flags import debug_flags, debug_said, json_flag, option_flags, options_said
from foldline.cli.output import model_source, print_json, print_table, progress, seconds_text
from foldline.cli.report import refuse_existing, write_report
from foldline.support.debug_options import CheckMode, DebugOptions, resolve_debug
from foldline.support.errors import InvalidArgumentError

if TYPE_CHECKING:
    from foldline.compiler import CompiledModel, Compiler
    from foldline.stages.rewrite.transform import Transform
    from foldline.workbench.watching import Watch

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class Delivery:
    """What to do with a compiled model."""

    as_json: bool
    force: bool
    external_data: bool
    check: CheckMode | None = None
    inputs: str | None = None
    """What to check on, too."""
    rtol: float | None = None
    report: str | None = None
    """Where to write the page of the compile."""


Start: TypeAlias = tuple[str, str]
"""A stage, and the dump to start it from."""


@dataclass(frozen=True)
class Job:
    """One model to compile."""

    model: str
    output: str | None
    graph: Mapping[str, Any]
    session: Mapping[str, Any]
    debug: DebugOptions
    start: Start | None = None
    rules: tuple[Transform, ...] = ()
    """Transforms of the user."""
    check: CheckMode | None = None
    """What a configuration says of it; flags are stronger."""


def request_flags(command: Command) -> Command:
    """Give a command the flags that say what to compile, and what to do with it."""
    for decorate in (
        option_flags,
        debug_flags,
        json_flag,
        click.option("--external-data", is_flag=True, help="Write weights beside the file."),
        click.option("--force", "--overwrite", is_flag=True, help="Replace an existing output."),
        check_flags,
        click.option("--report", metavar="FILE.html", help="Write what happened as one page."),
        click.option(
            "-c",
            "--config",
            metavar="FILE",
            help="A YAML file, or the name of a packaged one.",
        ),
        click.option(
            "--rules",
            multiple=True,
            metavar="FILE|MODULE",
            help="Rules to run as well: a .py file, which is run, a .yaml file, or a module.",
        ),
    ):
        command = decorate(command)
    return command


@click.command("compile", cls=CheckedCommand)
@click.argument("model", required=False)
@click.option("-o", "--output", metavar="OUT", help="Where to write the model; - is a pipe.")
@click.option(
    "--start-at",
    "start",
    nargs=2,
    metavar="STAGE DUMP",
    help="Go on from a dump, which MODEL may then be left out for, with this stage.",
)
@request_flags
def compile_command(
    model: str | None,
    output: str | None,
    config: str | None,
    rules: tuple[str, ...],
    start: Start | None,
    **delivery: Any,
) -> None:
    """Compile MODEL (- for standard input), or the models of a configuration."""
    request = Delivery(**delivery)
    if start is None:
        run_jobs(jobs_of(model, output, config, rules), request)
        return
    (job,) = jobs_of(model or start[1], output, config, rules)
    if (request.check or job.check) and model is None:
        raise click.UsageError("--check needs the MODEL that the dump was made of")
    run_jobs([replace(job, start=start)], request)


def jobs_of(
    model: str | None, output: str | None, config: str | None, rules: tuple[str, ...]
) -> list[Job]:
    """What flags and configuration ask for; flags are stronger, name by name."""
    said = options_said()
    if config is None:
        if model is None:
            raise click.UsageError("missing MODEL")
        return [Job(model, output, said, {}, resolve_debug(debug_said()), rules=_rules(rules))]
    from foldline.config import load_config

    configuration = load_config(config)
    debug = resolve_debug(debug_said(), configuration.debug)
    entries = [configuration.entry_for(Path(model))] if model else list(configuration.entries)
    if not entries:
        raise click.UsageError(f"missing MODEL: {configuration.path} names none")
    if output and len(entries) > 1:
        raise click.UsageError(f"one --output for the {len(entries)} models of {config}")
    return [
        Job(
            str(entry.model),
            output or (str(entry.output) if entry.output else None),
            {**entry.options, **said},
            configuration.options,
            debug,
            rules=_rules(rules, configuration.rules),
            check=configuration.check,
        )
        for entry in entries
    ]


def _rules(sources: tuple[str, ...], named: tuple[str, ...] = ()) -> tuple[Transform, ...]:
    """The rules that the command line loads, and those that a configuration names."""
    if not sources and not named:
        return ()
    from foldline.rules import chosen

    return tuple(chosen(sources, named))


def run_jobs(jobs: list[Job], delivery: Delivery) -> None:
    """Compile each, once no output would be refused."""
    if delivery.as_json and any(job.output == "-" for job in jobs):
        raise click.UsageError("--json and a model cannot both go to standard output")
    if delivery.report is not None:
        if len(jobs) > 1:
            raise click.UsageError(f"one --report for {len(jobs)} models")
        refuse_existing(delivery.report, delivery.force)
    for job in jobs:
        _refuse_bad_output(job, delivery)
    for job in jobs:
        _run_job(job, delivery)


def _refuse_bad_output(job: Job, delivery: Delivery) -> None:
    """Before any work: an output that would be refused after it."""
    if job.output in (None, "-"):
        return
    output = Path(job.output)
    if job.model != "-" and output.exists() and output.samefile(job.model):
        raise InvalidArgumentError(f"{output}: is the model itself, which is never modified")
    if output.exists() and not delivery.force:
        raise InvalidArgumentError(f"{output}: exists; --force replaces it")


def _run_job(job: Job, delivery: Delivery) -> None:
    from foldline.workbench.recorder import StageRecorder

    check = Check(delivery.check or job.check, delivery.inputs, delivery.rtol)
    watch = _watch(job, check)
    compiler = _compiler(job, watch)
    recorder = StageRecorder()
    watching = [recorder] if delivery.report else []
    with progress(f"compiling {job.model}"):
        if job.start is None:
            source = model_source(job.model)
            with leaving_steps(source, {**job.session, **job.graph}, job.rules):
                compiled = compiler.compile(
                    source, options=job.graph, debug=job.debug, observers=watching
                )
        else:
            source, (stage, dump) = job.model, job.start
            compiled = compiler.resume(
                dump, stage, options=job.graph, debug=job.debug, observers=watching
            )
    document = {"model": job.model, "output": job.output, "report": compiled.report.to_json()}
    to_stderr = job.output == "-"
    if not delivery.as_json:
        _print_report(compiled, job.debug, to_stderr)
    if delivery.report:
        write_report(delivery.report, job.model, recorder, compiled)
        document["page"] = delivery.report
    if watch is not None:
        document["check"] = watched_json(watch, delivery.as_json, to_stderr)
    elif check.mode is not None:
        document["check"] = check.at_end(source, compiled, delivery.as_json, to_stderr)
    if job.output == "-":
        sys.stdout.buffer.write(compiled.to_bytes())
    elif job.output:
        with progress(f"writing {job.output}"):
            compiled.save(job.output, force=delivery.force, external_data=delivery.external_data)
    if delivery.as_json:
        print_json(document)
        return
    for written in filter(None, (job.output, delivery.report)):
        click.echo(f"wrote {written}", err=to_stderr)


def _watch(job: Job, check: Check) -> Watch | None:
    from foldline.support.options import resolve

    original = None if job.start is None else job.model
    return check.watch(original, resolve(job.graph, job.session))


def _compiler(job: Job, watch: Watch | None) -> Compiler:
    from foldline.compiler import Compiler

    if watch is None:
        return Compiler(job.session, job.rules)
    return Compiler(job.session, job.rules, drive=watch)


def _print_report(compiled: CompiledModel, debug: DebugOptions, err: bool) -> None:
    report = compiled.report
    headers = ("stage/pass", "nodes before", "after")
    rows = [(f"{row.stage}/{row.name}", row.nodes_before, row.nodes_after) for row in report.rows]
    if debug.time:
        headers = (*headers, "time")
        times = (seconds_text(row.seconds) for row in report.rows)
        rows = [(*row, text) for row, text in zip(rows, times, strict=True)]
    print_table("Passes", headers, rows, err)
    if debug.remarks:
        _print_remarks(compiled, debug, err)
    for remark in report.remarks:
        if (remark.kind, remark.stage) == ("note", "import"):
            click.echo(f"note: {remark.message}", err=err)
    kinds = [remark.kind for remark in report.remarks]
    nodes = (
        f"{report.rows[0].nodes_before} nodes -> {report.rows[-1].nodes_after}, "
        if report.rows
        else ""
    )
    click.echo(
        f"{nodes}{kinds.count('applied')} applied, {kinds.count('declined')} declined, "
        f"{seconds_text(report.seconds)}",
        err=err,
    )


def _print_remarks(compiled: CompiledModel, debug: DebugOptions, err: bool) -> None:
    """The remarks of passes that one of the globs names, as `pass` or `stage/pass`."""
    rows = [
        (
            remark.kind,
            f"{remark.stage}/{remark.pass_name}",
            remark.op_type,
            remark.node,
            remark.message,
        )
        for remark in compiled.report.remarks
        if any(
            fnmatch(name, glob)
            for glob in debug.remarks
            for name in (remark.pass_name, f"{remark.stage}/{remark.pass_name}")
        )
    ]
    print_table("Remarks", ("remark", "stage/pass", "operator", "node", "why"), rows, err)
