"""A module as lines of text about nodes: what people read, and what two modules are compared by.

Values go by their names. Those that passes made have none and go by where they come from: `Mul:0`
is the first result of an unnamed Mul.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from foldline.dialects.fold.flags import folded_nodes
from foldline.dialects.onnx.constant import constant_tensor, is_constant
from foldline.dialects.onnx.op import NodeOp, OnnxOp, node_name, plain_value, result_names
from foldline.dialects.onnx.structure import (
    CallOp,
    FunctionOp,
    GraphOp,
    NoneOp,
    interface,
    terminator,
)
from foldline.dialects.onnx.tensor import Tensor
from foldline.dialects.onnx.types import UnknownType, dims_of, element_of, element_type

SHOWN_ELEMENTS = 8
"""A constant of more elements is shown by its type."""
LONGEST_ATTRIBUTE = 80


@dataclass(frozen=True)
class Node:
    """One node, constants included."""

    graph: str
    """'' for the main graph; else the function, or the node and the attribute that hold it."""
    op_type: str
    """With its domain where that is not ONNX's: `com.microsoft.Gelu`."""
    name: str
    """'' where it has none."""
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[tuple[str, str], ...]
    """Names and values as text, sorted by name."""
    types: tuple[str, ...]
    """Of the outputs."""
    value: str = ""
    """Of a constant: its elements, or its type and a digest where they are many."""
    folded: tuple[str, ...] = ()
    """Of a constant: the nodes it was folded from."""
    defaults: tuple[str, ...] = ()
    """The attributes that say what holds without them, too."""
    arguments: tuple[str, ...] = ()
    """What its bodies are given."""

    @property
    def is_constant(self) -> bool:
        """Whether it computes nothing."""
        return bool(self.value)

    @property
    def meant(self) -> tuple[tuple[str, str], ...]:
        """The attributes that make a difference."""
        return tuple(item for item in self.attributes if item[0] not in self.defaults)

    @property
    def holder(self) -> str:
        """What the names of its bodies begin with."""
        return f"{self.graph}{'/' if self.graph else ''}{self.label}"

    @property
    def is_named(self) -> bool:
        """Whether its first output has a name of its own; those without are `Mul:0`."""
        return bool(self.outputs) and not self.outputs[0].startswith(f"{self.op_type}:")

    @property
    def label(self) -> str:
        """How it is called: its name, or that of its first output; a constant by its value's."""
        named = "" if self.is_constant else self.name
        return named or next((name for name in self.outputs if name), "")

    def __str__(self) -> str:
        if self.is_constant:
            return f"{self.outputs[0]} = {self.value}"
        inside = ", ".join(f"{name}={text}" for name, text in self.attributes)
        call = f"{self.op_type}{f'[{inside}]' if inside else ''}({', '.join(self.inputs)})"
        typed = ", ".join(
            f"{name}: {text}" if text else name
            for name, text in zip(self.outputs, self.types, strict=True)
        )
        is_said = self.name in ("", self.outputs[0] if self.outputs else "")
        return f"{'' if is_said else f'{self.name}: '}{typed} = {call}"


class Naming:
    """Names of the values of one module."""

    def __init__(self, module: ModuleOp):
        self._module = module

    @cached_property
    def _names(self) -> dict[SSAValue, str]:
        names: dict[SSAValue, str] = {}
        counts: dict[str, int] = {}
        for op in self._module.walk():
            for region in op.regions:
                for block in region.blocks:
                    names.update(_argument_names(op, block))
            given = result_names(op)
            for index, result in enumerate(op.results):
                name = given[index]
                if not name:
                    kind = _operator(op)
                    counts[kind] = counts.get(kind, -1) + 1
                    name = f"{kind}:{counts[kind]}"
                names[result] = name
        return names

    def __getitem__(self, value: SSAValue) -> str:
        return "" if isinstance(value.owner, NoneOp) else self._names[value]


def _argument_names(op: Operation, block: Block) -> Iterator[tuple[BlockArgument, str]]:
    known = interface(block).inputs if isinstance(op, GraphOp | FunctionOp | NodeOp) else ()
    for index, argument in enumerate(block.args):
        name = known[index].name if index < len(known) else ""
        yield argument, name or f"input:{index}"


def nodes_of(module: ModuleOp) -> list[tuple[Operation, Node]]:
    """The nodes of all graphs and functions, bodies after the node that holds them."""
    naming = Naming(module)
    found: list[tuple[Operation, Node]] = []
    for op in module.body.block.ops:
        if isinstance(op, GraphOp | FunctionOp):
            graph = "" if isinstance(op, GraphOp) else f"function {op.sym_name.data}"
            _gather(op.regions[0].block, graph, naming, found)
    return found


def _gather(block: Block, graph: str, naming: Naming, found: list[tuple[Operation, Node]]) -> None:
    for op in block.ops:
        if op is terminator(block) or isinstance(op, NoneOp):
            continue
        if isinstance(op, NodeOp) or is_constant(op):
            node = node_of(op, graph, naming)
            found.append((op, node))
            for index, region in enumerate(op.regions):
                names = op.region_names() if isinstance(op, NodeOp) else ()
                body = names[index] if index < len(names) else "body"
                _gather(region.block, f"{node.holder}.{body}", naming, found)


def node_of(op: Operation, graph: str, naming: Naming) -> Node:
    """One node as text."""
    tensor = constant_tensor(op.results[0]) if is_constant(op) else None
    attributes: Mapping[str, Attribute] = {}
    if isinstance(op, NodeOp) and tensor is None:
        attributes = op.onnx_attributes
    return Node(
        graph=graph,
        op_type=_operator(op),
        name=node_name(op) or "",
        inputs=tuple(naming[value] for value in read_values(op)),
        outputs=tuple(naming[value] for value in op.results),
        attributes=tuple(
            sorted((name, _attribute_text(value)) for name, value in attributes.items())
        ),
        types=tuple(type_text(value.type) for value in op.results),
        value="" if tensor is None else value_text(tensor.data),
        folded=folded_nodes(op) or (),
        defaults=_defaults(op, attributes),
        arguments=tuple(
            naming[value]
            for region in op.regions
            for block in region.blocks
            for value in block.args
        ),
    )


def _defaults(op: Operation, attributes: Mapping[str, Attribute]) -> tuple[str, ...]:
    """Attributes that are given and mean what their absence means."""
    found = op.signature if isinstance(op, OnnxOp) and attributes else None
    schemas = {} if found is None else found.attributes
    return tuple(
        name
        for name, value in attributes.items()
        if (schema := schemas.get(name)) is not None
        and schema.default is not None
        and plain_value(value) == schema.default
    )


def read_values(op: Operation) -> list[SSAValue]:
    """What an operation reads: its operands, and what its bodies take from outside."""
    outside: dict[SSAValue, None] = {}
    inner = {id(op)}
    for nested in op.walk():
        inner.add(id(nested))
        if nested is not op:
            outside.update(dict.fromkeys(v for v in nested.operands if id(_holder(v)) not in inner))
    return [*op.operands, *outside]


def _holder(value: SSAValue) -> Operation | None:
    """The operation that makes a value, or whose body it is an argument of."""
    owner = value.owner
    return owner.parent_op() if isinstance(owner, Block) else owner


def _operator(op: Operation) -> str:
    if not isinstance(op, NodeOp):
        return op.name.rpartition(".")[2].capitalize()
    domain = op.domain
    is_plain = domain in ("", "ai.onnx") or isinstance(op, CallOp)
    return op.op_type if is_plain else f"{domain}.{op.op_type}"


def type_text(attribute: Attribute) -> str:
    """`float32[batch,3,?]`; '' where nothing is known."""
    if isinstance(attribute, UnknownType):
        return ""
    element, dims = element_type(attribute), dims_of(attribute)
    if element is None:
        return str(attribute)
    row = element_of(element)
    name = str(element) if row is None else row.name
    if dims is None:
        return f"{name}[*]"
    sizes = ("?" if dim is None or (isinstance(dim, int) and dim < 0) else dim for dim in dims)
    return f"{name}[{','.join(map(str, sizes))}]" if dims else name


def value_text(tensor: Tensor) -> str:
    """The elements where they are few, else dtype, shape and the begin of a digest."""
    array = tensor.array
    shape = list(array.shape) if array.ndim else ""
    text = _elements(array) if array.size <= SHOWN_ELEMENTS else None
    if text is not None and len(text) <= LONGEST_ATTRIBUTE:
        return f"{array.dtype}{shape} {text}"
    if tensor.is_splat:
        return f"{array.dtype}{shape} all {_elements(array.flat[0])}"
    return f"{array.dtype}{shape} #{tensor.digest.hex()[:8]}"


def _elements(array: Any) -> str:
    """Each number with the digits that tell it from others of its type."""
    if getattr(array, "ndim", 0):
        return f"[{', '.join(map(_elements, array))}]"
    return repr(array) if isinstance(array, str) else str(array)


def _attribute_text(attribute: Attribute) -> str:
    """A number, text or list as Python writes it, cut where it is long."""
    try:
        value = plain_value(attribute)
    except TypeError:
        value = attribute
    text = _plain(value)
    return text if len(text) <= LONGEST_ATTRIBUTE else f"{text[: LONGEST_ATTRIBUTE - 3]}..."


def _plain(value: Any) -> str:
    """As Python writes it, but floats, which are float32 in ONNX, with the digits of that."""
    if isinstance(value, float):
        return str(np.float32(value))
    if isinstance(value, tuple):
        items = cast("tuple[Any, ...]", value)
        return f"({', '.join(map(_plain, items))}{',' if len(items) == 1 else ''})"
    return repr(value) if isinstance(value, str) else str(value)
