"""A stage: passes in order, and the promise that holds after them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from xdsl.ir import Operation

from foldline.stages.context import PassContext
from foldline.stages.pass_base import GraphPass, NodePass, Pass

Promise = Callable[[Operation, PassContext], bool]


@dataclass(frozen=True)
class Placed:
    """A pass in its place."""

    run: Pass
    reason: str
    """Why it stands here."""


Kind = Literal["whole", "traversal", "rewriting"]


@dataclass(frozen=True)
class Step:
    """What runs at once: a graph pass, node passes of a traversal, or transforms."""

    placed: tuple[Placed, ...]
    kind: Kind


def whole(graph_pass: GraphPass, reason: str) -> Step:
    """A step of one pass over the whole module."""
    return Step((Placed(graph_pass, reason),), "whole")


def traversal(*node_passes: tuple[NodePass, str]) -> Step:
    """A step that shows each node to passes, each given with the reason for its place."""
    return Step(tuple(Placed(p, reason) for p, reason in node_passes), "traversal")


def rewriting(*passes: tuple[Pass, str]) -> Step:
    """A step of transforms, the user's rules among them, run until they find nothing more."""
    return Step(tuple(Placed(p, reason) for p, reason in passes), "rewriting")


def keeps(op: Operation, context: PassContext) -> bool:
    """The promise that says nothing of single operations."""
    return True


@dataclass(frozen=True)
class Stage:
    """Steps in order and a promise."""

    name: str
    promise: str
    """One sentence that is true of every module after this stage."""
    steps: tuple[Step, ...] = ()
    is_legal: Promise = keeps
    """The promise as code, asked of every operation after the last step."""
    rests_on: tuple[str, ...] = ()
    """Passes without which the promise is not made."""
