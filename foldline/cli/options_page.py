"""The page `docs/options.md`, made from the tables of options and debug settings."""

from __future__ import annotations

from collections.abc import Iterator

from foldline.cli.flags import DEBUG_FLAGS
from foldline.support.debug_options import CHECK_MODES, VARIABLE
from foldline.support.option_table import EVERYWHERE, OPTIONS

_HEAD = """# Options

Made by `foldline options --markdown > docs/options.md` from the table of options; a test compares.

An option is set on the command line (`--KEY VALUE`, `--ge.KEY`, the underscore spelling, or
`--set KEY=VALUE`; shapes of inputs as `--input-shape NAME:DIMS`), in YAML
(`options: {KEY: VALUE}`), or in Python
(`foldline.compile(model, options={"KEY": value})`). The graph scope (command line, `options=`, an
entry of `models:`) is stronger than the session scope (`foldline.Compiler(options)`, `options:` in
YAML), which is stronger than the global one (`foldline.set_options`, the user's configuration).
`foldline options --explain MODEL` prints each value that holds, and what set it. Unknown keys and
values that do not fit are errors that name what would.
"""
_DEBUG = f"""## Debug settings

As flags, under `debug:` in YAML, or in the variable `{VARIABLE}`. They show what a compile does and
never change it.

| setting | what it does |
|---|---|"""
_CHECK = f"""`check`, under `debug:` in YAML, is the flag `--check` of `foldline compile` and
`foldline optimize`: {", ".join(f"`{mode}`" for mode in CHECK_MODES)}."""


def options_page() -> str:
    """The page as text."""
    return "\n".join((_HEAD, *_options(), "", _DEBUG, *_debug(), "", _CHECK)) + "\n"


def _options() -> Iterator[str]:
    yield "| key | values | default | may be set in | what it does |"
    yield "|---|---|---|---|---|"
    for row in OPTIONS.values():
        scopes = "every scope" if row.scopes == EVERYWHERE else ", ".join(row.scopes)
        default = "–" if row.shown == "-" else f"`{row.shown}`"
        yield f"| `{row.key}` | {_cell(row.kind.text)} | {default} | {scopes} | {row.help} |"


def _debug() -> Iterator[str]:
    for flag, settings in DEBUG_FLAGS.items():
        metavar = settings.get("metavar")
        name = f"--{flag} {metavar}" if metavar else f"--{flag}"
        yield f"| `{name}` | {settings['help']} |"


def _cell(text: str) -> str:
    """A vertical bar would end the cell."""
    return text.replace("|", ", ")
