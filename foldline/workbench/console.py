"""The language of `foldline step`: one command a line, answered by lines of text."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import Any

from foldline.stages.rewriting import count_nodes
from foldline.support.errors import FoldlineError
from foldline.support.passes import PASSES
from foldline.workbench.breakpoints import KINDS
from foldline.workbench.caught import Caught
from foldline.workbench.commands import COMMANDS, Lines, named
from foldline.workbench.explain import Lookup
from foldline.workbench.stepper import Stepper


class Console:
    """Executes commands on a stepper."""

    def __init__(self, stepper: Stepper, read_inputs: Callable[[str], Mapping[str, Any]]):
        """`read_inputs` reads the file of inputs that `run` is given."""
        self.stepper = stepper
        self.read_inputs = read_inputs
        self.is_over = False
        self._lookup: Lookup | None = None

    def execute(self, line: str) -> Lines:
        """The answer to a line; what is wrong with it is an answer too. `#` begins a comment."""
        try:
            words = shlex.split(line, comments=True)
        except ValueError as error:
            yield f"Error: {error}"
            return
        if not words:
            return
        # What a pass raises is said, too: one still stands before it, and can look.
        with Caught() as caught:
            yield from named(words[0]).run(self, words[1:])
        if (error := caught.error) is not None:
            is_ours = not isinstance(error, FoldlineError | OSError)
            yield f"Error: {f'{type(error).__name__}: ' if is_ours else ''}{error}"

    def where(self) -> str:
        """One line on where one stands."""
        stop = self.stepper.here
        nodes = count_nodes(stop.module)
        inside = f", {stop.done} of {len(stop.changes)} changes made" if stop.done else ""
        return f"[{self.stepper.number}] {stop.why}{inside}; {nodes} nodes"

    def lookup(self) -> Lookup:
        """The nodes and values of the module here, by name."""
        module = self.stepper.here.module
        if self._lookup is None or self._lookup.module is not module:
            self._lookup = Lookup(module)
        return self._lookup

    def words(self, begun: str) -> list[str]:
        """What the last word of a line may become: for completion.

        The first word is a command; others name commands, kinds, stages, passes, nodes and values.
        """
        commands = [name for command in COMMANDS for name in command.names if len(name) > 1]
        first, *others = begun.split(" ")
        if not others:
            return [name for name in commands if name.startswith(first)]
        stages = [stage.name for stage in self.stepper.here.ahead.run.stages]
        names = self.lookup().names
        known = dict.fromkeys((*names, *KINDS, *stages, *PASSES, "start", "all"))
        return [name for name in known if name.startswith(others[-1])]
