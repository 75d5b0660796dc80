"""Patterns of operators that fusion is about, found by their shape, without the rules for them.

`instances(module)` names them in a module that is cleaned up, before fusion, and `left_of` those
that are left in the same module after it. What is found here is meant to be more than what rules
take: conditions on types, axes and shapes are left to them, which have to say why not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from benchmarks.pattern_kinds import KINDS, PatternKind
from foldline.dialects.onnx.op import NodeOp, result_names
from foldline.stages.rewrite.match import name_of


@dataclass(frozen=True)
class Instance:
    """An occurrence of a pattern."""

    kind: PatternKind
    names: frozenset[str]
    """What remarks call its nodes."""
    anchor: NodeOp
    key: tuple[str, str]
    """The operator of the anchor, and the name of its result."""


def instances(module: ModuleOp) -> list[Instance]:
    """The instances of all patterns in a module."""
    found: list[Instance] = []
    for op in module.walk():
        if not isinstance(op, NodeOp):
            continue
        for kind in KINDS:
            nodes = kind.find(op)
            if nodes is not None:
                found.append(Instance(kind, frozenset(map(name_of, nodes)), op, _key(op)))
    return found


def left_of(found: Iterable[Instance], module: ModuleOp) -> list[Instance]:
    """The instances that are left in a module of those found before fusion."""
    ops = {op for op in module.walk() if isinstance(op, NodeOp)}
    keys = {key for op in ops if (key := _key(op))[1]}
    again = [each for each in instances(module) if each.kind.searched_again]
    return again + [
        each
        for each in found
        if not each.kind.searched_again and (each.anchor in ops or each.key in keys)
    ]


def _key(op: NodeOp) -> tuple[str, str]:
    return op.name, next(iter(result_names(op)), "") or ""


def explained(instance: Instance, remarks: Iterable[tuple[str, str, str]]) -> str:
    """The remark that says why an instance is left, '' where none does.

    Remarks are passes, nodes and messages of what was declined.
    """
    about = [remark for remark in remarks if remark[1] in instance.names]
    for name, _, message in about:
        if name in instance.kind.passes:
            return f"{name}: {message}"
    return ""
