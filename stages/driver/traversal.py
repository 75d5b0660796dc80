"""The node traversal: a list of node passes on every node, in first-in first-out topological order.

A node is visited once all nodes it depends on have been queued before it; what its bodies read
from outside counts. Its bodies are walked right after it, each as a graph of its own, and then it
is visited a second time. Local functions are walked after the main graph, callers first.

Visitors ask for more: a re-pass when the queue has drained, a re-pass at once, suspension. When
every graph has drained, visitors are told (`finish`); rounds go on until nothing is asked for. A
graph of n nodes is left after 10 n visits, and this is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from foldline.dialects.onnx.op import NodeOp, describe
from foldline.dialects.onnx.structure import main_graph
from foldline.stages.context import PassContext
from foldline.stages.driver.block_walk import BlockWalk
from foldline.stages.driver.visitor import NodeVisitor
from foldline.stages.inference.calls import functions_callers_first
from foldline.support.errors import PassFailed, ResourceLimit

MAX_NESTING = 64
"""Bodies nested deeper are refused, as on import."""


@dataclass
class PassCost:
    """What one pass of a step did."""

    name: str
    seconds: float = 0.0
    nodes: int = 0
    """Nodes added, minus nodes removed."""
    changes: int = 0


class Traversal:
    """One run of visitors over a module: their `Requests`, and the rewriter's `Listener`."""

    def __init__(self, context: PassContext, visitors: Sequence[NodeVisitor]):
        self.context = context
        self.visitors = tuple(visitors)
        self.costs = [PassCost(visitor.name) for visitor in visitors]
        self._rewriter = context.rewriter
        self._gate = context.gate
        self._walks: dict[Block, BlockWalk] = {}
        self._depth = 0
        self._asked: list[tuple[_Request, Operation]] = []
        self._open: set[Operation] = set()
        """Nodes whose bodies are still to be walked in this visit: changes inside ask nothing."""
        self.running: tuple[str, tuple[object, ...]] | None = None
        """The pass that is at work, and what it is shown."""
        for visitor in self.visitors:
            visitor.requests = self
        self._visits = [visitor.visit for visitor in self.visitors]
        self._second_visits = [visitor.visit_after_bodies for visitor in self.visitors]

    def run(self) -> None:
        """Visit everything, in rounds, until nothing is asked for."""
        module = self.context.module
        graphs = [main_graph(module), *functions_callers_first(module)]
        roots = [self._begin(graph.regions[0].block) for graph in graphs]
        previous, self._rewriter.listener = self._rewriter.listener, self
        try:
            with _Blame(self):
                self._rounds(roots)
        finally:
            self._rewriter.listener = previous
        for walk in roots:
            self._report_limit(walk)

    def _rounds(self, roots: Sequence[BlockWalk]) -> None:
        while True:
            for walk in roots:
                self._drain(walk)
            for visitor, cost in zip(self.visitors, self.costs, strict=True):
                self._act(cost, visitor.finish)
            self._collect()
            if not any(walk.has_work for walk in roots):
                break

    def repass(self, op: Operation) -> None:
        """Visit `op` again once the queue has drained, if it was seen or could be."""
        self._asked.append((BlockWalk.repass, op))

    def repass_now(self, op: Operation) -> None:
        """Visit `op` next, if it was visited before."""
        self._asked.append((BlockWalk.visit_now, op))

    def suspend(self, op: Operation) -> None:
        """Hold `op` and all that depends on it back."""
        self._asked.append((BlockWalk.suspend, op))

    def resume(self, op: Operation) -> None:
        """Let a suspended node go on."""
        self._asked.append((BlockWalk.resume, op))

    def expect(self, op: Operation, nodes: int) -> None:
        """Let the graph of `op` have the visits of so many nodes more."""
        if (found := self._locate(op)) is not None:
            found[0].size += nodes

    def created(self, op: Operation) -> None:
        """Hear of a new operation: it is visited next, if its inputs have been."""
        if (found := self._locate(op)) is not None:
            walk, node = found
            if node is op:
                walk.created(node)
                self._asked.append((BlockWalk.visit_now, node))
            else:
                walk.forget(node)

    def changed(self, op: Operation) -> None:
        """Hear of new operands: who was visited with the old ones is visited again."""
        if (found := self._locate(op)) is not None:
            walk, node = found
            walk.forget(node)
            if node not in walk.passed:
                self._asked.append((_offer, node))
            elif node not in self._open:
                self._asked.append((BlockWalk.visit_now, node))

    def retyped(self, value: SSAValue) -> None:
        """Hear of a new type: readers that were visited with the old one are visited again."""
        if isinstance(value, BlockArgument) and value.block not in self._walks:
            return
        for use in value.uses:
            if (found := self._locate(use.operation)) is not None:
                walk, node = found
                if node in walk.passed and node not in self._open:
                    self._asked.append((BlockWalk.visit_now, node))

    def erasing(self, op: Operation) -> None:
        """Hear that an operation goes: the node that holds it may have waited for its inputs."""
        if (found := self._locate(op)) is not None:
            walk, node = found
            if node is op:
                walk.erased(node)
            else:
                walk.forget(node)
                self._asked.append((_offer, node))

    def _drain(self, walk: BlockWalk) -> None:
        """Visit until nothing of this graph is queued, pending or suspended."""
        self._enter(walk.block)
        while True:
            if walk.suspended and not walk.queue:
                self._leak(walk)
            while (op := walk.next()) is not None:
                followers = walk.followers(op)
                changes = self._rewriter.changes
                self._process(walk, op)
                if self._rewriter.changes != changes and op.parent is walk.block:
                    followers = list(dict.fromkeys([*walk.followers(op), *followers]))
                walk.offer(followers)
            if not walk.has_work:
                return

    def _process(self, walk: BlockWalk, op: NodeOp) -> None:
        """Visit a node; where it has bodies, walk them and visit it again."""
        if not op.regions:
            self._visit(walk, op, self._visits)
            return
        self._open.add(op)
        self._visit(walk, op, self._visits)
        self._open.discard(op)
        if op.parent is not walk.block:
            return
        for region in op.regions:
            for block in region.blocks:
                self._walk_body(block)
        self._enter(walk.block)
        self._visit(walk, op, self._second_visits)

    def _walk_body(self, block: Block) -> None:
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise ResourceLimit(f"bodies are nested deeper than {MAX_NESTING}")
        walk = self._begin(block)
        self._drain(walk)
        del self._walks[block]
        self._depth -= 1
        self._report_limit(walk)

    def _begin(self, block: Block) -> BlockWalk:
        walk = self._walks[block] = BlockWalk(block)
        return walk

    def _visit(
        self, walk: BlockWalk, op: NodeOp, methods: Sequence[Callable[[NodeOp], None]]
    ) -> None:
        for method, cost in zip(methods, self.costs, strict=True):
            self._act(cost, method, op)
            if op.parent is not walk.block:
                break
        if self._asked:
            self._collect()

    def _enter(self, block: Block) -> None:
        for visitor, cost in zip(self.visitors, self.costs, strict=True):
            self._timed(cost, visitor.enter, block)
        self._collect()

    def _leak(self, walk: BlockWalk) -> None:
        """Nothing but suspended nodes is left."""
        for visitor, cost in zip(self.visitors, self.costs, strict=True):
            self._timed(cost, visitor.on_leak)
        self._collect()
        if not walk.queue:
            held = ", ".join(describe(op) for op in walk.suspended)
            raise PassFailed(f"{self.context.stage}: nobody resumes suspended nodes: {held}")

    def _act(self, cost: PassCost, method: Callable[..., None], *shown: Operation) -> None:
        """What changes the module, so that it goes through the gate, where there is one."""
        if self._gate is None:
            self._timed(cost, method, *shown)
            return
        op = shown[0] if shown else None
        self._gate(self._rewriter, cost.name, op, lambda: self._timed(cost, method, *shown))

    def _timed(self, cost: PassCost, method: Callable[..., None], *arguments: object) -> None:
        rewriter = self._rewriter
        nodes, changes, start = rewriter.nodes, rewriter.changes, perf_counter()
        self.running = cost.name, arguments
        method(*arguments)
        self.running = None
        cost.seconds += perf_counter() - start
        cost.nodes += rewriter.nodes - nodes
        cost.changes += rewriter.changes - changes

    def _collect(self) -> None:
        """Hand requests to the walks: the first asked for is the first visited, resumes win."""
        asked, self._asked = self._asked, []
        at_once = [op for request, op in asked if request is BlockWalk.visit_now]
        for op in reversed(dict.fromkeys(at_once)):
            self._hand(BlockWalk.visit_now, op)
        for request in (_offer, BlockWalk.repass, BlockWalk.suspend, BlockWalk.resume):
            for asked_for, op in asked:
                if asked_for is request:
                    self._hand(request, op)

    def _hand(self, request: _Request, op: Operation) -> None:
        if (found := self._locate(op)) is not None:
            request(*found)

    def _locate(self, op: Operation) -> tuple[BlockWalk, NodeOp] | None:
        """The node of an active walk that is `op` or holds it, with that walk."""
        here: Operation | None = op
        while here is not None:
            block = here.parent
            walk = self._walks.get(block) if block is not None else None
            if walk is not None:
                return (walk, here) if isinstance(here, NodeOp) else None
            here = here.parent_op()
        return None

    def _report_limit(self, walk: BlockWalk) -> None:
        if walk.is_at_limit:
            self.context.reached(
                f"{self.context.stage}: a graph of {walk.size} nodes was left after "
                f"{walk.visits} visits with work still asked for"
            )


_Request = Callable[[BlockWalk, NodeOp], None]


def _offer(walk: BlockWalk, op: NodeOp) -> None:
    walk.offer((op,))


class _Blame:
    """Notes on an exception which pass raised it, and at which node."""

    def __init__(self, traversal: Traversal):
        self._traversal = traversal

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        running = self._traversal.running
        if error is not None and running is not None:
            name, shown = running
            at = [describe(op) for op in shown if isinstance(op, NodeOp)]
            error.add_note(" at ".join([f"in {name}", *at]))
