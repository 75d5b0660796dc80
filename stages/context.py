"""What the passes of one compile share: the module, options, remarks, engines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from foldline.dialects.onnx.op import node_name, result_names
from foldline.stages.folding.engine import Engines, installed_engines
from foldline.stages.gate import Gate
from foldline.stages.inference.library import LibraryInference
from foldline.stages.rewriting import Rewriter
from foldline.stages.symbols.knowledge import Knowledge
from foldline.support.remarks import Kind, Remark, Remarks
from foldline.support.rewrite_report import OptimizeReport


class PassOptions(Protocol):
    """What stages read of the options."""

    def enabled(self, pass_name: str) -> bool:
        """Whether a pass runs."""
        ...

    def __getitem__(self, key: str) -> Any:
        """The value of a key."""
        ...


class _Everything:
    """Options of a pass that runs by itself: its own fields."""

    def enabled(self, pass_name: str) -> bool:
        return True

    def __getitem__(self, key: str) -> Any:
        raise KeyError(key)


EVERYTHING: PassOptions = _Everything()


@dataclass(eq=False)
class PassContext:
    """The state of one compile."""

    module: ModuleOp
    options: PassOptions = field(default_factory=lambda: EVERYTHING)
    remarks: Remarks = field(default_factory=Remarks)
    bounds: list[str] = field(default_factory=list[str])
    stage: str = ""
    """The stage that runs."""
    declined: dict[tuple[str, Operation], str] = field(
        default_factory=dict[tuple[str, Operation], str]
    )
    """Why a pass left an operation alone, in the stage that runs; promises allow for it."""
    rules: tuple[Any, ...] = ()
    """Transforms of the user."""
    pinned: set[str] = field(default_factory=set[str])
    """Names of sizes that were given numbers, and so are gone."""
    rewrites: list[OptimizeReport] = field(default_factory=list[OptimizeReport])
    """What the transforms of each rewriting step did."""
    gate: Gate | None = None
    """What asks before it changes the module; nothing asks where there is none."""

    @cached_property
    def rewriter(self) -> Rewriter:
        """The rewriter of the module."""
        return Rewriter(self.module)

    @cached_property
    def engines(self) -> Engines:
        """The folding engines with their statistics."""
        mode = "fast" if self.options is EVERYTHING else str(self.options["mode"])
        return Engines(installed_engines(mode))

    @cached_property
    def library(self) -> LibraryInference:
        """The onnx library's inference, which remembers what it has inferred."""
        return LibraryInference()

    @cached_property
    def knowledge(self) -> Knowledge:
        """What is known of sizes and of elements of small tensors, symbols included."""
        trusts = self.options is not EVERYTHING and bool(self.options["inputs.trustNames"])
        return Knowledge(trust_names=trusts)

    def act(self, pass_name: str, op: Operation | None, action: Callable[[], None]) -> bool:
        """Do what a pass is about to do, at `op` or all over, unless the gate refuses."""
        if self.gate is None:
            action()
            return True
        return self.gate(self.rewriter, pass_name, op, action)

    def copied(self) -> PassContext:
        """The same state of a clone of the module; tensors are shared, nothing else is."""
        values: dict[SSAValue, SSAValue] = {}
        module = self.module.clone(values)
        ops = dict(zip(self.module.walk(), module.walk(), strict=True))
        declined = {(name, ops[op]): why for (name, op), why in self.declined.items() if op in ops}
        copy = replace(
            self,
            module=module,
            remarks=self.remarks.copied(),
            bounds=list(self.bounds),
            declined=declined,
            pinned=set(self.pinned),
            rewrites=list(self.rewrites),
        )
        copy.rewriter = self.rewriter.copied(module)
        copy.engines = self.engines.copied()
        copy.library = self.library
        copy.knowledge = self.knowledge.copied(values)
        return copy

    def remark(self, kind: Kind, pass_name: str, op: Operation, message: str) -> None:
        """Record a remark on an operation."""
        node = node_name(op) or next((name for name in result_names(op) if name), "")
        self.remarks.record(Remark(kind, self.stage, pass_name, node, op.name, message))
        if kind == "declined":
            self.declined[pass_name, op] = message

    def reached(self, bound: str, pass_name: str = "") -> None:
        """Report that a limit was hit: what was done is right, but more may have been possible."""
        self.bounds.append(bound)
        self.remarks.record(Remark("note", self.stage, pass_name, "", "", bound))
