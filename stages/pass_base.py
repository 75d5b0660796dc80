"""What a pass is: options as fields, metadata in the table of passes, usable in xDSL too."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from foldline.stages.context import PassContext, PassOptions
from foldline.stages.driver.traversal import Traversal
from foldline.stages.driver.visitor import NodeVisitor
from foldline.support.passes import PassInfo


@dataclass(frozen=True)
class Pass(ModulePass):
    """A pass. Its fields are its options; what a run remembers is in an object of that run."""

    INFO: ClassVar[PassInfo]
    TAKES_THE_REST: ClassVar[bool] = False
    """Takes whatever is left by others: it waits until those before it find nothing more, and rules
    of users come before it unless they ask."""

    def configured(self, options: PassOptions) -> Self:
        """The pass with its fields as the options of a compile say."""
        return self

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run the pass alone on a module."""
        self.run(PassContext(op))

    @abstractmethod
    def run(self, context: PassContext) -> None:
        """Run the pass on the module of a compile."""


@dataclass(frozen=True)
class GraphPass(Pass):
    """A pass over the whole module."""


@dataclass(frozen=True)
class NodePass(Pass):
    """A pass that a traversal shows node after node."""

    @abstractmethod
    def visitor(self, context: PassContext) -> NodeVisitor:
        """The pass for one traversal."""

    def run(self, context: PassContext) -> None:
        """Traverse with this pass alone."""
        Traversal(context, [self.visitor(context)]).run()
