"""Files under temporary names: gone when done, and cleared away by the next run if killed.

    .foldline-4f1a90b2-31415-9c3e5a7d01.tmp

The first number stands for this computer and the target, the second is the process that writes, so
that what a killed process left is told from what another is writing now.
"""

from __future__ import annotations

import hashlib
import os
import platform
import secrets
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

NO_TAG = "0"


@contextmanager
def temporary_beside(target: Path, tag: str = NO_TAG) -> Generator[Path]:
    """A path in the folder of `target` to write to and rename; what is left there is removed.

    `tag`, letters and digits, is told by `stale_tags` if this process is killed meanwhile.
    """
    name = f"{_prefix(target)}{os.getpid()}-{tag}-{secrets.token_hex(4)}.tmp"
    path = target.parent / name
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def clear_stale(target: Path) -> list[str]:
    """Remove what killed processes of this computer left beside `target`; the tags of it."""
    tags: list[str] = []
    for path, process, tag in _left(target):
        if not _is_alive(process):
            path.unlink(missing_ok=True)
            tags.append(tag)
    return [tag for tag in tags if tag != NO_TAG]


def _left(target: Path) -> Iterator[tuple[Path, int, str]]:
    prefix = _prefix(target)
    for path in target.parent.glob(f"{prefix}*.tmp"):
        process, _, rest = path.name.removeprefix(prefix).partition("-")
        if process.isdecimal():
            yield path, int(process), rest.partition("-")[0]


def _prefix(target: Path) -> str:
    what = f"{platform.node()}\0{target.name}".encode()
    return f".foldline-{hashlib.blake2b(what, digest_size=4).hexdigest()}-"


def _is_alive(process: int) -> bool:
    """Whether a process runs; taken for granted where asking would end it."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
