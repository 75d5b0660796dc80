"""The page `docs/passes.md`, made from the table of passes and the stages."""

from __future__ import annotations

from collections.abc import Iterator

from foldline.stages.pipeline import PIPELINE
from foldline.stages.stage import Stage, Step
from foldline.support.passes import LEVELS, PASSES, PassInfo

_HEAD = """# Passes

Made by `foldline passes --markdown > docs/passes.md` from the table of passes and the stages; a
test compares. A pass runs from its level on, unless its switch or `--disable-NAME` turns it off;
`--enable-NAME` turns it on at any level. Passes that do not preserve bits may move last bits of
results; *opt-in* ones run only when named.
"""


def passes_page() -> str:
    """The page as text."""
    return "\n".join((_HEAD, *_by_level(), *_by_stage()))


def _by_level() -> Iterator[str]:
    for level in LEVELS:
        rows = [info for info in PASSES.values() if info.level == level]
        if rows:
            yield f"## From {level}\n"
            yield "| pass | what it does | switch | bits | builds on |"
            yield "|---|---|---|---|---|"
            yield from map(_row, rows)
            yield ""


def _row(info: PassInfo) -> str:
    notes = [
        text for text, holds in (("opt-in", info.opt_in), ("required", info.required)) if holds
    ]
    name = f"`{info.name}`" + (f" ({', '.join(notes)})" if notes else "")
    switch = f"`{info.switch}`" if info.switch else "–"
    bits = "preserved" if info.preserves_bits else "may move"
    before = ", ".join(f"`{other}`" for other in info.runs_after) or "–"
    return f"| {name} | {info.help} | {switch} | {bits} | {before} |"


def _by_stage() -> Iterator[str]:
    yield "## In the stages\n"
    yield "Passes of one group are shown each node in turn, in one traversal.\n"
    for number, stage in enumerate(PIPELINE, 1):
        yield f"### {number}. {stage.name}\n"
        yield f"Promise: {stage.promise}.\n"
        yield from _steps(stage)
        yield ""


def _steps(stage: Stage) -> Iterator[str]:
    if not stage.steps:
        yield "No passes yet."
    for number, step in enumerate(stage.steps, 1):
        if step.kind == "traversal":
            yield f"{number}. one traversal of"
            yield from (f"   * {line}" for line in _lines(step))
        else:
            yield from (f"{number}. {line}" for line in _lines(step))


def _lines(step: Step) -> Iterator[str]:
    for placed in step.placed:
        yield f"`{placed.run.name}`: {placed.reason}"
