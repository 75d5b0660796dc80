"""What a node pass is while a traversal runs, and what it may ask of the traversal."""

from __future__ import annotations

from typing import Protocol

from xdsl.ir import Block, Operation

from foldline.dialects.onnx.op import NodeOp
from foldline.stages.context import PassContext


class Requests(Protocol):
    """What a visitor or a callback may ask for. A request on an erased node is void.

    Nodes of other graphs are mapped to the node around them in a graph that is being walked.
    """

    def repass(self, op: Operation) -> None:
        """Visit a node again once the queue has drained, if it was seen or could be."""
        ...

    def repass_now(self, op: Operation) -> None:
        """Visit a node next, if it was visited before."""
        ...

    def suspend(self, op: Operation) -> None:
        """Hold a node, and all that depends on it, back."""
        ...

    def resume(self, op: Operation) -> None:
        """Let a suspended node go on."""
        ...

    def expect(self, op: Operation, nodes: int) -> None:
        """Reckon with so many nodes that come into the graph of `op` from elsewhere.

        The bound on visits is made for the nodes that a graph begins with.
        """
        ...


class NodeVisitor:
    """One node pass in one traversal; holds what the pass must remember while it runs.

    Created and re-operanded nodes, and readers of values whose type changed, are visited again
    without a request.
    """

    def __init__(self, name: str, context: PassContext):
        self.name = name
        self.context = context
        self.rewriter = context.rewriter
        self.requests: Requests = NO_REQUESTS

    def enter(self, block: Block) -> None:
        """A walk over `block` begins, or goes on after the bodies of a node."""

    def visit(self, op: NodeOp) -> None:
        """Look at a node; its inputs have been visited."""
        raise NotImplementedError

    def visit_after_bodies(self, op: NodeOp) -> None:
        """Look again at a node whose bodies have just been walked."""
        self.visit(op)

    def on_leak(self) -> None:
        """Nothing is left to visit but suspended nodes: resume some, or the traversal fails."""

    def finish(self) -> None:
        """All graphs are drained; requests start another round."""

    def applied(self, op: Operation, message: str) -> None:
        """Remark that `op` was changed."""
        self.context.remark("applied", self.name, op, message)

    def declined(self, op: Operation, reason: str) -> None:
        """Remark that `op` was a candidate and is left alone."""
        self.context.remark("declined", self.name, op, reason)

    def note(self, op: Operation, message: str) -> None:
        """Remark on something found at `op`."""
        self.context.remark("note", self.name, op, message)


class _NoRequests:
    def repass(self, op: Operation) -> None: ...
    def repass_now(self, op: Operation) -> None: ...
    def suspend(self, op: Operation) -> None: ...
    def resume(self, op: Operation) -> None: ...
    def expect(self, op: Operation, nodes: int) -> None: ...


NO_REQUESTS: Requests = _NoRequests()
