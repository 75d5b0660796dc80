"""The language of `foldline step`: one command a line, answered by lines of text."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from foldline.stages.rewriting import count_nodes
from foldline.support.errors import FoldlineError, InvalidArgumentError
from foldline.support.suggest import did_you_mean
from foldline.workbench import explain, saved_steps
from foldline.workbench.breakpoints import KINDS, Breakpoint
from foldline.workbench.explain import Lookup, Why
from foldline.workbench.stepper import Stepper

Lines = Iterator[str]
MOST_LINES = 40
"""A difference is shown to so many lines, unless `all` is said."""


@dataclass(frozen=True)
class Command:
    """One command."""

    names: tuple[str, ...]
    """The name, and shorter ones."""
    usage: str
    """What follows the name; words in brackets may be left out."""
    help: str
    run: Callable[[Console, Sequence[str]], Lines]


class Console:
    """Executes commands on a stepper."""

    def __init__(self, stepper: Stepper, read_inputs: Callable[[str], Mapping[str, Any]]):
        """`read_inputs` reads the file of inputs that `run` is given."""
        self.stepper = stepper
        self.read_inputs = read_inputs
        self.is_over = False

    def execute(self, line: str) -> Lines:
        """The answer to a line; what is wrong with it is an answer too. `#` begins a comment."""
        try:
            words = shlex.split(line, comments=True)
        except ValueError as error:
            yield f"Error: {error}"
            return
        if not words:
            return
        try:
            yield from self._command(words[0]).run(self, words[1:])
        except FoldlineError as error:
            yield f"Error: {error}"

    def where(self) -> str:
        """One line on where one stands."""
        stop = self.stepper.here
        nodes = count_nodes(stop.module)
        inside = f", {stop.done} of {len(stop.changes)} changes made" if stop.done else ""
        return f"[{len(self.stepper.stops)}] {stop.why}{inside}; {nodes} nodes"

    def words(self) -> list[str]:
        """What a line may begin with, and what may follow: for completion."""
        names = Lookup(self.stepper.here.module).names
        return [*(name for command in COMMANDS for name in command.names), *KINDS, *names]

    @staticmethod
    def _command(word: str) -> Command:
        for command in COMMANDS:
            if word in command.names:
                return command
        known = [name for command in COMMANDS for name in command.names if len(name) > 1]
        raise InvalidArgumentError(f"no command {word!r}{did_you_mean(word, known)}; try help")


def _moved(console: Console) -> Lines:
    yield console.where()


def _step(console: Console, words: Sequence[str]) -> Lines:
    for _ in range(_count(words)):
        console.stepper.step()
    return _moved(console)


def _change(console: Console, words: Sequence[str]) -> Lines:
    for _ in range(_count(words)):
        console.stepper.change()
    yield console.where()
    yield from console.stepper.since().lines()


def _stage(console: Console, words: Sequence[str]) -> Lines:
    _no_more(words)
    console.stepper.stage()
    return _moved(console)


def _until(console: Console, words: Sequence[str]) -> Lines:
    console.stepper.until_pass(_one(words, "a pass"))
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
        yield f"next: {due.title}"
        if (change := console.stepper.next_change()) is not None:
            at = f" at {change.op_type} '{change.node}'" if change.op_type else ""
            yield f"its next change: {change.pass_name}{at}"


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
    is_whole, shows_all = "start" in words, "all" in words
    _no_more([word for word in words if word not in ("start", "all")])
    lines = list((stepper.since_start() if is_whole else stepper.since()).lines())
    yield from lines if shows_all else lines[:MOST_LINES]
    if not lines:
        yield "no difference"
    elif len(lines) > MOST_LINES and not shows_all:
        yield f"and {len(lines) - MOST_LINES} more; diff all shows them"


def _nodes(console: Console, words: Sequence[str]) -> Lines:
    glob = _one(words, "a glob") if words else "*"
    for _, node in Lookup(console.stepper.here.module).nodes:
        if not node.is_constant and any(
            fnmatchcase(text, glob) for text in (node.label, node.op_type)
        ):
            yield str(node)


def _show(console: Console, words: Sequence[str]) -> Lines:
    depth = _number(words[1]) if len(words) == 2 else 1
    name = _one(words[:1] if len(words) == 2 else words, "a node")
    return explain.around(Lookup(console.stepper.here.module), name, depth)


def _value(console: Console, words: Sequence[str]) -> Lines:
    name = _one(words, "a value")
    return explain.value_lines(Lookup(console.stepper.here.module), name)


def _marks(console: Console, words: Sequence[str]) -> Lines:
    _no_more(words)
    lines = list(explain.marks(console.stepper.here.module))
    yield from lines or ["no marks"]


def _why(console: Console, words: Sequence[str]) -> Lines:
    name = _one(words, "a node")
    stepper = console.stepper
    run = stepper.here.shown
    why = Why(stepper.original, stepper.here.module, run.report.remarks, stepper.ahead())
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
    width = max(len(_head(command)) for command in COMMANDS)
    for command in COMMANDS:
        if not words or words[0] in command.names:
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
    Command(("next", "n"), "[COUNT]", "run the step that is due: a pass, or a traversal", _step),
    Command(("change", "c"), "[COUNT]", "make the next change of a pass or rule", _change),
    Command(("stage", "s"), "", "run to the next stage", _stage),
    Command(("until", "u"), "PASS", "run until a pass, or stage/pass, is due", _until),
    Command(("continue", "go"), "", "run to a breakpoint, or to the end", _continue),
    Command(("undo", "back"), "", "return to the stop before, as it was shown", _undo),
    Command(("where", "w"), "", "where one stands, and what comes next", _where),
    Command(("break", "b"), "[KIND GLOB]", f"stop at a {', '.join(KINDS)}; list them", _break),
    Command(("delete",), "NUMBER", "forget a breakpoint", _delete),
    Command(("diff", "d"), "[start] [all]", "what is different since the last stop", _diff),
    Command(("nodes",), "[GLOB]", "list nodes by name or operator", _nodes),
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
