"""The base of all ONNX operations: one class an operator type, access by index.

An absent optional input is the value of `onnx.none`, so an operand's index is its ONNX input
position.

Operations do not store a version: what `since` says is looked up from the imports of the nearest
enclosing graph or function, so a node can never disagree with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar, cast, overload

from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue, TypeAttribute
from xdsl.irdl import (
    irdl_op_definition,
    opt_prop_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)

from foldline.dialects.onnx.attributes import NamesAttr, OpsetsAttr
from foldline.dialects.onnx.schema import AttributeValue, Signature, operators, signature
from foldline.dialects.onnx.tensor import TensorAttr
from foldline.dialects.onnx.terse import TerseOp
from foldline.dialects.onnx.text import TextAttr, TextsAttr
from foldline.dialects.onnx.types import AbsentType

OpClass = TypeVar("OpClass", bound="type[OnnxOp]")


class NodeOp(TerseOp):
    """An operation that stands for an ONNX node: an operator, a function call, a custom node."""

    inputs = var_operand_def()
    outputs = var_result_def()
    bodies = var_region_def()

    REGIONS: ClassVar[tuple[str, ...]] = ()
    """Names of the GRAPH attributes that the regions stand for, in order."""

    @property
    def domain(self) -> str:
        """The operator's domain; the default one is empty."""
        raise NotImplementedError

    @property
    def op_type(self) -> str:
        """The operator's name."""
        raise NotImplementedError

    @property
    def onnx_attributes(self) -> Mapping[str, Attribute]:
        """The node's attributes as given, graphs left out."""
        raise NotImplementedError

    def region_names(self) -> tuple[str, ...]:
        """The GRAPH attribute that each region stands for."""
        names = self.properties.get("graph_names")
        return names.data if isinstance(names, TextsAttr) else self.REGIONS

    def operand(self, index: int) -> SSAValue | None:
        """The operand at an ONNX input position; None if it is absent."""
        if index >= len(self.operands):
            return None
        value = self.operands[index]
        return None if isinstance(value.type, AbsentType) else value

    def attribute_values(self) -> dict[str, AttributeValue]:
        """The attributes as plain values, as kernels take them."""
        return {name: plain_value(value) for name, value in self.onnx_attributes.items()}


@dataclass(frozen=True, slots=True)
class BodyArity:
    """How many inputs and outputs a body has to have."""

    inputs: int
    outputs: int


class OnnxOp(NodeOp):
    """An operator that a schema defines."""

    DOMAIN: ClassVar[str] = ""
    OP_TYPE: ClassVar[str] = ""
    SHAPE_OPERANDS: ClassVar[tuple[int, ...]] = ()
    """Positions of inputs whose values, not only shapes, decide the output shapes."""

    @property
    def domain(self) -> str:
        """The operator's domain; the default one is empty."""
        return self.DOMAIN

    @property
    def op_type(self) -> str:
        """The operator's name."""
        return self.OP_TYPE

    @property
    def onnx_attributes(self) -> Mapping[str, Attribute]:
        """The node's attributes as given, graphs left out."""
        if "graph_names" not in self.properties:
            return self.properties
        return {k: v for k, v in self.properties.items() if k != "graph_names"}

    @property
    def signature(self) -> Signature | None:
        """The schema under the enclosing imports; None for an operator they do not hold."""
        version = opset_versions(self).get(self.DOMAIN)
        return None if version is None else signature(self.DOMAIN, self.OP_TYPE, version)

    @property
    def since(self) -> int:
        """The version of the schema that this node resolves to.

        Raises LookupError where the enclosing graph does not import the operator.
        """
        found = self.signature
        if found is None:
            raise LookupError(f"{self.name} is not in the operator sets imported here")
        return found.since

    def body_arity(self, name: str) -> BodyArity | None:
        """What operands and results demand of the body `name`; None if nothing."""
        del name
        return None

    def misfit(self) -> str:
        """What of its attributes does not fit how many inputs and outputs it has; else empty."""
        return ""

    def attribute_values(self) -> dict[str, AttributeValue]:
        """The attributes as plain values, with the defaults of the node's version."""
        values = super().attribute_values()
        if (found := self.signature) is not None:
            for name, schema in found.attributes.items():
                if name not in values and schema.default is not None:
                    values[name] = schema.default
        return values

    def value_of(self, name: str) -> AttributeValue | None:
        """One attribute as a plain value, or its default at this version, or None."""
        given = self.properties.get(name)
        if given is not None:
            return plain_value(given)
        found = self.signature
        schema = found.attributes.get(name) if found is not None else None
        return schema.default if schema is not None else None

    def int_of(self, name: str) -> int | None:
        """An INT attribute or its default."""
        value = self.value_of(name)
        return value if isinstance(value, int) else None

    def ints_of(self, name: str) -> tuple[int, ...] | None:
        """An INTS attribute or its default."""
        value = self.value_of(name)
        return cast("tuple[int, ...]", value) if isinstance(value, tuple) else None


def plain_value(attribute: Attribute) -> AttributeValue:
    """An attribute as kernels take it; types stay as they are.

    Raises TypeError for a reference to a function's attribute: it has no value yet.
    """
    match attribute:
        case IntegerAttr():
            return int(attribute.value.data)
        case FloatAttr():
            return attribute.value.data
        case TextAttr() | TextsAttr():
            return attribute.data
        case DenseArrayBase():
            return tuple(cast(Any, attribute).get_values())
        case TensorAttr():
            return attribute.array
        case TypeAttribute():
            return cast(Any, attribute)
        case _:
            raise TypeError(f"{attribute} has no plain value")


class Operand(property):
    """Accessor of an input by position: the value, or None where it is absent.

    A property, as xDSL allows no other descriptor in the class of an operation.
    """

    def __init__(self, index: int):
        super().__init__()
        self.index = index

    @overload
    def __get__(self, op: None, owner: type, /) -> Self: ...
    @overload
    def __get__(self, op: Any, owner: type | None = None, /) -> SSAValue | None: ...
    def __get__(self, op: Any, owner: type | None = None, /) -> SSAValue | Self | None:
        return self if op is None else op.operand(self.index)


class RequiredOperand(property):
    """Accessor of an input that the schema requires."""

    def __init__(self, index: int):
        super().__init__()
        self.index = index

    @overload
    def __get__(self, op: None, owner: type, /) -> Self: ...
    @overload
    def __get__(self, op: Any, owner: type | None = None, /) -> SSAValue: ...
    def __get__(self, op: Any, owner: type | None = None, /) -> SSAValue | Self:
        return self if op is None else op.operands[self.index]


def onnx_op(
    op_type: str,
    domain: str = "",
    shape_operands: tuple[int, ...] = (),
    name: str | None = None,
) -> Callable[[OpClass], OpClass]:
    """Define the class of an operator: properties from its schemas, over all versions.

    `shape_operands`: positions of inputs whose values, not only shapes, decide output shapes.
    `name`: the operation's name where `operation_name` is not meant.
    """

    def define(cls: OpClass) -> OpClass:
        cls.name = name or operation_name(domain, op_type)
        kinds = _attribute_kinds(domain, op_type)
        graphs = tuple(attribute for attribute, kind in kinds.items() if kind == _GRAPH)
        fields = {
            f"{attribute}_": opt_prop_def(Attribute, prop_name=attribute)
            for attribute in kinds
            if attribute not in graphs
        }
        if graphs:
            fields["graph_names_"] = opt_prop_def(TextsAttr, prop_name="graph_names")
        for field, definition in fields.items():
            setattr(cls, field, definition)
        irdl_op_definition(cls)
        cls.DOMAIN, cls.OP_TYPE = domain, op_type
        cls.REGIONS, cls.SHAPE_OPERANDS = graphs, shape_operands
        return cls

    return define


_GRAPH = 5


def _attribute_kinds(domain: str, op_type: str) -> dict[str, int]:
    """Attribute kinds over all versions of an operator (a later version wins)."""
    kinds: dict[str, int] = {}
    for version in operators()[domain, op_type]:
        for name, schema in version.attributes.items():
            kinds[name] = schema.kind
    return kinds


def operation_name(domain: str, op_type: str) -> str:
    """`onnx.Conv`; other ONNX domains keep their last parts: `onnx.ml.Scaler`."""
    family = domain.removeprefix("ai.onnx").strip(".")
    return f"onnx.{family}.{op_type}" if family else f"onnx.{op_type}"


def opset_versions(op: Operation) -> Mapping[str, int]:
    """Imported version by domain at `op`: those of the nearest enclosing graph or function."""
    scope: Operation | None = op
    while scope is not None:
        opsets = scope.properties.get("opsets")
        if isinstance(opsets, OpsetsAttr):
            return opsets.versions
        scope = scope.parent_op()
    return {}


def node_name(op: Operation) -> str | None:
    """The ONNX name of a node, if it has one."""
    names = op.attributes.get("onnx.names")
    return names.data.node if isinstance(names, NamesAttr) else None


def describe(op: Operation) -> str:
    """`onnx.Conv (node 'conv_1')`, for messages; a custom node says its operator as well."""
    op_type = op.properties.get("op_type")
    what = f"{op.name} {op_type.data}" if isinstance(op_type, TextAttr) else op.name
    name = node_name(op)
    if name:
        return f"{what} (node '{name}')"
    outputs = [n for n in result_names(op) if n]
    return f"{what} (output '{outputs[0]}')" if outputs else what


def result_names(op: Operation) -> tuple[str, ...]:
    """The ONNX names of an operation's results; empty strings where there are none."""
    names = op.attributes.get("onnx.names")
    known = names.data.values if isinstance(names, NamesAttr) else ()
    return known + ("",) * (len(op.results) - len(known))
