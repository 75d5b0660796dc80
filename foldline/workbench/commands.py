"""The commands of `foldline step`, each a function from words to lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from foldline.support.errors import InvalidArgumentError
from foldline.support.suggest import did_you_mean
from foldline.workbench import explain, saved_steps
from foldline.workbench.breakpoints import KINDS, Breakpoint
from foldline.workbench.difference import Changed, Difference, difference
from foldline.workbench.why import Why, place_of, wrapped

if TYPE_CHECKING:
    from foldline.workbench.console import Console

Lines = Iterator[str]
MOST_LINES = 20
"""Nodes and differences are listed to so many lines, unless `all` is said."""


@dataclass(frozen=True)
class Command:
    """One command."""

    names: tuple[str, ...]
    """The name, and shorter ones."""
    usage: str
    """What follows the name; words in brackets may be left out."""
    help: str
    run: Callable[[Console, Sequence[str]], Lines]


def _moved(console: Console) -> Lines:
    yield console.where()


def _step(console: Console, words: Sequence[str]) -> Lines:
    for _ in range(_count(words)):
        console.stepper.step()
    return _moved(console)


def _change(console: Console, words: Sequence[str]) -> Lines:
    stepper, before = console.stepper, console.stepper.here.module
    for _ in range(_count(words)):
        stepper.change()
    yield console.where()
    if stepper.here.module is not before:
        yield from _shown(difference(before, stepper.here.module, inferred=True), everything=False)


def _stage(console: Console, words: Sequence[str]) -> Lines:
    _no_more(words)
    console.stepper.stage()
    return _moved(console)


def _until(console: Console, words: Sequence[str]) -> Lines:
    if len(words) == 2:
        console.stepper.resume([Breakpoint(*words)])
    else:
        console.stepper.until_named(_one(words, "a pass, a stage, or a kind and a glob"))
    return _moved(console)


def _continue(console: Console, words: Sequence[str]) -> Lines:
    _no_more(words)
    console.stepper.resume()
    return _moved(console)


def _undo(console: Console, words: Sequence[str]) -> Lines:
    _no_more(words)
    if not console.stepper.undo():
        why = (
            "earlier stops are forgotten" if console.stepper.forgotten else "this is the first stop"
        )
        raise InvalidArgumentError(f"nothing to undo: {why}")
    return _moved(console)


def _where(console: Console, words: Sequence[str]) -> Lines:
    _no_more(words)
    yield console.where()
    due = console.stepper.here.due
    if due is not None:
        yield from wrapped(f"next: {due.stage}/{', '.join(due.passes)}")
        if (change := console.stepper.next_change()) is not None:
            yield f"its next change: {change.pass_name}{place_of(change)}"


def _break(console: Console, words: Sequence[str]) -> Lines:
    points = console.stepper.breakpoints
    if words:
        if len(words) != 2:
            raise InvalidArgumentError("say break KIND GLOB, as in: break type Conv")
        points.append(Breakpoint(*words))
    for number, point in enumerate(points, 1):
        yield f"{number}. {point}"
    if not points:
        yield "no breakpoints"


def _delete(console: Console, words: Sequence[str]) -> Lines:
    points = console.stepper.breakpoints
    number = _number(_one(words, "the number of a breakpoint"))
    if not 1 <= number <= len(points):
        raise InvalidArgumentError(f"there is no breakpoint {number}; {len(points)} are set")
    yield f"gone: {points.pop(number - 1)}"


def _diff(console: Console, words: Sequence[str]) -> Lines:
    stepper = console.stepper
    _no_more([word for word in words if word not in ("start", "all")])
    found = stepper.since_start() if "start" in words else stepper.since()
    return _shown(found, everything="all" in words)


def _shown(found: Difference, everything: bool) -> Lines:
    """What is different in short, then line by line; constants and types only with everything."""
    if not found:
        yield "no difference"
        return
    gone = [removed for removed in found.removed if not removed.node.is_constant]
    new = [node for node in found.added if not node.is_constant]
    changed = [change for change in found.changed if not _is_only_typed(change)]
    yield (
        f"nodes: {len(gone)} gone, {len(new)} new, {len(changed)} changed, "
        f"{len(found.changed) - len(changed)} typed; constants: "
        f"{len(found.removed) - len(gone)} gone, {len(found.added) - len(new)} new"
    )
    if everything:
        yield from found.lines()
        return
    lines = [f"- {it.node.op_type} '{it.node.label}'    [{it.fate}]" for it in gone]
    lines += replace(found, removed=[], added=new, changed=changed).lines()
    yield from _cut(lines, everything)


def _is_only_typed(change: Changed) -> bool:
    return change.after.is_constant or all(what.startswith("type ") for what in change.what)


def _nodes(console: Console, words: Sequence[str]) -> Lines:
    everything = "all" in words
    words = [word for word in words if word != "all"]
    glob = _one(words, "a glob") if words else "*"
    found = [
        node
        for _, node in console.lookup().nodes
        if not node.is_constant
        and any(fnmatchcase(text, glob) for text in (node.label, node.op_type))
    ]
    if not found:
        yield f"no node and no operator is called {glob!r}"
    yield from _cut(list(map(str, found)), everything)


def _cut(lines: Sequence[str], everything: bool) -> Lines:
    yield from lines if everything else lines[:MOST_LINES]
    if len(lines) > MOST_LINES and not everything:
        yield f"and {len(lines) - MOST_LINES} more; say all to see them"


def _show(console: Console, words: Sequence[str]) -> Lines:
    depth = _number(words[1]) if len(words) == 2 else 1
    name = _one(words[:1] if len(words) == 2 else words, "a node")
    return explain.around(console.lookup(), name, depth)


def _value(console: Console, words: Sequence[str]) -> Lines:
    name = _one(words, "a value")
    return explain.value_lines(console.lookup(), name)


def _marks(console: Console, words: Sequence[str]) -> Lines:
    _no_more(words)
    lines = list(explain.marks(console.stepper.here.module))
    yield from lines or ["no marks"]


def _why(console: Console, words: Sequence[str]) -> Lines:
    name = _one(words, "a node")
    stepper = console.stepper
    remarks = stepper.here.shown.report.remarks
    why = Why(stepper.original, stepper.here.module, remarks, stepper.past(), stepper.ahead())
    return why.lines(name)


def _run(console: Console, words: Sequence[str]) -> Lines:
    inputs = console.read_inputs(_one(words, "a file of inputs")) if words else None
    result = console.stepper.compare(inputs, None)
    for case in result.cases:
        said = "same bits" if case.equal else f"differs by {case.max_error:.3g}"
        where = f" in {case.output}: {case.message}" if case.output else ""
        yield f"{case.name}: {case.message if case.equal and case.message else said + where}"


def _save(console: Console, words: Sequence[str]) -> Lines:
    folder = Path(_one(words, "a folder"))
    saved_steps.save(console.stepper, folder)
    yield f"saved; go on with: foldline step --resume {folder}"


def _print(console: Console, words: Sequence[str]) -> Lines:
    from foldline.stages.observers import module_text

    _no_more(words)
    yield from module_text(console.stepper.here.module).splitlines()


def _help(console: Console, words: Sequence[str]) -> Lines:
    asked = [named(_one(words, "a command"))] if words else COMMANDS
    width = max(len(_head(command)) for command in asked)
    for command in asked:
        yield f"{_head(command).ljust(width)}  {command.help}"


def _quit(console: Console, words: Sequence[str]) -> Lines:
    _no_more(words)
    console.is_over = True
    yield from ()


def _head(command: Command) -> str:
    return f"{', '.join(command.names)} {command.usage}".rstrip()


def _one(words: Sequence[str], what: str) -> str:
    if len(words) != 1:
        raise InvalidArgumentError(f"name {what}" if not words else f"name {what} and no more")
    return words[0]


def _no_more(words: Sequence[str]) -> None:
    if words:
        raise InvalidArgumentError(f"{words[0]!r} is too much here")


def _count(words: Sequence[str]) -> int:
    return _number(_one(words, "a number")) if words else 1


def _number(word: str) -> int:
    if not word.isdecimal() or int(word) < 1:
        raise InvalidArgumentError(f"{word!r} is no number from 1 on")
    return int(word)


COMMANDS = (
    Command(
        ("next", "n", "step"), "[COUNT]", "run the step that is due: a pass, or a traversal", _step
    ),
    Command(("change", "c"), "[COUNT]", "make the next change of a pass or rule", _change),
    Command(("stage", "s"), "", "run to the next stage", _stage),
    Command(
        ("until", "u"),
        "PASS | STAGE | KIND GLOB",
        "run to a pass, stage, or change that a breakpoint would stop at",
        _until,
    ),
    Command(("continue", "go"), "", "run to a breakpoint, or to the end", _continue),
    Command(("undo", "back"), "", "return to the stop before, as it was shown", _undo),
    Command(("where", "w"), "", "where one stands, and what comes next", _where),
    Command(("break", "b"), "[KIND GLOB]", f"stop at a {', '.join(KINDS)}; list them", _break),
    Command(("delete",), "NUMBER", "forget a breakpoint", _delete),
    Command(("diff", "d"), "[start] [all]", "what is different since the last stop", _diff),
    Command(("nodes",), "[GLOB] [all]", "list nodes by name or operator", _nodes),
    Command(("show",), "NODE [DEPTH]", "a node, what it reads (^) and what reads it (v)", _show),
    Command(("value", "v"), "VALUE", "type, contents and facts of a value", _value),
    Command(("marks",), "", "potential constants and partly known values", _marks),
    Command(("why",), "NODE", "why it was, or was not, folded or fused", _why),
    Command(("run", "r"), "[INPUTS.npz]", "run the model here and as imported; compare", _run),
    Command(("print", "p"), "", "the module as text", _print),
    Command(("save",), "FOLDER", "save where one stands", _save),
    Command(("help", "h", "?"), "[COMMAND]", "list the commands", _help),
    Command(("quit", "q"), "", "leave", _quit),
)


def named(word: str) -> Command:
    """The command of that name. Raises InvalidArgumentError."""
    for command in COMMANDS:
        if word in command.names:
            return command
    known = [name for command in COMMANDS for name in command.names if len(name) > 1]
    raise InvalidArgumentError(f"no command {word!r}{did_you_mean(word, known)}; try help")
