"""A model as a graph that rules can be searched for, run on and tried out with."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from onnx import ModelProto
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.verifier import verify_model
from foldline.exporter import export_model, write_model
from foldline.importer import Source, import_model
from foldline.stages.context import PassContext
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.rewrite import convexity
from foldline.stages.rewrite.defaults import DefaultsOptions, default_transforms
from foldline.stages.rewrite.match import Lease, Match
from foldline.stages.rewrite.near_miss import NearMiss, nearest
from foldline.stages.rewrite.optimize import inference_of, run_transforms
from foldline.stages.rewrite.options import OptimizeOptions
from foldline.stages.rewrite.order import Index
from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.replacement import Build, Replacer
from foldline.stages.rewrite.search import Search
from foldline.stages.rewrite.stage_step import allowed
from foldline.stages.rewrite.transform import Transform
from foldline.support.errors import InvalidArgumentError, RewriteError
from foldline.support.options import resolve
from foldline.support.rewrite_report import OptimizeReport


class ModelGraph:
    """One model. All changes go through `optimize` and `replace`; a failed one changes nothing."""

    def __init__(self, source: Source | ModuleOp, options: Mapping[str, Any] | None = None):
        """The graph of a model, or of a copy of a module. Raises what importing raises."""
        is_module = isinstance(source, ModuleOp)
        self._module = source.clone() if is_module else import_model(source)
        verify_model(self._module)
        self._options = resolve(options or {})
        self._lock = threading.Lock()
        self._lease = Lease()
        InferShapes().run(self._context())

    @property
    def module(self) -> ModuleOp:
        """The module as it stands. It is another object after each change."""
        return self._module

    @property
    def nodes(self) -> list[NodeOp]:
        """All nodes in program order, those of bodies included."""
        return Index(self._module).every

    def to_proto(self) -> ModelProto:
        """The model as a message."""
        return export_model(self._module, fused=self._options["export.fused"])

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the model; an existing file needs `force`."""
        write_model(self._module, path, force=force, fused=self._options["export.fused"])

    def default_transforms(self, options: DefaultsOptions | None = None) -> list[Transform]:
        """What `optimize` runs on this graph unless it is told otherwise."""
        return default_transforms(self._module, self._options, options)

    def find_pattern(self, pattern: Pattern) -> list[Match]:
        """All occurrences of a pattern, in a fixed order; they may overlap.

        Raises InvalidArgumentError for a pattern that cannot be searched for.
        """
        return Search(pattern).find(Index(self._module), self._lease).matches

    def near_misses(self, pattern: Pattern) -> list[NearMiss]:
        """Where at least two nodes, and half of a pattern, match: how far, and what is different.

        Raises InvalidArgumentError for a pattern that cannot be searched for.
        """
        found = Search(pattern).find(Index(self._module), self._lease)
        return nearest(found.misses, {op for match in found.matches for op in match.ordered})

    def is_convex(self, nodes: Iterable[Operation]) -> bool:
        """Whether no path leaves the nodes, which stand in one graph, and comes back."""
        chosen = list(nodes)
        if not chosen:
            raise InvalidArgumentError("no node is given")
        return convexity.is_convex(chosen, Index(self._module).order)

    def replace(
        self, outputs: Sequence[SSAValue], build: Build, inputs: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """Let readers of `outputs` read what `build(builder)` makes of `inputs`.

        The nodes between the two that nothing reads any more go. Raises RewriteError where the
        replacement does not fit; nothing has changed then.
        """
        with self._alone():
            context = self._context()
            nodes = _between(outputs, inputs)
            replacer = Replacer(context.rewriter, Index(self._module), inference_of(context))
            done = replacer.replace(nodes, outputs, build)
            self._renew(self._module)
        return done.values

    def optimize(self, options: OptimizeOptions | None = None) -> OptimizeReport:
        """Run transforms until an iteration changes nothing.

        Raises RewriteError for whatever a rule raises or is refused; the graph is what it was.
        """
        chosen = options or OptimizeOptions()
        with self._alone():
            transforms = chosen.transforms
            if transforms is None:
                transforms = self.default_transforms(chosen.defaults)
            context = PassContext(self._module.clone(), self._options)
            try:
                report = run_transforms(
                    context,
                    allowed(context, transforms),
                    max_iterations=chosen.max_iterations,
                    verify=chosen.verify,
                )
            finally:
                if chosen.trace is not None:
                    for remark in context.remarks:
                        chosen.trace(remark)
            if not chosen.dry_run:
                self._renew(context.module)
        return report

    def _context(self) -> PassContext:
        return PassContext(self._module, self._options)

    def _renew(self, module: ModuleOp) -> None:
        self._module = module
        self._lease.is_over = True
        self._lease = Lease()

    @contextmanager
    def _alone(self) -> Generator[None]:
        if not self._lock.acquire(blocking=False):
            raise RewriteError("this graph is being optimised; one run at a time")
        try:
            yield
        finally:
            self._lock.release()


def _between(outputs: Sequence[SSAValue], inputs: Sequence[SSAValue]) -> list[NodeOp]:
    """The nodes that make `outputs` of `inputs`."""
    if not outputs:
        raise InvalidArgumentError("no output is given")
    border, found = set(inputs), dict[NodeOp, None]()
    block = outputs[0].owner.parent if isinstance(outputs[0].owner, Operation) else None
    waiting = list(outputs)
    while waiting:
        value = waiting.pop()
        owner = value.owner
        if value in border or not isinstance(owner, NodeOp) or owner.parent is not block:
            continue
        if owner not in found:
            found[owner] = None
            waiting += owner.operands
    if not found:
        raise RewriteError("the outputs are made by no node")
    return list(found)
