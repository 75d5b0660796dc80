"""The form of a module with functions: each fused operator is a call of one that says what it is.

    fused.Linear(x, w, b) {activation = "Relu"}   ->   foldline::Linear_Relu(x, w, b)

What a fused operator reads are the inputs of its function, weights among them, and attributes that
its parts have as well are attributes of the function: calls whose bodies are equal share one. An
operator that stands for a single standard one is written as that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, ModuleOp, SymbolRefAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from foldline.dialects.fused import FUSED_DOMAIN
from foldline.dialects.fused.element_wise import ElementWiseOp
from foldline.dialects.fused.expansions import is_fused, parts_of
from foldline.dialects.onnx.attributes import (
    Interface,
    InterfaceAttr,
    Names,
    NamesAttr,
    OpsetsAttr,
    Reference,
    ReferenceAttr,
    ValueInfo,
    canonical_domain,
)
from foldline.dialects.onnx.constant import ConstantOp
from foldline.dialects.onnx.op import NodeOp, OnnxOp, opset_versions
from foldline.dialects.onnx.schema import signature
from foldline.dialects.onnx.structure import (
    CallOp,
    FunctionOp,
    NoneOp,
    ReturnOp,
    function_symbol,
    functions,
    main_graph,
    terminator,
)
from foldline.dialects.onnx.text import TextAttr, TextsAttr
from foldline.dialects.onnx.types import UNKNOWN, AbsentType
from foldline.exporter.standard import drop_domain, forget, put_parts, standard_form
from foldline.stages.rewrite.replacement import scope_of

FIRST_WITH_FUNCTIONS = 8
"""Files of earlier IR versions have no local functions."""

_KEPT = ("onnx.names", "onnx.doc", "onnx.metadata")
"""What the call bears of a fused operator."""


def functions_refusal(module: ModuleOp) -> str | None:
    """Why a module with fused operators cannot be written with functions; None if it can."""
    version = _ir_version(module)
    if version >= FIRST_WITH_FUNCTIONS or not any(map(is_fused, module.walk())):
        return None
    return (
        f"export.fused is functions, which IR version {FIRST_WITH_FUNCTIONS} has first, and the "
        f"model is of {version}: fused operators are written as standard ones"
    )


def function_form(module: ModuleOp) -> ModuleOp:
    """A copy with functions for fused operators, or the module itself where it has none.

    Below IR version 8 it is the standard form: the version of a model is never raised.
    """
    if _ir_version(module) < FIRST_WITH_FUNCTIONS:
        return standard_form(module)
    if not any(map(is_fused, module.walk())):
        return module
    copy = module.clone()
    library = _Library(copy)
    for op in list(copy.walk()):
        if isinstance(op, OnnxOp) and is_fused(op):
            library.write(op)
    drop_domain(copy)
    return copy


def _ir_version(module: ModuleOp) -> int:
    return cast("IntegerAttr", module.attributes["onnx.ir_version"]).value.data


@dataclass
class _Body:
    """What a fused operator stands for: operations in no block, and what they read from outside."""

    ops: list[Operation]
    results: Sequence[SSAValue]
    inputs: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    """With the names that they have inside."""
    given: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    """What the call gives for attributes of the function."""


class _Library:
    """The functions that are made for one module."""

    def __init__(self, module: ModuleOp):
        self._module, self._graph = module, main_graph(module)
        own = (f for f in functions(module) if f.domain.data == FUSED_DOMAIN)
        self._taken = {function.op_type.data for function in own}
        self._made: dict[str, list[FunctionOp]] = {}

    def write(self, op: OnnxOp) -> None:
        """Put a call in the place of a fused operator, or the one operator that it stands for."""
        if isinstance(op, ElementWiseOp):
            body = _of_chain(op)
        else:
            made, values = parts_of(op)
            if sum(isinstance(part, NodeOp) for part in made) == 1:
                put_parts(op, made, values)
                return
            body = _of_parts(op, made, values)
        self._call(op, body, self._function(op, body))

    def _function(self, op: OnnxOp, body: _Body) -> FunctionOp:
        """The function of a body: one that was made before, if it is equal."""
        label = _label(op)
        function = _as_function(op, body)
        known = self._made.setdefault(label, [])
        for other in known:
            if _are_equal(other, function):
                function.erase()
                return other
        known.append(function)
        _name(function, self._fresh(label))
        self._module.body.block.insert_op_before(function, self._graph)
        return function

    def _fresh(self, label: str) -> str:
        name, number = label, 1
        while name in self._taken:
            number += 1
            name = f"{label}_{number}"
        self._taken.add(name)
        return name

    def _call(self, op: OnnxOp, body: _Body, function: FunctionOp) -> None:
        call = CallOp.create(
            operands=list(body.inputs),
            result_types=[result.type for result in op.results],
            properties={
                "callee": SymbolRefAttr(function.sym_name),
                "given": DictionaryAttr(body.given),
            },
            attributes={name: op.attributes[name] for name in _KEPT if name in op.attributes},
        )
        block = op.parent
        assert block is not None
        block.insert_op_before(call, op)
        for old, new in zip(op.results, call.results, strict=True):
            old.replace_all_uses_with(new)
        forget(op)


def _label(op: OnnxOp) -> str:
    """What the functions of a fused operator are called: `Conv_Relu`."""
    activation = op.properties.get("activation")
    name = activation.data if isinstance(activation, TextAttr) else ""
    return f"{op.op_type}_{name}" if name else op.op_type


def _of_chain(op: ElementWiseOp) -> _Body:
    """The operators of a chain, taken out of it; parameters of the function around stay such."""
    inner = op.regions[0].block
    end = terminator(inner)
    results = tuple(end.operands)
    ops = [part for part in inner.ops if part is not end]
    for part in ops:
        part.detach()
    end.detach()
    end.erase()
    absent = NoneOp.new()
    for part in ops:
        part.operands = [absent.value if _is_absent(v) else v for v in part.operands]
    body = _Body([absent, *ops] if absent.value.first_use else ops, results)
    for value in _read_outside(body.ops):
        body.inputs[value] = f"X{len(body.inputs)}"
    for reference in _references(ops):
        body.given[reference.data.attribute] = reference
    return body


def _of_parts(op: OnnxOp, made: Sequence[Operation], values: Sequence[SSAValue]) -> _Body:
    """The parts of an operator; those of its attributes that they have too refer to the call's."""
    body = _Body(list(made), values)
    formals = op.signature
    assert formals is not None
    read = _read_outside(made)
    for value, formal in zip(op.operands, formals.inputs, strict=False):
        if value in read:
            body.inputs.setdefault(value, formal.name)
    versions = opset_versions(op)
    for part in made:
        if not isinstance(part, NodeOp) or isinstance(part, ConstantOp):
            continue
        schema = signature(part.domain, part.op_type, versions[part.domain])
        assert schema is not None
        for name, value in part.properties.items():
            if op.properties.get(name) == value:
                body.given[name] = value
                kind = schema.attributes[name].kind
                part.properties[name] = ReferenceAttr(Reference(name, kind))
    return body


def _is_absent(value: SSAValue) -> bool:
    return isinstance(value.type, AbsentType)


def _read_outside(ops: Sequence[Operation]) -> list[SSAValue]:
    """What operations read that none of them makes, in order."""
    own = {result for op in ops for result in op.results}
    return list(dict.fromkeys(v for op in ops for v in op.operands if v not in own))


def _references(ops: Sequence[Operation]) -> Iterator[ReferenceAttr]:
    for op in ops:
        if isinstance(op, NodeOp):
            yield from (v for v in op.onnx_attributes.values() if isinstance(v, ReferenceAttr))


def _as_function(op: OnnxOp, body: _Body) -> FunctionOp:
    """The function of a body, without name; equal bodies give equal ones, whatever types flow."""
    block = Block(arg_types=[UNKNOWN] * len(body.inputs))
    inside: dict[SSAValue, SSAValue] = dict(zip(body.inputs, block.args, strict=True))
    for part in body.ops:
        part.operands = [inside.get(value, value) for value in part.operands]
        if isinstance(part, NodeOp):
            _make_plain(part)
    block.add_ops(body.ops)
    formals = op.signature
    assert formals is not None
    interface = Interface(
        inputs=tuple(map(ValueInfo, body.inputs.values())),
        outputs=tuple(ValueInfo(formal.name) for formal in formals.outputs[: len(body.results)]),
    )
    block.add_op(
        ReturnOp.create(
            operands=list(body.results), properties={"interface": InterfaceAttr(interface)}
        )
    )
    return FunctionOp.create(
        properties={
            "domain": TextAttr(FUSED_DOMAIN),
            "opsets": _imports(op, body.ops),
            "parameters": TextsAttr(tuple(body.given)),
            "defaults": DictionaryAttr({}),
        },
        regions=[Region(block)],
    )


def _make_plain(part: NodeOp) -> None:
    """Take what only one call knows from an operation: types, facts, names."""
    names = Names(None, (part.op_type,) * len(part.results))
    part.attributes = {"onnx.names": NamesAttr(names)}
    for result in part.results:
        if not isinstance(part, ConstantOp) and not _is_absent(result):
            result._type = UNKNOWN  # pyright: ignore[reportPrivateUsage]


def _imports(op: OnnxOp, parts: Sequence[Operation]) -> OpsetsAttr:
    """The imports around an operator that its parts need."""
    used = {part.domain for part in parts if isinstance(part, NodeOp)}
    scope = scope_of(op)
    kept = (entry for entry in scope.opsets.data if canonical_domain(entry[0] or "") in used)
    return OpsetsAttr(tuple(kept))


def _are_equal(one: FunctionOp, other: FunctionOp) -> bool:
    """Whether two functions do the same, whatever they are called."""
    return (
        one.opsets == other.opsets
        and one.parameters == other.parameters
        and one.body.is_structurally_equivalent(other.body)
    )


def _name(function: FunctionOp, name: str) -> None:
    function.properties["op_type"] = TextAttr(name)
    function.properties["sym_name"] = function_symbol(FUSED_DOMAIN, name, "")
