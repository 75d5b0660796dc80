"""`foldline run`: run a model on given or made-up inputs."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

import click

from foldline.cli.crash import leaving_steps
from foldline.cli.flags import json_flag, option_flags, options_said
from foldline.cli.output import model_source, print_json, print_table, progress, seconds_text
from foldline.support.errors import FoldlineError, InvalidArgumentError

if TYPE_CHECKING:
    from foldline.session import Session


@click.command("run")
@click.argument("model")
@click.option("--input", "files", multiple=True, metavar="NAME=FILE.npy", help="Give an input.")
@click.option("--random", is_flag=True, help="Make up the inputs that are not given.")
@click.option("--seed", default=0, show_default=True, help="Of the made-up inputs.")
@click.option("-o", "--output", metavar="FILE.npz", help="Write the outputs.")
@click.option("--repeat", default=1, show_default=True, type=click.IntRange(min=1))
@click.option("--profile", is_flag=True, help="Show how long each step takes, and memory.")
@click.option("--trace", metavar="FILE.json", help="Write one run in the trace event format.")
@json_flag
@option_flags
def run_command(
    model: str,
    files: tuple[str, ...],
    random: bool,
    seed: int,
    output: str | None,
    repeat: int,
    profile: bool,
    trace: str | None,
    as_json: bool,
) -> None:
    """Compile MODEL (- for standard input), run it, and show its outputs."""
    from foldline.cli.arrays import save_npz
    from foldline.compiler import compile

    source, options = model_source(model), options_said()
    with progress("compiling"), leaving_steps(source, options):
        session = compile(source, options=options).session()
    feed = feed_of(session, files, seed if random else None)
    if profile or trace:
        from foldline.cli.profile import show_profile

        show_profile(session, feed, repeat, trace, as_json)
        return
    results: list[Any] = []
    times: list[float] = []
    with progress("running"):
        for _ in range(repeat):
            start = perf_counter()
            results = session.run(None, feed)
            times.append(perf_counter() - start)
    named = {a.name: value for a, value in zip(session.get_outputs(), results, strict=True)}
    if output:
        save_npz(output, named)
    _show(named, times, as_json)


def feed_of(session: Session, files: tuple[str, ...], seed: int | None) -> dict[str, Any]:
    """Inputs from files, and made-up ones for the rest if there is a seed."""
    from foldline.cli.arrays import load_npy, retyped
    from foldline.sample_inputs import fitting_size, sample_feed
    from foldline.support.dtypes import BY_NAME

    types = {a.name: a.type.removeprefix("tensor(").removesuffix(")") for a in session.get_inputs()}
    given: dict[str, Any] = {}
    for item in files:
        name, assigned, path = item.partition("=")
        if not assigned:
            raise click.BadParameter(f"{item!r} is not NAME=FILE.npy", param_hint="--input")
        array = load_npy(path)
        element = BY_NAME.get(types.get(name, ""))
        given[name] = retyped(array, element.numpy) if element else array
    missing = [a for a in session.get_inputs() if a.name not in given]
    if seed is None and missing:
        names = ", ".join(f"{a.name!r} ({a.type} {a.shape or ''})" for a in missing)
        raise InvalidArgumentError(
            f"missing inputs: {names}; give each with --input NAME=FILE.npy, or all with --random"
        )
    if seed is None:
        return given
    size = fitting_size(missing, lambda feed: _takes(session, {**feed, **given}), seed)
    return sample_feed(missing, unknown=size, seed=seed) | given


def _takes(session: Session, feed: dict[str, Any]) -> bool:
    """Whether a model runs on inputs, so that sizes that it cannot take are not made up."""
    try:
        session.run(None, feed)
    except FoldlineError:
        return False
    return True


def _show(named: dict[str, Any], times: list[float], as_json: bool) -> None:
    rows = [(name, *_described(value)) for name, value in named.items()]
    if as_json:
        outputs = [dict(zip(("name", "type", "shape"), row[:3], strict=True)) for row in rows]
        print_json({"outputs": outputs, "seconds": times})
        return
    print_table("Outputs", ("output", "type", "shape", "values"), rows, err=False)
    best, runs = min(times), len(times)
    mean = f", mean {seconds_text(sum(times) / runs)}" if runs > 1 else ""
    click.echo(f"{runs} run{'s' if runs > 1 else ''}: best {seconds_text(best)}{mean}")


def _described(value: Any) -> tuple[str, list[int], str]:
    """Type, shape and the first values."""
    if value is None:
        return "absent", [], ""
    if isinstance(value, list):
        return "sequence", [len(cast("list[Any]", value))], ""
    first = " ".join(str(item) for item in value.reshape(-1)[:6])
    return str(value.dtype), list(value.shape), first + (" …" if value.size > 6 else "")
