"""Where inference reads and writes types: in the IR, or beside it for one call of a function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from xdsl.ir import Attribute, SSAValue

from foldline.dialects.onnx.attributes import ReferenceAttr
from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.op import NodeOp, OnnxOp
from foldline.dialects.onnx.tensor import TensorAttr
from foldline.dialects.onnx.types import UNKNOWN
from foldline.stages.folding.known import known_tensor
from foldline.stages.rewriting import Rewriter


class Scope(Protocol):
    """Types and values in force."""

    def type_of(self, value: SSAValue) -> Attribute:
        """The type of a value."""
        ...

    def set_type(self, value: SSAValue, new: Attribute) -> None:
        """Give a value a type."""
        ...

    def constant(self, value: SSAValue) -> TensorAttr | None:
        """The tensor of a value that is constant, or will be."""
        ...

    def properties(self, op: OnnxOp) -> Mapping[str, Attribute]:
        """The attributes of an operation."""
        ...


class IrScope:
    """The types of the IR itself."""

    def __init__(self, rewriter: Rewriter):
        self._rewriter = rewriter

    def type_of(self, value: SSAValue) -> Attribute:
        """The type that the value has."""
        return value.type

    def set_type(self, value: SSAValue, new: Attribute) -> None:
        """Change the value's type, if it differs; that of a potential constant is its own."""
        if (known := known_tensor(value)) is not None:
            new = known.tensor.type
        if value.type is not new and value.type != new:
            self._rewriter.set_type(value, new)

    def constant(self, value: SSAValue) -> TensorAttr | None:
        """The tensor of a constant or of a potential one."""
        known = known_tensor(value)
        return None if known is None else known.tensor

    def properties(self, op: OnnxOp) -> Mapping[str, Attribute]:
        """The properties as they are, references to parameters of a function included."""
        return op.onnx_attributes


class TrialScope:
    """Types tried out on top of another scope, which is not changed."""

    def __init__(self, around: Scope):
        self._around = around
        self._types: dict[SSAValue, Attribute] = {}

    def type_of(self, value: SSAValue) -> Attribute:
        """The type that was set here, else the one around."""
        return self._types.get(value) or self._around.type_of(value)

    def set_type(self, value: SSAValue, new: Attribute) -> None:
        """Set the type here."""
        self._types[value] = new

    def constant(self, value: SSAValue) -> TensorAttr | None:
        """The tensor that is known around; marks on what is tried out rest on other types."""
        return constant_tensor(value) if value in self._types else self._around.constant(value)

    def properties(self, op: OnnxOp) -> Mapping[str, Attribute]:
        """The attributes that hold around."""
        return self._around.properties(op)


class CallScope:
    """Types inside a function for one call; the IR keeps those that hold for all calls."""

    def __init__(
        self,
        types: Mapping[SSAValue, Attribute],
        constants: Mapping[SSAValue, TensorAttr],
        attributes: Mapping[str, Attribute],
    ):
        self._types = dict(types)
        self._constants = dict(constants)
        self._attributes = attributes

    def type_of(self, value: SSAValue) -> Attribute:
        """The type for this call; that of constants stands in the IR."""
        found = self._types.get(value)
        if found is not None:
            return found
        constant = constant_tensor(value)
        return UNKNOWN if constant is None else constant.type

    def set_type(self, value: SSAValue, new: Attribute) -> None:
        """Set the type for this call."""
        self._types[value] = new

    def constant(self, value: SSAValue) -> TensorAttr | None:
        """The tensor of a constant in the function, or of a constant argument."""
        return self._constants.get(value) or constant_tensor(value)

    def properties(self, op: OnnxOp) -> Mapping[str, Attribute]:
        """The properties with what the call gives in place of references; absent ones are left."""
        return resolved(op, self._attributes)


def resolved(op: NodeOp, given: Mapping[str, Attribute]) -> dict[str, Attribute]:
    """The attributes of a node of a function, references replaced by what a call gives."""
    attributes: dict[str, Attribute] = {}
    for name, value in op.onnx_attributes.items():
        if isinstance(value, ReferenceAttr):
            if value.data.attribute in given:
                attributes[name] = given[value.data.attribute]
        else:
            attributes[name] = value
    return attributes
