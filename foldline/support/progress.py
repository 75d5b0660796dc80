"""How far long work is: told by what does it, and shown by whoever listens (the command line)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Item = TypeVar("Item")
Listener = Callable[[str, int, int], None]
"""Takes what is being done, how many parts are done, and of how many; 0 where nobody knows."""

_listener: ContextVar[Listener | None] = ContextVar("progress", default=None)


def tell(what: str, done: int = 0, total: int = 0) -> None:
    """Say what is being done now; costs nothing to speak of where nobody listens."""
    listener = _listener.get()
    if listener is not None:
        listener(what, done, total)


def told(items: Iterable[Item], what: str, total: int, each: int = 1) -> Iterator[Item]:
    """The items, and every so many of them how far it is."""
    if _listener.get() is None:
        yield from items
        return
    for done, item in enumerate(items):
        if done % each == 0:
            tell(what, done, total)
        yield item


@contextmanager
def listening(listener: Listener) -> Generator[None]:
    """Hear what is told inside the block."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
