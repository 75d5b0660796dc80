"""How a graph is optimised."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from foldline.stages.rewrite.defaults import DefaultsOptions
from foldline.stages.rewrite.optimize import MAX_ITERATIONS
from foldline.stages.rewrite.transform import Transform
from foldline.support.remarks import Remark


@dataclass(frozen=True)
class OptimizeOptions:
    """What runs, how often, and what is shown of it."""

    transforms: Sequence[Transform] | None = None
    """Exactly these, built-in ones and the user's; None: the graph's default ones."""
    defaults: DefaultsOptions | None = None
    """What the default ones are made of; None: what suits the graph."""
    max_iterations: int = MAX_ITERATIONS
    verify: bool = False
    """Verify the module after each transform, and watch over all of it while rules run."""
    dry_run: bool = False
    """Report what would be done, and leave the graph as it is."""
    trace: Callable[[Remark], None] | None = None
    """Called with each remark once the run is over: what was replaced, declined, nearly matched."""
