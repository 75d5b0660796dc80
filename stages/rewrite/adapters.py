"""Rules that come from xDSL, as transforms with the same row in the report.

An xDSL pattern rewrites single operations, on a worklist, until it finds nothing more: one turn of
such a transform is that, not one search. Types of what it makes are inferred, and outputs keep
their names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.pdl import PDL, PatternOp, RewriteOp
from xdsl.interpreters.pdl import PDLRewritePattern
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.parser import Parser
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from foldline.dialects import load_dialects
from foldline.dialects.onnx.builder import Builder
from foldline.dialects.onnx.op import NodeOp, result_names
from foldline.dialects.onnx.structure import ReturnOp, main_graph
from foldline.dialects.onnx.traits import holds_cache
from foldline.stages.context import PassContext
from foldline.stages.driver.worklist import Rule, RuleDriver
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.rewrite.match import name_of
from foldline.stages.rewrite.replacement import give_name
from foldline.stages.rewrite.transform import Blame, Transform, check_name, names_before
from foldline.stages.rewriting import count_nodes
from foldline.support.errors import InvalidArgumentError, RewriteError
from foldline.support.rewrite_report import RewriteRow


def from_xdsl(
    pattern: RewritePattern | Sequence[RewritePattern],
    name: str = "",
    runs_after: Sequence[Transform] = (),
    *,
    preserves_bits: bool = False,
) -> Transform:
    """A transform of xDSL patterns, which see every operation of the `onnx` dialect.

    It is called as the class of the first pattern, unless a name is given. A pattern that holds
    something of a run must not be shared by threads. Raises InvalidArgumentError.
    """
    given: object = pattern
    patterns = tuple(cast("Iterable[object]", given)) if isinstance(given, Iterable) else (given,)
    named = [each for each in patterns if isinstance(each, RewritePattern)]
    if not named or len(named) < len(patterns):
        raise InvalidArgumentError(f"{pattern!r} is no pattern of xDSL")
    name = name or type(named[0]).__name__
    return _transform(name, lambda: named, runs_after, preserves_bits)


def from_pdl(
    module: ModuleOp | str,
    name: str = "",
    runs_after: Sequence[Transform] = (),
    *,
    preserves_bits: bool = False,
) -> Transform:
    """A transform of the `pdl.pattern`s of a module, or of its text.

    Operations go by their names in the `onnx` dialect, such as `onnx.Relu`. It is called as the
    first pattern, unless a name is given. Raises InvalidArgumentError for a module without pattern.
    """
    context = Context()
    load_dialects(context)
    context.load_dialect(PDL)
    source = Parser(context, module).parse_module() if isinstance(module, str) else module.clone()
    rewrites = [op for op in source.walk() if isinstance(op, RewriteOp)]
    if not rewrites:
        raise InvalidArgumentError("the module holds no pdl.pattern")
    first = rewrites[0].parent_op()
    assert isinstance(first, PatternOp)
    symbol = "pdl" if first.sym_name is None else first.sym_name.data

    def patterns() -> list[PDLRewritePattern]:
        """New ones for each turn: the interpreter of xDSL holds what it has matched."""
        return [PDLRewritePattern(op, context, StringIO()) for op in rewrites]

    return _transform(name or symbol, patterns, runs_after, preserves_bits)


def _transform(
    name: str,
    patterns: Callable[[], Sequence[RewritePattern]],
    runs_after: Sequence[Transform],
    preserves_bits: bool,
) -> Transform:
    check_name(name)
    before = names_before(name, runs_after)
    return Transform(name, XdslRules(patterns), before, preserves_bits)


@dataclass(frozen=True, eq=False)
class XdslRules:
    """What a transform of xDSL patterns does."""

    patterns: Callable[[], Sequence[RewritePattern]]

    def turn(self, context: PassContext, row: RewriteRow, blame: Blame) -> None:
        """Rewrite every graph and function until no pattern matches, or the budget is spent."""
        module, rewriter = context.module, context.rewriter
        cached = [op for op in module.walk() if holds_cache(op)]
        driver = RuleDriver([Rule(_Blamed(pattern, blame)) for pattern in self.patterns()])
        outcomes = [driver.run(op.regions[0]) for op in module.body.block.ops]
        rewrites = sum(outcome.rewrites.total() for outcome in outcomes)
        changes = rewrites + sum(outcome.erased for outcome in outcomes)
        if not changes:
            return
        gone = next((op for op in cached if op.parent is None), None)
        if gone is not None:
            raise RewriteError(f"'{name_of(gone)}' holds a cache, which no rule may remove")
        _name_outputs(module)
        rewriter.nodes = count_nodes(module)
        rewriter.changes += changes
        row.replacements += rewrites
        row.matches += rewrites
        InferShapes(trusted=True).run(context)


@dataclass(frozen=True)
class _Blamed(RewritePattern):
    """A pattern whose errors name the operation it was at."""

    pattern: RewritePattern
    blame: Blame

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        """Let the pattern look at an operation of a model."""
        if isinstance(op, NodeOp):
            with self.blame(name_of(op)):
                self.pattern.match_and_rewrite(op, rewriter)


def _name_outputs(module: ModuleOp) -> None:
    """Let the outputs of graphs, bodies and functions bear their names again."""
    for end in [op for op in module.walk() if isinstance(op, ReturnOp)]:
        block, taken = end.parent, set[SSAValue]()
        assert block is not None
        values = list(end.operands)
        for place, info in enumerate(end.interface.data.outputs):
            value = values[place]
            if not _can_bear(value, block) or value in taken:
                made = Builder.at(end).identity(value)
                block.insert_ops_before(made, end)
                values[place] = value = made[-1].results[0]
            taken.add(value)
            assert isinstance(value, OpResult)
            if result_names(value.op)[value.index] != info.name and block.parent_op() is main_graph(
                module
            ):
                give_name(value, info.name, None)
        end.operands = values


def _can_bear(value: SSAValue, block: Block) -> bool:
    return isinstance(value, OpResult) and isinstance(value.op, NodeOp) and value.op.parent is block
