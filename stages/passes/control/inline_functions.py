"""inline-functions: replace calls of local functions by their bodies.

    %y = onnx.call(%x) {callee = @f, given = {alpha = 0.5}}   ->   the operations of `f` on %x

References to attributes get what the call gives, else the function's default, else they are left
out; missing inputs are absent. Each operator is checked to be the same under the operator sets
imported around the call; where it is not, it is said in their form. Domains that are not imported
there yet are added. Copies have names that begin with the call's, and results keep theirs.
Functions that nothing calls any more are removed.

Functions of fused operators, which `export.fused: functions` writes, are inlined before anything
else: what they hold is to be found as if it had been written as standard operators. Each call was
one operator, so what the file says of it, doc string and metadata, is said of all its parts.

A call stays, with a remark, where an operator has no form that is known to mean the same, where a
graph is an attribute of it, or where the model would grow beyond `max_nodes`. Bits are preserved:
the same operators run on the same values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from xdsl.ir import Attribute, Block, Operation
from xdsl.traits import ConstantLike

from foldline.dialects.fused import FUSED_DOMAIN
from foldline.dialects.onnx.attributes import (
    Names,
    NamesAttr,
    OpsetsAttr,
    ReferenceAttr,
    canonical_domain,
)
from foldline.dialects.onnx.demands import Checker
from foldline.dialects.onnx.op import NodeOp, OnnxOp, node_name, result_names
from foldline.dialects.onnx.structure import (
    CallOp,
    CustomOp,
    FunctionOp,
    GraphOp,
    functions,
    main_graph,
)
from foldline.stages.context import PassContext
from foldline.stages.inference.calls import by_symbol, callee, functions_callers_first
from foldline.stages.inlining import derive, hand_over, label, pass_names
from foldline.stages.pass_base import GraphPass
from foldline.stages.passes.cleanup.common_subexpressions import NOTES
from foldline.stages.passes.control._copying import BodyCopy
from foldline.stages.rewriting import count_nodes
from foldline.support.errors import RewriteError
from foldline.support.passes import PASSES


@dataclass(frozen=True)
class InlineFunctions(GraphPass):
    """Inline calls."""

    name = "inline-functions"
    INFO: ClassVar = PASSES["inline-functions"]

    max_nodes: int = 1_000_000
    """Inlining stops when the module has so many nodes: small files can call for any number."""
    domain: str | None = None
    """Inline the functions of this domain, and leave the others for later; None: all."""

    def run(self, context: PassContext) -> None:
        """Inline in the main graph, then in the functions that are still called.

        Raises InvalidModel for a function that calls itself, directly or not.
        """
        module = context.module
        ordered = functions_callers_first(module)
        table = by_symbol(module)
        called = _Inlining(self, context, table, main_graph(module)).run()
        for function in ordered:
            if function.sym_name.data in called:
                called |= _Inlining(self, context, table, function).run()
        for function in functions(module):
            if function.sym_name.data not in called:
                context.remark("applied", self.name, function, "nothing calls it any more")
                context.rewriter.erase(function)


@dataclass
class _Inlining:
    """Inlining into one graph or function, the target."""

    options: InlineFunctions
    context: PassContext
    functions: Mapping[str, FunctionOp]
    target: GraphOp | FunctionOp
    called: set[str] = field(default_factory=set[str])
    """Symbols of the calls that stay."""
    call_domains: dict[str, int] = field(default_factory=dict[str, int])
    """Domains of the calls inside of functions, with the versions imported there."""
    prefixes: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        self._parameters: frozenset[str] | None = None
        if isinstance(self.target, FunctionOp):
            target = self.target
            self._parameters = frozenset(target.parameters.data) | target.defaults.data.keys()
        self._checker = Checker(self.target.opsets.versions, self._parameters)

    def run(self) -> set[str]:
        """Inline; the symbols of functions that are still called."""
        self._block(self.target.body.block)
        return self.called

    def _block(self, block: Block) -> None:
        op = block.first_op
        while op is not None:
            for region in op.regions:
                self._block(region.block)
            # What was inlined is looked at next: it may hold calls itself.
            op = self._call(op) if isinstance(op, CallOp) else op.next_op

    def _call(self, op: CallOp) -> Operation | None:
        """Inline a call; the operation to go on with."""
        before, following = op.prev_op, op.next_op
        block = op.parent
        assert block is not None
        if self.options.domain not in (None, self.functions[callee(op)].domain.data):
            self.called.add(callee(op))
            return following
        try:
            self._inline(op)
        except RewriteError as error:
            self.context.remark("declined", self.options.name, op, str(error))
            self._keep(op)
            return following
        return block.first_op if before is None else before.next_op

    def _keep(self, op: CallOp) -> None:
        """Leave a call that may have come with an inlined body: its domain has to be imported."""
        domain = self.functions[callee(op)].domain.data
        self.called.add(callee(op))
        if canonical_domain(domain) not in self.target.opsets.versions:
            self._import({domain: self.call_domains.get(domain, 1)})

    def _import(self, imports: Mapping[str, int]) -> None:
        opsets = OpsetsAttr((*self.target.opsets.data, *imports.items()))
        self.target.properties["opsets"] = opsets
        self._checker = Checker(opsets.versions, self._parameters)

    def _inline(self, op: CallOp) -> None:
        """Replace a call. Raises RewriteError, before anything is changed, where it has to stay."""
        rewriter = self.context.rewriter
        function = self.functions[callee(op)]
        if op.regions:
            raise RewriteError("it gives a graph to the function")
        if rewriter.nodes + count_nodes(function) > self.options.max_nodes:
            self.context.reached(
                f"functions were not inlined beyond {self.options.max_nodes} nodes",
                self.options.name,
            )
            raise RewriteError(f"the model would have more than {self.options.max_nodes} nodes")
        imports = self._missing_imports(function)
        copy = BodyCopy(op, function, self._given(op, function))
        try:
            checker = self._checker
            if imports:
                versions = {**self.target.opsets.versions, **imports}
                checker = Checker(versions, self._parameters)
            copy.translate(checker)
            copy.check(checker)
        except RewriteError:
            copy.discard()
            raise
        if imports:
            self._import(imports)
        prefix = self._prefix(op)
        made = set(copy.ops)
        for new in copy.ops:
            derive(new, prefix)
        pass_names(op, [v if v.owner in made else None for v in copy.results])
        if function.domain.data == FUSED_DOMAIN:
            _describe(op, copy)
        message = f"function {function.sym_name.data} is inlined"
        self.context.remark("applied", self.options.name, op, message)
        for new in copy.ops:
            rewriter.insert_before(new, op)
        hand_over(rewriter, op, copy.results)

    def _missing_imports(self, function: FunctionOp) -> dict[str, int]:
        """Imports of the function that the target has to add for it.

        Raises RewriteError for a custom operator of another version.
        """
        own, here = function.opsets.versions, self.target.opsets.versions
        missing: dict[str, int] = {}
        for op in function.walk():
            if isinstance(op, OnnxOp | CustomOp) and op.domain in own:
                if op.domain not in here:
                    missing[op.domain] = own[op.domain]
                elif isinstance(op, CustomOp) and own[op.domain] != here[op.domain]:
                    raise RewriteError(
                        f"{op.op_type} of version {own[op.domain]} of domain '{op.domain}' is not "
                        f"known, and version {here[op.domain]} is imported here"
                    )
            elif isinstance(op, CallOp):
                domain = self.functions[callee(op)].domain.data
                self.call_domains.setdefault(domain, own.get(domain, 1))
        return missing

    def _given(self, op: CallOp, function: FunctionOp) -> dict[str, Attribute]:
        """The attributes of a call, with the function's defaults.

        Raises RewriteError for one that hangs on whether the callers of the target give it, where
        the function has a default for it.
        """
        defaults, given = function.defaults.data, op.onnx_attributes
        for name, value in given.items():
            if name in defaults and isinstance(value, ReferenceAttr) and not self._has(value):
                raise RewriteError(f"its attribute '{name}' is an attribute of the caller")
        return {**defaults, **given}

    def _has(self, reference: ReferenceAttr) -> bool:
        """Whether the target has the attribute in all its calls."""
        target = self.target
        return isinstance(target, FunctionOp) and reference.data.attribute in target.defaults.data

    def _prefix(self, op: CallOp) -> str:
        """What the names of one inlined body begin with, and no other's do."""
        first = prefix = label(op)
        number = 1
        while prefix in self.prefixes:
            number += 1
            prefix = f"{first}_{number}"
        self.prefixes.add(prefix)
        return prefix


def _describe(op: CallOp, copy: BodyCopy) -> None:
    """Say of the parts of a fused operator what is said of the call; the last bears its name."""
    notes = {name: op.attributes[name] for name in NOTES if name in op.attributes}
    for new in copy.ops:
        if isinstance(new, NodeOp) and not new.has_trait(ConstantLike):
            new.attributes.update({k: v for k, v in notes.items() if k not in new.attributes})
    for value in copy.results:
        last = value.owner
        if isinstance(last, NodeOp) and node_name(last) is None:
            last.attributes["onnx.names"] = NamesAttr(Names(node_name(op), result_names(last)))
