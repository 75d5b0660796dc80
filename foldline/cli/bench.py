"""`foldline bench`: how long models take, at levels and numbers of threads, in turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median
from time import perf_counter
from typing import Any

import click

from foldline.cli.flags import json_flag, option_flags, options_said
from foldline.cli.output import model_source, print_json, print_table, progress, seconds_text
from foldline.support.passes import LEVELS

LEAST_ROUNDS = 3


@click.command("bench")
@click.argument("models", nargs=-1, required=True)
@click.option("--levels", default="O0,O3", show_default=True, help="With commas between.")
@click.option("--threads-each", "counts", default="1", show_default=True, help="The same.")
@click.option("--seconds", default=2.0, show_default=True, type=click.FloatRange(min=0))
@click.option("--input", "files", multiple=True, metavar="NAME=FILE.npy", help="Give an input.")
@click.option("--seed", default=0, show_default=True, help="Of the made-up inputs.")
@json_flag
@option_flags
def bench_command(
    models: tuple[str, ...],
    levels: str,
    counts: str,
    seconds: float,
    files: tuple[str, ...],
    seed: int,
    as_json: bool,
) -> None:
    """Time MODELS on given or made-up inputs: compile, first run, best and median run.

    Levels and numbers of threads take turns, so that what disturbs the machine disturbs all.
    """
    chosen = [_one_of(word, LEVELS) for word in levels.split(",")]
    threads = [_count(word) for word in counts.split(",")]
    rows: list[dict[str, Any]] = []
    for model in models:
        with progress(f"timing {model}"):
            rows += _timed(model, chosen, threads, seconds, files, seed)
    if as_json:
        print_json(rows)
        return
    headers = ("model", "level", "threads", "nodes", "compile", "first run", "best", "median")
    facts, times = ("model", "level", "threads", "nodes"), ("compile", "first", "best", "median")
    cells = (
        [*(row[name] for name in facts), *(seconds_text(row[name]) for name in times)]
        for row in rows
    )
    print_table("Times", headers, cells, err=False)


def _timed(
    model: str,
    levels: list[str],
    threads: list[int],
    seconds: float,
    files: tuple[str, ...],
    seed: int,
) -> list[dict[str, Any]]:
    """A row for each level and number of threads."""
    from foldline.cli.run import feed_of
    from foldline.compiler import compile

    source, rows = model_source(model), list[dict[str, Any]]()
    runs: list[Callable[[], Any]] = []
    for level in levels:
        compiled, spent = _spent(
            lambda level=level: compile(source, options={**options_said(), "oo.level": level})
        )
        for count in threads:
            session = compiled.session(threads=count)
            feed: Mapping[str, Any] = feed_of(session, files, seed)
            runs.append(lambda session=session, feed=feed: session.run(None, feed))
            _, first = _spent(runs[-1])
            nodes = compiled.report.rows[-1].nodes_after if compiled.report.rows else None
            row = {"model": model, "level": level, "threads": count, "nodes": nodes}
            rows.append({**row, "compile": spent, "first": first})
    for row, taken in zip(rows, _in_turns(runs, seconds), strict=True):
        row |= {"best": min(taken), "median": median(taken), "runs": len(taken)}
    return rows


def _in_turns(runs: list[Callable[[], Any]], seconds: float) -> list[list[float]]:
    """Seconds of each run, until the time is over."""
    taken: list[list[float]] = [[] for _ in runs]
    end = perf_counter() + seconds
    while len(taken[0]) < LEAST_ROUNDS or perf_counter() < end:
        for run, samples in zip(runs, taken, strict=True):
            samples.append(_spent(run)[1])
    return taken


def _spent(act: Callable[[], Any]) -> tuple[Any, float]:
    start = perf_counter()
    result = act()
    return result, perf_counter() - start


def _one_of(word: str, known: tuple[str, ...]) -> str:
    if word not in known:
        raise click.BadParameter(f"{word!r} is none of {', '.join(known)}", param_hint="--levels")
    return word


def _count(word: str) -> int:
    if not word.isdecimal() or not int(word):
        raise click.BadParameter(f"{word!r} is no number from 1 on", param_hint="--threads-each")
    return int(word)
