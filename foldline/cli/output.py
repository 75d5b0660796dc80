"""How commands speak: tables that are plain when piped, JSON for machines, files for models."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import click

from foldline.support.progress import listening, tell

Item = TypeVar("Item")


def print_table(
    title: str, headers: Sequence[str], rows: Iterable[Sequence[Any]], err: bool
) -> None:
    """A table: drawn on a terminal; aligned columns, never cut or wrapped, elsewhere."""
    texts = [[_text(cell) for cell in row] for row in rows]
    stream = sys.stderr if err else sys.stdout
    if stream.isatty():
        _print_drawn(title, headers, texts, err)
        return
    columns = list(zip(headers, *texts, strict=True))
    widths = [max(map(len, column)) for column in columns]
    for line in (headers, *texts):
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo("  ".join(cells).rstrip(), err=err)


def _print_drawn(
    title: str, headers: Sequence[str], rows: Iterable[Sequence[str]], err: bool
) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left")
    for header in headers:
        table.add_column(header, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    Console(stderr=err).print(table)


def print_json(document: Any) -> None:
    """One JSON document on one line."""
    click.echo(json.dumps(document, allow_nan=False, default=str))


@contextmanager
def progress(what: str) -> Generator[None]:
    """Show on a terminal how far the work in the block is, which says so by `tell`."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, redirect_stdout=sys.stdout.isatty()
    ) as bar:
        task = bar.add_task(escape(what), total=None)

        def show(doing: str, done: int, total: int) -> None:
            text = escape(f"{what}: {doing}")
            bar.update(task, description=text, completed=done, total=total or None)

        with listening(show):
            yield


def tracked(items: Sequence[Item], what: str, label: Callable[[Item], str] = str) -> Iterator[Item]:
    """The items, with a bar on a terminal that says which one is worked on."""
    with progress(what):
        for done, item in enumerate(items):
            tell(label(item), done, len(items))
            yield item


def escape(text: str) -> str:
    """Text that rich shows as it is."""
    return text.replace("[", r"\[")


def model_source(model: str) -> str | bytes:
    """A model that a user names: a path, or the bytes on standard input for `-`."""
    return sys.stdin.buffer.read() if model == "-" else model


def seconds_text(seconds: float) -> str:
    """A duration with three digits or so."""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def _text(cell: Any) -> str:
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, tuple | list):
        return ", ".join(map(str, cast("Sequence[Any]", cell))) or "-"
    return str(cell)
