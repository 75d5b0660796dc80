"""A visitor that writes its visits down and asks for what a test tells it to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation

from foldline.dialects.onnx.op import NodeOp, result_names
from foldline.stages.context import PassContext
from foldline.stages.driver.traversal import Traversal
from foldline.stages.driver.visitor import NodeVisitor, Requests
from tests.stages.check import from_onnx


def label(op: Operation) -> str:
    return result_names(op)[0]


class Recorder(NodeVisitor):
    """Writes visits down; `on` says what to do at the first visit of a node."""

    def __init__(self, context: PassContext, on: Mapping[str, Action]):
        super().__init__("recorder", context)
        self.on = dict(on)
        self.visits: list[str] = []
        self.entered: list[Block] = []
        self.leaks: list[Callable[[Recorder], None]] = []
        self.ends: list[Callable[[Recorder], None]] = []
        self.by_name: dict[str, Operation] = {
            label(op): op for op in context.module.walk() if isinstance(op, NodeOp)
        }

    def enter(self, block: Block) -> None:
        self.entered.append(block)

    def visit(self, op: NodeOp) -> None:
        self.visits.append(label(op))
        action = self.on.pop(label(op), None)
        if action is not None:
            action(self, op)

    def on_leak(self) -> None:
        if self.leaks:
            self.leaks.pop(0)(self)

    def finish(self) -> None:
        if self.ends:
            self.ends.pop(0)(self)


Action = Callable[[Recorder, Operation], None]


def traverse(
    text: str | ModuleOp, prepare: Callable[[Recorder], None] = lambda _: None, **on: Action
) -> tuple[list[str], PassContext]:
    """Traverse with one recorder; its visits."""
    context = PassContext(from_onnx(text) if isinstance(text, str) else text)
    recorder = Recorder(context, on)
    prepare(recorder)
    Traversal(context, [recorder]).run()
    return recorder.visits, context


def _ask(names: Iterable[str], request: Callable[[Requests, Operation], None]) -> Action:
    def act(recorder: Recorder, _: Operation) -> None:
        for name in names:
            request(recorder.requests, recorder.by_name[name])

    return act


def repass(*names: str) -> Action:
    return _ask(names, lambda requests, op: requests.repass(op))


def now(*names: str) -> Action:
    return _ask(names, lambda requests, op: requests.repass_now(op))


def suspend(*names: str) -> Action:
    return _ask(names, lambda requests, op: requests.suspend(op))


def resume(*names: str) -> Action:
    return _ask(names, lambda requests, op: requests.resume(op))


def erase(name: str) -> Action:
    return lambda r, _: r.rewriter.erase(r.by_name[name])


def bypass(*names: str) -> Action:
    """Remove nodes, each replaced by its first input."""

    def act(recorder: Recorder, _: Operation) -> None:
        for name in names:
            op = recorder.by_name[name]
            recorder.rewriter.replace_uses(op.results[0], op.operands[0])
            recorder.rewriter.erase(op)

    return act


def both(*actions: Action) -> Action:
    """One action after another."""

    def act(recorder: Recorder, op: Operation) -> None:
        for action in actions:
            action(recorder, op)

    return act
