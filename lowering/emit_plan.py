"""From the onnx dialect to the plan dialect.

    onnx.graph {nodes, initializers, calls of functions}  ->  plan.program {constants, plan.call}

Every node becomes a call of its kernel with its attributes resolved. Calls of functions, and
nodes that run as one, are inlined: bodies resolve operators under the function's own imports, and
a reference to an attribute takes the caller's value, else the function's default, else the
attribute is left out.
Bodies of control flow become closed: what they use of outer values becomes an operand.
The module is only read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from foldline.dialects.fused.element_wise import ElementWiseOp
from foldline.dialects.onnx.attributes import InterfaceAttr, ReferenceAttr, TextAttr, TextsAttr
from foldline.dialects.onnx.constant import ConstantOp as OnnxConstantOp
from foldline.dialects.onnx.nn import DropoutOp
from foldline.dialects.onnx.op import NodeOp, OnnxOp, describe
from foldline.dialects.onnx.structure import (
    AnnotationOp,
    DefaultOp,
    FunctionOp,
    InitializerOp,
    NoneOp,
    ReturnOp,
    interface,
    main_graph,
)
from foldline.dialects.onnx.structure import (
    CallOp as FunctionCallOp,
)
from foldline.dialects.onnx.tensor import TensorAttr
from foldline.dialects.onnx.traits import (
    DataDependentShape,
    ElementWise,
    NonDeterministic,
    ReadsShapeOnly,
)
from foldline.dialects.plan import CallOp, ConstantOp, ProgramOp
from foldline.dialects.plan import ReturnOp as PlanReturnOp
from foldline.lowering.order_operations import mark_last_uses, ordered
from foldline.lowering.select_kernels import Chosen, Selected
from foldline.support.errors import InvalidModel, ResourceLimit, UnsupportedOperator

Constants: TypeAlias = Literal["once", "always"]
"""When subgraphs of constants are computed: once in the life of a program, or at every run."""

MOST_CALLS = 1_000_000
"""Functions that call functions can describe a program exponentially larger than the model."""

_Entry: TypeAlias = SSAValue | TensorAttr | None
"""What a value of the model is in the plan: a value, a constant, or absent."""


def emit_plan(
    module: ModuleOp, kernels: Mapping[Operation, Chosen], constants: Constants = "once"
) -> ProgramOp:
    """The program of a module whose nodes `kernels` covers.

    Raises InvalidModel for a constant without value, ResourceLimit when inlining does not end.
    """
    source = main_graph(module).body.block
    emitter = _Emitter(kernels, constants == "once")
    block = _new_block(source.args)
    scope = _Scope(dict(zip(source.args, block.args, strict=True)), _Target(block), {})
    emitter.emit(source, scope)
    emitter.finish(scope.target, ())
    defaults = [emitter.defaults.get(argument, UnitAttr()) for argument in source.args]
    return ProgramOp.create(
        properties={
            "interface": InterfaceAttr(interface(source)),
            "defaults": ArrayAttr(defaults),
        },
        regions=[Region(block)],
    )


@dataclass
class _Target:
    """A block of the plan under construction."""

    block: Block
    ops: list[Operation] = field(default_factory=list[Operation])
    constants: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    once: set[SSAValue] = field(default_factory=set[SSAValue])
    returned: list[SSAValue] = field(default_factory=list[SSAValue])

    def add(self, op: Operation) -> SSAValue:
        self.ops.append(op)
        return op.results[0]

    def value(self, entry: _Entry) -> SSAValue:
        """The value of an entry in this block; constants are placed where first used."""
        if isinstance(entry, SSAValue):
            return entry
        key = 0 if entry is None else id(entry.data)
        found = self.constants.get(key)
        if found is None:
            op = (
                NoneOp.new()
                if entry is None
                else ConstantOp.create(properties={"value": entry}, result_types=[entry.type])
            )
            found = self.constants[key] = self.add(op)
        return found

    def is_constant(self, value: SSAValue) -> bool:
        return isinstance(value.owner, ConstantOp | NoneOp) or value in self.once


@dataclass
class _Scope:
    """One graph, body or function on its way into a block of the plan."""

    entries: dict[SSAValue, _Entry]
    target: _Target
    attributes: Mapping[str, Attribute]
    """Attributes of the function, that references may name."""

    def resolved(self, given: Mapping[str, Attribute]) -> dict[str, Attribute]:
        """The attributes with references replaced; those without a value are left out."""
        pairs = (
            (name, self.attributes.get(value.data.attribute))
            if isinstance(value, ReferenceAttr)
            else (name, value)
            for name, value in given.items()
        )
        return {name: value for name, value in pairs if value is not None}


class _Emitter:
    def __init__(self, kernels: Mapping[Operation, Chosen], fold: bool):
        self.kernels = kernels
        self.fold = fold
        self.defaults: dict[SSAValue, TensorAttr] = {}
        self.calls = 0
        self.chains = 0
        self.chain: IntegerAttr[Any] | None = None
        """The number of the chain that is being emitted."""

    def emit(self, source: Block, scope: _Scope) -> None:
        """Append the operations of a graph or body, and note what it returns."""
        scope.target.returned = [
            scope.target.value(entry) for entry in self._operations(source, scope)
        ]

    def finish(self, target: _Target, captures: Sequence[SSAValue]) -> None:
        """Order the operations of a block, mark last uses, and close it."""
        ops = ordered(target.ops)
        mark_last_uses(ops, {*target.returned, *captures})
        target.block.add_ops([*ops, PlanReturnOp.create(operands=target.returned)])

    def _operations(self, source: Block, scope: _Scope) -> list[_Entry]:
        for op in source.ops:
            match op:
                case ReturnOp():
                    return [scope.entries[value] for value in op.operands]
                case NoneOp():
                    scope.entries[op.results[0]] = None
                case InitializerOp():
                    scope.entries[op.results[0]] = op.value
                case OnnxConstantOp():
                    scope.entries[op.results[0]] = _constant(op, scope)
                case DefaultOp():
                    self.defaults[op.argument] = op.value
                case AnnotationOp():
                    pass  # Says how a tensor was quantised, computes nothing.
                case FunctionCallOp():
                    self._inline(op, op.function, scope)
                case ElementWiseOp():
                    self._chain(op, scope)
                case NodeOp():
                    self._run(op, scope)
                case _:
                    raise InvalidModel(f"{op.name} cannot stand in a graph")
        raise InvalidModel("a graph does not end with onnx.return")

    def _run(self, op: NodeOp, scope: _Scope) -> None:
        match self.kernels[op]:
            case FunctionOp() as function:
                self._inline(op, function, scope)
            case chosen:
                self._call(op, chosen, scope)

    def _chain(self, op: ElementWiseOp, scope: _Scope) -> None:
        """Emit the operators of a chain, and note on them that they may run part by part."""
        self.chains += 1
        around, self.chain = self.chain, IntegerAttr(self.chains, i64)
        (result,) = self._operations(op.regions[0].block, scope)
        self.chain = around
        scope.entries[op.results[0]] = result

    def _inline(self, op: NodeOp, function: FunctionOp, scope: _Scope) -> None:
        if op.regions:
            raise UnsupportedOperator(f"{describe(op)} gives a graph to a function")
        block = function.body.block
        entries: dict[SSAValue, _Entry] = dict.fromkeys(block.args)
        entries.update(zip(block.args, (scope.entries[v] for v in op.operands), strict=False))
        given = {**function.defaults.data, **scope.resolved(op.onnx_attributes)}
        results = self._operations(block, _Scope(entries, scope.target, given))
        scope.entries.update(zip(op.results, results, strict=False))

    def _call(self, op: NodeOp, chosen: Selected, scope: _Scope) -> None:
        self.calls += 1
        if self.calls > MOST_CALLS:
            raise ResourceLimit(f"more than {MOST_CALLS} nodes once functions are inlined")
        target = scope.target
        operands = [target.value(scope.entries[value]) for value in op.operands]
        captures, regions = self._bodies(op, scope)
        properties: dict[str, Attribute] = {
            "domain": TextAttr(op.domain),
            "op_type": TextAttr(op.op_type),
            "since": IntegerAttr(chosen.since, i64),
            "kernel": TextAttr(f"{chosen.kernel.grade} {chosen.kernel.where}"),
            "given": DictionaryAttr(scope.resolved(op.onnx_attributes)),
        }
        if self.chain is not None:
            properties["chain"] = self.chain
        if regions:
            properties["bodies"] = TextsAttr(op.region_names())
            properties["captures"] = IntegerAttr(len(captures), i64)
        facts = _facts(op, regions)
        if facts:
            properties["facts"] = TextsAttr(facts)
        if isinstance(op, OnnxOp) and op.SHAPE_OPERANDS:
            present = [p for p in op.SHAPE_OPERANDS if p < len(operands)]
            properties["shape_operands"] = DenseArrayBase.from_list(i64, present)
        operands += captures
        is_once = self.fold and "random" not in facts and all(map(target.is_constant, operands))
        if is_once:
            properties["once"] = UnitAttr()
        names = op.attributes.get("onnx.names")
        call = CallOp.create(
            operands=operands,
            result_types=[result.type for result in op.results],
            properties=properties,
            attributes={} if names is None else {"onnx.names": names},
            regions=regions,
        )
        target.ops.append(call)
        scope.entries.update(zip(op.results, call.results, strict=True))
        if is_once:
            target.once.update(call.results)

    def _bodies(self, op: NodeOp, scope: _Scope) -> tuple[list[SSAValue], list[Region]]:
        """The bodies of a node as closed regions, and what they take from outside."""
        if not op.regions:
            return [], []
        free = _free_values(op)
        captured = {v: e for v in free if isinstance(e := scope.entries[v], SSAValue)}
        regions: list[Region] = []
        for region in op.regions:
            block = _new_block([*region.block.args, *captured])
            outside = block.args[len(region.block.args) :]
            entries: dict[SSAValue, _Entry] = {v: scope.entries[v] for v in free}
            entries.update(zip((*region.block.args, *captured), block.args, strict=True))
            inner = _Scope(entries, _Target(block), scope.attributes)
            self.emit(region.block, inner)
            self.finish(inner.target, outside)
            regions.append(Region(block))
        return list(captured.values()), regions


def _new_block(like: Sequence[SSAValue]) -> Block:
    return Block(arg_types=[value.type for value in like])


def _free_values(op: Operation) -> dict[SSAValue, None]:
    """What the bodies of an operation use of outer values, in order of use."""
    inner = {id(op)}
    free: dict[SSAValue, None] = {}
    for nested in op.walk():
        if nested is op:
            continue
        inner.add(id(nested))
        for value in nested.operands:
            owner = value.owner
            scope = owner.parent_op() if isinstance(value, BlockArgument) else owner
            if id(scope) not in inner:
                free[value] = None
    return free


def _facts(op: NodeOp, regions: Sequence[Region]) -> tuple[str, ...]:
    """What the planner has to know beside the kernel."""
    nested = [call for region in regions for call in region.walk() if isinstance(call, CallOp)]
    is_random = (
        op.has_trait(NonDeterministic)
        or (isinstance(op, DropoutOp) and op.may_train())
        or any("random" in call.texts("facts") for call in nested)
    )
    is_open = op.has_trait(DataDependentShape) or not isinstance(op, OnnxOp)
    table = {
        "random": is_random,
        "reads-shape": op.has_trait(ReadsShapeOnly),
        "open-shape": is_open,
        "element-wise": op.has_trait(ElementWise),
    }
    return tuple(word for word, holds in table.items() if holds)


def _constant(op: OnnxConstantOp, scope: _Scope) -> TensorAttr:
    given = scope.resolved(op.properties)
    tensor = OnnxConstantOp.create(properties=given, result_types=[op.results[0].type]).tensor()
    if tensor is None:
        raise InvalidModel(f"{describe(op)} has no value")
    return tensor
