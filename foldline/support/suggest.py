"""How requests that cannot be honoured are worded: all at once, with the nearest valid name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from foldline.support.errors import InvalidOption

SHORT_LIST = 12
"""So many valid names are written out when none is near."""


def did_you_mean(name: str, valid: Iterable[str]) -> str:
    """The end of a sentence about an unknown `name`: the nearest valid one, or what is valid."""
    choices = sorted(set(valid))
    folded = {choice.lower(): choice for choice in choices}
    near = get_close_matches(name.lower(), folded, n=1)
    if near:
        return f"; did you mean {folded[near[0]]!r}?"
    if choices and len(choices) <= SHORT_LIST:
        return f"; valid: {', '.join(choices)}"
    return ""


def refuse(problems: Sequence[str]) -> None:
    """Raise one `InvalidOption` that lists every problem; do nothing when there is none."""
    if not problems:
        return
    if len(problems) == 1:
        raise InvalidOption(problems[0])
    lines = "".join(f"\n  {problem}" for problem in problems)
    raise InvalidOption(f"{len(problems)} things are wrong with the options:{lines}")
