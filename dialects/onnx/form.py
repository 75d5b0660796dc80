"""An operator in the form of one version: what is an attribute there, and what a constant input.

Which of the two a parameter is stands in the schemas. The tables here say what the schemas do not:
older names of a parameter, and values that mean the same as none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, TypeGuard, cast

import numpy as np
from onnx import AttributeProto
from xdsl.ir import Attribute, Operation, SSAValue

from foldline.dialects.onnx.attributes import Names, NamesAttr
from foldline.dialects.onnx.constant import ConstantOp, constant_tensor
from foldline.dialects.onnx.op import OnnxOp
from foldline.dialects.onnx.plain import attribute_of
from foldline.dialects.onnx.schema import Parameter, Signature, signature
from foldline.dialects.onnx.structure import NoneOp
from foldline.dialects.onnx.tensor import Array, TensorAttr
from foldline.dialects.onnx.types import element_of, element_type
from foldline.support.dtypes import BY_NAME, BY_NUMPY, ElementType
from foldline.support.errors import RewriteError

Operator: TypeAlias = tuple[str, str]
Types: TypeAlias = Sequence[Attribute]

SPELLINGS: dict[Operator, dict[str, tuple[str, ...]]] = {
    ("", "Pad"): {"pads": ("paddings",), "constant_value": ("value",)},
    ("", "TopK"): {"K": ("k",)},
}
"""Other names that older versions have for a parameter."""

VECTORS = frozenset({("", "TopK", "K")})
"""Parameters that are one number as an attribute, and a list of one number as an input."""

NEUTRAL: dict[Operator, dict[str, Any]] = {
    ("", "Slice"): {"steps": 1},
    ("", "Reshape"): {"allowzero": 0},
    ("", "TopK"): {"largest": 1, "sorted": 1},
    ("", "Cast"): {"saturate": 1},
}
"""Values (of each element, for lists) that mean the same as leaving a parameter out."""

NEUTRAL_EVERYWHERE: dict[str, Any] = {"noop_with_empty_axes": 0, "select_last_index": 0}
"""The same, for parameters that many operators share."""

_PREFERRED = ("tensor(int64)", "tensor(float)")


def constant(tensor: TensorAttr, version: int | None, names: Names | None = None) -> ConstantOp:
    """A Constant node of operator set `version`.

    Raises RewriteError for a type that Constant cannot hold there (integers, below version 9).
    """
    element = BY_NUMPY[tensor.array.dtype].name
    found = None if version is None else signature("", "Constant", version)
    if found is None or f"tensor({element})" not in found.outputs[0].types:
        raise RewriteError(f"Constant of operator set {version} cannot hold {element}")
    return ConstantOp.create(
        result_types=[tensor.type],
        properties={"value": tensor},
        attributes=_names(names),
    )


def _names(names: Names | None) -> dict[str, Attribute]:
    return {} if names is None else {"onnx.names": NamesAttr(names)}


class Form:
    """One operator while it is put into the form of its version.

    Raises RewriteError where the version cannot say what it is given.
    """

    def __init__(
        self, found: Signature, operands: Sequence[SSAValue | None], constants: int | None
    ):
        """`constants`: the operator set that new Constant nodes belong to."""
        self.signature = found
        self.constant_version = constants
        self.operator = found.domain, found.op_type
        self.operands = list(operands)
        self.properties: dict[str, Attribute] = {}
        self.constants: list[Operation] = []

    def give(self, name: str, value: Any) -> None:
        """Put a parameter where the version has it."""
        if _is_scalar(value):
            value = np.asarray(value)
        spellings = (name, *SPELLINGS.get(self.operator, {}).get(name, ()))
        for spelling in spellings:
            schema = self.signature.attributes.get(spelling)
            if schema is not None:
                plain = self._plain(spelling, schema.kind, value)
                self.properties[spelling] = attribute_of(schema.kind, plain)
                return
        for index, formal in enumerate(self.signature.inputs):
            if formal.name in spellings:
                self._input(index, formal, value)
                return
        if not self._is_neutral(name, value):
            raise RewriteError(f"{self._label()} has no {name}")

    def finish(
        self, operator: type[OnnxOp], types: Types, names: Names | None = None
    ) -> list[Operation]:
        """The operations: what stands for absent inputs, constants, the operator."""
        ops = list(self.constants)
        operands = [value for value in self.operands if value is not None]
        if len(operands) < len(self.operands):
            none = NoneOp.new()
            ops.insert(0, none)
            operands = [none.value if value is None else value for value in self.operands]
        if len(operands) < self.signature.min_inputs:
            raise RewriteError(
                f"{self._label()} takes {self.signature.min_inputs} inputs, got {len(operands)}"
            )
        node = operator.create(
            operands=operands,
            result_types=types,
            properties=self.properties,
            attributes=_names(names),
        )
        return [*ops, node]

    def _label(self) -> str:
        return f"{self.signature.op_type} of version {self.signature.since}"

    def _plain(self, name: str, kind: int, value: Any) -> Any:
        """A value as the attribute's kind wants it; a constant input is read."""
        if isinstance(value, SSAValue):
            known = constant_tensor(cast(SSAValue, value))
            if known is None:
                raise RewriteError(f"{self._label()} wants a constant {name}")
            value = known.array
        if _is_array(value) and kind != AttributeProto.TENSOR:
            items = value.reshape(-1).tolist()
            return items[0] if kind in (AttributeProto.INT, AttributeProto.FLOAT) else tuple(items)
        if isinstance(value, ElementType):
            return value.name.upper() if kind == AttributeProto.STRING else value.code
        return value

    def _input(self, index: int, formal: Parameter, value: Any) -> None:
        if not isinstance(value, SSAValue):
            made = constant(TensorAttr.of(self._array(formal, value)), self.constant_version)
            self.constants.append(made)
            value = made.results[0]
        self.operands += [None] * (index + 1 - len(self.operands))
        self.operands[index] = value

    def _array(self, formal: Parameter, value: Any) -> Array:
        if _is_array(value):
            return value
        is_vector = (*self.operator, formal.name) in VECTORS
        return np.array([value] if is_vector else value, self._dtype(formal))

    def _dtype(self, formal: Parameter) -> np.dtype[Any]:
        """That of the inputs with the same type variable, if any; else int64, float, the first."""
        shares = [
            operand
            for other, operand in zip(self.signature.inputs, self.operands, strict=False)
            if operand is not None and other.variable == formal.variable
        ]
        for operand in shares:
            element = element_type(operand.type)
            if element is not None and (row := element_of(element)) is not None:
                return row.numpy
        if shares:
            raise RewriteError(f"{self._label()}: the type of {formal.name} is not known yet")
        preferred = [name for name in _PREFERRED if name in formal.types]
        name = (preferred or sorted(formal.types))[0]
        return BY_NAME[name.removeprefix("tensor(").removesuffix(")")].numpy

    def _is_neutral(self, name: str, value: Any) -> bool:
        neutral = NEUTRAL.get(self.operator, NEUTRAL_EVERYWHERE).get(name)
        if neutral is None or isinstance(value, SSAValue):
            return False
        return bool(np.all(np.asarray(value) == neutral))


def _is_scalar(value: object) -> bool:
    return isinstance(value, np.generic)


def _is_array(value: object) -> TypeGuard[Array]:
    return isinstance(value, np.ndarray)
