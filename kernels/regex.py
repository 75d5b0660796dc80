r"""Regular expressions in RE2 syntax, compiled by Python's `re`.

    RE2 pattern -> tokens -> the same in Python's syntax -> `re.compile`

Both have one core. What differs is rewritten: `\d \s \w \b` and the POSIX classes are ASCII, `\z`,
`\Q…\E`, `\x{…}`, `(?<name>…)`, flags that begin in mid-pattern, and `$`, which is the very end of
the text. What only Python has (look-around, back references) is refused, and so is what Python
lacks (`\p{…}`, `\C`, the flag U).
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field, replace

Ranges = tuple[tuple[int, int], ...]
"""Code points from, to, both included, ascending."""


def _ranges(text: str) -> Ranges:
    """Ranges written as pairs of characters: "09az"."""
    return tuple((ord(a), ord(b)) for a, b in zip(text[::2], text[1::2], strict=True))


_CLASSES: dict[str, Ranges] = {
    "alnum": _ranges("09AZaz"),
    "alpha": _ranges("AZaz"),
    "ascii": _ranges("\x00\x7f"),
    "blank": _ranges("\t\t  "),
    "cntrl": _ranges("\x00\x1f\x7f\x7f"),
    "digit": _ranges("09"),
    "graph": _ranges("!~"),
    "lower": _ranges("az"),
    "print": _ranges(" ~"),
    "punct": _ranges("!/:@[`{~"),
    "space": _ranges("\t\r  "),
    "upper": _ranges("AZ"),
    "word": _ranges("09AZ__az"),
    "xdigit": _ranges("09AFaf"),
}
_PERL: dict[str, Ranges] = {
    "d": _CLASSES["digit"],
    "s": _ranges("\t\n\f\r  "),
    "w": _CLASSES["word"],
}

_OUTSIDE = re.compile(
    r"\\Q(?P<quoted>.*?)(?:\\E|\Z)"
    r"|\\x\{(?P<hex>[0-9A-Fa-f]+)\}"
    r"|\\(?P<escape>.)"
    r"|\(\?(?P<set>[a-zA-Z]*)(?:-(?P<clear>[a-zA-Z]+))?(?P<scope>[:)])"
    r"|\(\?P?<(?P<name>\w+)>"
    r"|(?P<foreign>\(\?)"
    r"|(?P<plain>.)",
    re.DOTALL,
)
_INSIDE = re.compile(
    r"\[:(?P<negated>\^?)(?P<posix>\w+):\]"
    r"|\\x\{(?P<hex>[0-9A-Fa-f]+)\}"
    r"|\\(?P<escape>.)"
    r"|(?P<plain>.)",
    re.DOTALL,
)


@dataclass(frozen=True)
class _Group:
    """An open group: the flags that hold in it and the groups opened only to set them."""

    flags: frozenset[str] = frozenset()
    opened: tuple[str, ...] = ()


@dataclass
class _Output:
    parts: list[str] = field(default_factory=list[str])
    groups: list[_Group] = field(default_factory=lambda: [_Group()])


@functools.lru_cache(maxsize=128)
def compile_re2(pattern: str) -> re.Pattern[str]:
    """The pattern in Python's form; ValueError says why when RE2 or this rewriting refuses it."""
    output = _Output()
    at = 0
    while at < len(pattern):
        at = _step(pattern, at, output)
    output.parts.append(")" * len(output.groups[-1].opened))
    try:
        return re.compile("".join(output.parts))
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a valid RE2 pattern: {error}") from error


def _step(pattern: str, at: int, output: _Output) -> int:
    """Rewrite one token; the position after it."""
    if pattern[at] == "[":
        return _character_class(pattern, at, output.parts)
    token = _OUTSIDE.match(pattern, at)
    assert token is not None
    found = token.groupdict()
    if found["foreign"] is not None:
        raise ValueError(f"{pattern!r}: RE2 has no group that begins with {pattern[at : at + 4]!r}")
    if found["quoted"] is not None:
        output.parts.append(re.escape(found["quoted"]))
    elif found["hex"] is not None:
        output.parts.append(_code_point(int(found["hex"], 16)))
    elif found["escape"] is not None:
        output.parts.append(_escape(pattern, found["escape"]))
    elif found["scope"] is not None:
        _flags(pattern, found, output)
    elif found["name"] is not None:
        _open(f"(?P<{found['name']}>", output)
    else:
        _plain(found["plain"], output)
    return token.end()


def _plain(character: str, output: _Output) -> None:
    group = output.groups[-1]
    if character == "(":
        _open("(", output)
    elif character == ")" and len(output.groups) > 1:
        output.parts.append(")" * (len(group.opened) + 1))
        output.groups.pop()
    elif character == "|" and group.opened:
        # Flags set in mid-group hold in the branches that follow, too.
        output.parts.append(")" * len(group.opened) + "|" + "".join(group.opened))
    elif character == "$" and "m" not in group.flags:
        output.parts.append(r"\Z")
    else:
        output.parts.append(character)


def _open(text: str, output: _Output) -> None:
    output.parts.append(text)
    output.groups.append(_Group(output.groups[-1].flags))


def _flags(pattern: str, found: dict[str, str | None], output: _Output) -> None:
    on, off = set(found["set"] or ""), set(found["clear"] or "")
    if not on | off <= set("ims"):
        raise ValueError(f"{pattern!r}: only the flags i, m and s are known, not {on | off}")
    before = output.groups[-1]
    flags = (before.flags | on) - off
    prefix = f"(?{''.join(sorted(on - off))}{'-' if off else ''}{''.join(sorted(off))}:"
    output.parts.append(prefix)
    if found["scope"] == ":":
        output.groups.append(_Group(flags))
    else:
        output.groups[-1] = replace(before, flags=flags, opened=(*before.opened, prefix))


def _escape(pattern: str, letter: str) -> str:
    if letter.lower() in _PERL:
        return f"[{_perl(letter)}]"
    if letter in "bB":
        return rf"(?a:\{letter})"
    if letter == "z":
        return r"\Z"
    if letter in "pPCGXZkKE123456789":
        raise ValueError(rf"{pattern!r}: \{letter} is not RE2 syntax, or not supported")
    return f"\\{letter}"


def _character_class(pattern: str, at: int, parts: list[str]) -> int:
    start = at + 2 if pattern.startswith("[^", at) else at + 1
    parts.append(pattern[at:start])
    position = start
    while position < len(pattern) and (pattern[position] != "]" or position == start):
        token = _INSIDE.match(pattern, position)
        assert token is not None
        found = token.groupdict()
        if found["posix"] is not None:
            if found["posix"] not in _CLASSES:
                raise ValueError(f"{pattern!r}: there is no class [:{found['posix']}:]")
            parts.append(_written(_CLASSES[found["posix"]], bool(found["negated"])))
        elif found["hex"] is not None:
            parts.append(_code_point(int(found["hex"], 16)))
        elif found["escape"] is not None:
            letter = found["escape"]
            parts.append(_perl(letter) if letter.lower() in _PERL else _escape(pattern, letter))
        else:
            # These could begin what Python reserves for set operations.
            literal = found["plain"] or ""
            parts.append(f"\\{literal}" if literal in "[]&|~" else literal)
        position = token.end()
    if position == len(pattern):
        raise ValueError(f"{pattern!r}: a character class is not closed")
    parts.append("]")
    return position + 1


def _perl(letter: str) -> str:
    return _written(_PERL[letter.lower()], letter.isupper())


def _written(ranges: Ranges, negated: bool) -> str:
    """Ranges as they stand in a character class."""
    if negated:
        edges = [-1, *(edge for pair in ranges for edge in pair), 0x110000]
        gaps = zip(edges[::2], edges[1::2], strict=True)
        ranges = tuple((a + 1, b - 1) for a, b in gaps if a + 1 <= b - 1)
    return "".join(f"{_code_point(a)}-{_code_point(b)}" for a, b in ranges)


def _code_point(code: int) -> str:
    return rf"\U{code:08x}"
