"""Replacing values of a graph by what a rule builds: checked first, then done at once."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, cast

from xdsl.ir import Block, Operation, OpResult, SSAValue

from foldline.dialects.fused import FUSED_DOMAIN
from foldline.dialects.onnx.attributes import Names, NamesAttr, OpsetsAttr
from foldline.dialects.onnx.builder import Builder
from foldline.dialects.onnx.op import NodeOp, node_name, result_names
from foldline.dialects.onnx.structure import FunctionOp, GraphOp
from foldline.dialects.onnx.traits import holds_cache
from foldline.dialects.onnx.types import UNKNOWN
from foldline.stages.facts import both
from foldline.stages.inference.inference import Inference
from foldline.stages.inference.joining import refine
from foldline.stages.replacing import drop_unused
from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.convexity import dependents
from foldline.stages.rewrite.match import name_of
from foldline.stages.rewrite.order import Index, Order
from foldline.stages.rewrite.provenance import Erased, pass_on
from foldline.stages.rewriting import Rewriter, count_nodes, is_returned
from foldline.support.errors import RewriteError

Build = Callable[[RuleBuilder], Any]
"""Gives the new value, or a sequence of them."""


@dataclass(frozen=True)
class Replaced:
    """What a replacement did."""

    values: list[SSAValue]
    """The new values."""
    added: int
    """Nodes that were made and are read."""
    touched: list[Operation]
    """Operations that have other operands, or other readers, than before."""


@dataclass(frozen=True)
class Replacer:
    """Replaces values of one module."""

    rewriter: Rewriter
    index: Index
    inference: Inference
    """Gives new operations their types; raises RewriteError for what cannot be typed."""

    @property
    def order(self) -> Order:
        """Where operations stand."""
        return self.index.order

    def replace(
        self, nodes: Sequence[NodeOp], outputs: Sequence[SSAValue], build: Build
    ) -> Replaced:
        """Build what takes the place of `outputs`, which `nodes` make.

        Nodes without readers go, shared ones stay. Raises RewriteError where the new values differ
        from the old in number, element type or known sizes, where a result would hang on itself,
        and where a node that holds a cache would go. Nothing has changed then.
        """
        last = max(nodes, key=self.order.position)
        for op in nodes:
            if holds_cache(op):
                raise RewriteError(f"'{name_of(op)}' holds a cache, which no rule may remove")
        moved = dependents(nodes, self.order)
        made, new = self._built(build, outputs, moved, last)
        touched = [v.owner for op in made for v in op.operands if isinstance(v.owner, Operation)]
        touched += [use.operation for old in outputs for use in old.uses]
        ordered = sorted(nodes, key=self.order.position)
        erased = Erased()
        with self._listening(erased):
            self._insert(made, outputs, new, last)
            for op in moved:
                self.rewriter.move_before(op, last)
            for old, value in zip(outputs, new, strict=True):
                made += self._take_over(old, value, last)
            self._drop(nodes, made)
        _pass_on(ordered, erased, new, made)
        return Replaced(new, sum(count_nodes(op) for op in made if op.parent), touched)

    def _built(
        self,
        build: Build,
        outputs: Sequence[SSAValue],
        moved: Sequence[Operation],
        last: NodeOp,
    ) -> tuple[list[Operation], list[SSAValue]]:
        """The new operations, not inserted yet, and the new values; refused ones leave nothing."""
        builder = RuleBuilder(last)
        with ExitStack() as undoing:
            undoing.callback(lambda: [op.erase() for op in reversed(builder.made)])
            new = _as_list(build(builder))
            if len(new) != len(outputs):
                raise RewriteError(f"{len(outputs)} values are replaced, by {len(new)}")
            self._check_operands(builder.made, new, outputs, moved, last)
            undoing.pop_all()
        return builder.made, new

    def _check_operands(
        self,
        made: Sequence[Operation],
        new: Sequence[SSAValue],
        outputs: Sequence[SSAValue],
        moved: Sequence[Operation],
        last: NodeOp,
    ) -> None:
        """Every value that is used is made here, or stands before the place."""
        late = set(moved)
        fresh: set[Operation] = set(made)
        used = [v for op in made for v in op.operands] + list(new)
        for value in used:
            owner = value.owner
            if owner in fresh:
                continue
            if value in outputs or owner in late:
                raise RewriteError("the result would be cyclic: it reads what it replaces")
            if not self._is_before(value, last):
                raise RewriteError("it uses a value that is not defined where the match stands")

    def _is_before(self, value: SSAValue, place: NodeOp) -> bool:
        owner = value.owner
        block = owner if isinstance(owner, Block) else owner.parent
        if block is None:
            return False
        here: Operation | None = place
        while here is not None and here.parent is not block:
            here = here.parent_op()
        if here is None:
            return False
        return isinstance(owner, Block) or self.order.position(owner) < self.order.position(here)

    def _insert(
        self,
        made: Sequence[Operation],
        outputs: Sequence[SSAValue],
        new: Sequence[SSAValue],
        last: NodeOp,
    ) -> None:
        """Insert what was made, with its types; nothing is left of it where these do not fit."""
        scope = scope_of(last)
        before = scope.opsets
        if any(isinstance(op, NodeOp) and op.domain == FUSED_DOMAIN for op in made):
            import_domain(last, FUSED_DOMAIN)
        for op in made:
            self.rewriter.insert_before(op, last)
        try:
            self._type(made)
            self._check_types(outputs, new)
        except RewriteError:
            for op in reversed(made):
                self.rewriter.erase(op)
            scope.properties["opsets"] = before
            raise

    def _type(self, made: Sequence[Operation]) -> None:
        """Give new values the types that inference finds."""
        for op in made:
            if isinstance(op, NodeOp):
                self.inference.results(op)

    def _check_types(self, outputs: Sequence[SSAValue], new: Sequence[SSAValue]) -> None:
        for old, value in zip(outputs, new, strict=True):
            if refine(old.type, value.type, trusted=True).contradiction:
                raise RewriteError(f"a value of type {old.type} is replaced by one of {value.type}")

    def _drop(self, nodes: Sequence[NodeOp], made: Sequence[Operation]) -> None:
        """Remove what nothing reads: nodes of the match, what only they read, unused new ones."""
        read: list[SSAValue] = []
        for op in (*reversed(made), *reversed(self.order.in_order(nodes))):
            if all(result.first_use is None for result in op.results):
                read += op.operands
                self.rewriter.erase(op)
        drop_unused(self.rewriter, read)

    def _take_over(self, old: SSAValue, new: SSAValue, last: NodeOp) -> list[Operation]:
        """Let readers of `old` read `new`, which bears its name from now on; what that needed."""
        assert isinstance(old, OpResult)
        made: list[Operation] = []
        if is_returned(old) and not _can_bear_name(new, old):
            made = Builder.at(last).identity(new)
            for op in made:
                self.rewriter.insert_before(op, last)
            new = made[-1].results[0]
        refined = refine(old.type, new.type, trusted=True).type
        if refined != new.type and refined != UNKNOWN:
            self.rewriter.set_type(new, refined)
        name = result_names(old.op)[old.index]
        if name and (is_returned(old) or not _has_name(new)):
            give_name(new, name, node_name(old.op))
        self.rewriter.replace_uses(old, new)
        return made

    @contextmanager
    def _listening(self, erased: Erased) -> Generator[None]:
        """Let the index follow what changes, and remember the nodes that go."""
        before = self.rewriter.listener
        self.rewriter.listener = both(before, both(self.index, erased))
        try:
            yield
        finally:
            self.rewriter.listener = before


def _pass_on(
    matched: Sequence[NodeOp],
    erased: Erased,
    new: Sequence[SSAValue],
    made: Sequence[Operation],
) -> None:
    """Let new nodes that make the new values say what is said of the nodes that are gone."""
    fresh = set(made)
    gone = dict.fromkeys(op for op in erased.nodes if op not in fresh)
    removed = [op for op in matched if op in gone]
    removed += [op for op in gone if op not in matched]
    makers = dict.fromkeys(value.owner for value in new)
    pass_on(removed, [op for op in makers if isinstance(op, NodeOp) and op in fresh])


def scope_of(op: Operation) -> GraphOp | FunctionOp:
    """The graph or function around an operation, which imports its operator sets."""
    scope: Operation | None = op
    while not isinstance(scope, GraphOp | FunctionOp):
        assert scope is not None
        scope = scope.parent_op()
    return scope


def import_domain(op: Operation, domain: str) -> None:
    """Import a domain into the graph or function around an operation."""
    scope = scope_of(op)
    if domain not in scope.opsets.versions:
        scope.properties["opsets"] = OpsetsAttr((*scope.opsets.data, (domain, 1)))


def _as_list(new: Any) -> list[SSAValue]:
    given: list[Any] = list(cast("Iterable[Any]", new)) if isinstance(new, Iterable) else [new]
    if not all(isinstance(value, SSAValue) for value in given):
        raise RewriteError("the replacement is not a value, nor a sequence of values")
    return given


def _can_bear_name(new: SSAValue, old: OpResult) -> bool:
    return (
        isinstance(new, OpResult)
        and isinstance(new.op, NodeOp)
        and new.op.parent is old.op.parent
        and not is_returned(new)
    )


def _has_name(value: SSAValue) -> bool:
    return not isinstance(value, OpResult) or bool(result_names(value.op)[value.index])


def give_name(value: SSAValue, name: str, node: str | None) -> None:
    """Name a result, and its operation unless it has a name."""
    assert isinstance(value, OpResult)
    names = list(result_names(value.op))
    names[value.index] = name
    value.op.attributes["onnx.names"] = NamesAttr(Names(node_name(value.op) or node, tuple(names)))
