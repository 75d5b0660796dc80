"""The walk over one graph of a traversal: its queue, and which of its nodes are ready."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import ConstantLike

from foldline.dialects.onnx.op import NodeOp

VISITS_PER_NODE = 10


class BlockWalk:
    """State of the walk over one block; its nodes are the `NodeOp`s directly in it.

    A node is *seen* once it was queued and *passed* once it was visited. It is ready when every
    node it depends on is seen and none is suspended. Inputs and initializers are no nodes.
    """

    def __init__(self, block: Block):
        self.block = block
        self.queue: deque[NodeOp] = deque()
        self.passed: set[Operation] = set()
        self.suspended: dict[NodeOp, None] = {}
        self.visits = 0
        self._seen: set[Operation] = set()
        self._queued: set[NodeOp] = set()
        self._pending: dict[NodeOp, None] = {}
        self._progress: dict[NodeOp, int] = {}
        """Per waiting node: how many of the values it reads come from seen nodes. Each is asked
        for once, so that a node of many inputs costs no more than its inputs."""
        self._reads: dict[NodeOp, tuple[SSAValue, ...]] = {}
        nodes = [op for op in block.ops if isinstance(op, NodeOp)]
        self.size = len(nodes)
        for op in [op for op in nodes if self.is_ready(op)]:
            self.append(op)

    @property
    def limit(self) -> int:
        """So many visits are made at most."""
        return self.size * VISITS_PER_NODE

    @property
    def is_at_limit(self) -> bool:
        """Whether work is left that the limit forbids."""
        return self.visits >= self.limit and bool(self.queue or self._pending or self.suspended)

    @property
    def has_work(self) -> bool:
        """Whether something is left to visit, and may be."""
        waiting = self.queue or self._pending or self.suspended
        return bool(waiting) and self.visits < self.limit

    def next(self) -> NodeOp | None:
        """The next node to visit; None when the queue and the re-passes have drained."""
        while self.visits < self.limit:
            if not self.queue:
                if not self._pending:
                    return None
                pending, self._pending = self._pending, {}
                for op in pending:
                    self.append(op)
            op = self.queue.popleft()
            self._queued.discard(op)
            self._pending.pop(op, None)
            if op.parent is self.block and op not in self.suspended:
                self.visits += 1
                self.passed.add(op)
                return op
        return None

    def is_ready(self, op: NodeOp) -> bool:
        """Whether all that a node depends on is seen and nothing of it is suspended."""
        if op in self.suspended:
            return False
        reads = self._read_by(op) if op.regions else op.operands
        for index in range(self._progress.pop(op, 0), len(reads)):
            if self.is_awaited(reads[index].owner):
                self._progress[op] = index
                return False
        return True

    def offer(self, nodes: Iterable[NodeOp]) -> None:
        """Queue those nodes that were not seen and are ready now."""
        for op in nodes:
            if op not in self._seen and op.parent is self.block and self.is_ready(op):
                self.append(op)

    def append(self, op: NodeOp) -> None:
        """Queue a node last."""
        self._seen.add(op)
        if op not in self._queued:
            self._queued.add(op)
            self.queue.append(op)

    def created(self, op: NodeOp) -> None:
        """A new node stands in the block; a constant needs no visit."""
        if op.has_trait(ConstantLike):
            self._seen.add(op)

    def visit_now(self, op: NodeOp) -> None:
        """Queue a node first, if it was passed or is new and ready."""
        if op.parent is not self.block or op in self._queued:
            return
        if op in self.passed or (op not in self._seen and self.is_ready(op)):
            self._seen.add(op)
            self._queued.add(op)
            self.queue.appendleft(op)

    def repass(self, op: NodeOp) -> None:
        """Queue a node again when the queue has drained."""
        if op.parent is self.block and (op in self._seen or self.is_ready(op)):
            self._pending[op] = None

    def suspend(self, op: NodeOp) -> None:
        """Hold a node back."""
        if op.parent is self.block:
            self.suspended[op] = None
            for reader in self.followers(op):
                self._progress.pop(reader, None)

    def resume(self, op: NodeOp) -> None:
        """Queue a node that was suspended."""
        if op in self.suspended:
            del self.suspended[op]
            if op in self._seen or self.is_ready(op):
                self.append(op)

    def forget(self, op: NodeOp) -> None:
        """What was known of a node's inputs no longer holds."""
        self._progress.pop(op, None)
        self._reads.pop(op, None)

    def erased(self, op: NodeOp) -> None:
        """A node is gone."""
        self.suspended.pop(op, None)
        self.forget(op)

    def followers(self, op: Operation) -> list[NodeOp]:
        """The nodes of the block that read results of `op`, in their bodies too."""
        found: dict[NodeOp, None] = {}
        for result in op.results:
            if result.first_use is None:
                continue
            for user in reversed([use.operation for use in result.uses]):
                here: Operation | None = user
                while here is not None and here.parent is not self.block:
                    here = here.parent_op()
                if isinstance(here, NodeOp):
                    found[here] = None
        return list(found)

    def is_awaited(self, producer: Operation | Block) -> bool:
        """Whether a producer is a node of the block that was not seen, or is suspended."""
        return (
            producer.parent is self.block
            and isinstance(producer, NodeOp)
            and (producer not in self._seen or producer in self.suspended)
        )

    def _read_by(self, op: NodeOp) -> tuple[SSAValue, ...]:
        """What a node and its bodies read of this block."""
        known = self._reads.get(op)
        if known is None:
            values = (value for inner in op.walk() for value in inner.operands)
            known = tuple(dict.fromkeys(v for v in values if v.owner.parent is self.block))
            self._reads[op] = known
        return known
