"""Output types of one node by the onnx library's own inference, remembered by what it is given.

The library is given the node alone: types of its inputs, and the values of small constants, as it
serialises whatever it is given. What it leaves out is filled from the operator's signature.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from onnx import OperatorSetIdProto, TensorProto, TypeProto, defs, shape_inference
from onnx.checker import ValidationError
from xdsl.ir import Attribute

from foldline.dialects.onnx.attributes import ReferenceAttr
from foldline.dialects.onnx.node_proto import to_node_proto
from foldline.dialects.onnx.op import OnnxOp, opset_versions
from foldline.dialects.onnx.schema import Signature
from foldline.dialects.onnx.tensor import TensorAttr, data_bytes
from foldline.dialects.onnx.tensor_proto import tensor_proto
from foldline.dialects.onnx.type_proto import from_type_proto, to_type_proto
from foldline.dialects.onnx.types import (
    UNKNOWN,
    AbsentType,
    UnknownType,
    element_attribute,
    element_type,
    tensor_type,
)
from foldline.stages.inference.own_rules import (
    MISSED_DEFAULTS,
    own_types,
    told_types,
    unfit,
    withheld,
)
from foldline.support.dtypes import BY_NAME

MAX_ELEMENTS = 256
"""Constants with more elements say nothing about shapes that inference could use."""

Types = tuple[Attribute, ...]
_REFUSALS = (shape_inference.InferenceError, ValidationError, RuntimeError, ValueError)
"""What the library raises; the last for types of which it is told nothing."""


class IllTyped(Exception):
    """The library refuses a node; the text is its reason."""


class LibraryInference:
    """The library's inference with a memory."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], tuple[Types, object]] = {}

    def infer(
        self,
        op: OnnxOp,
        types: Sequence[Attribute],
        constants: Sequence[TensorAttr | None],
        properties: Mapping[str, Attribute],
    ) -> Types:
        """The types of the results of `op` under given input types, values and attributes.

        Raises IllTyped when all input types are known and do not fit.
        """
        versions = opset_versions(op)
        values = tuple(_value_key(op, i, c) for i, c in enumerate(constants))
        key = (
            type(op),
            id(versions),
            tuple(map(id, types)),
            values,
            *((name, id(value)) for name, value in properties.items()),
            tuple(isinstance(result.type, AbsentType) for result in op.results),
        )
        known = self._known.get(key)
        if known is None:
            found = self._ask(op, types, constants, values, properties, versions)
            # What the key names by identity is kept alive with it.
            known = self._known[key] = found, (versions, *types, *properties.values())
        return known[0]

    def _ask(
        self,
        op: OnnxOp,
        types: Sequence[Attribute],
        constants: Sequence[TensorAttr | None],
        values: Sequence[bytes | None],
        properties: Mapping[str, Attribute],
        versions: Mapping[str, int],
    ) -> Types:
        signature = op.signature
        if signature is None:
            return (UNKNOWN,) * len(op.results)
        inputs = [f"i{n}" * (not isinstance(t, AbsentType)) for n, t in enumerate(types)]
        outputs = [f"o{n}" * (not isinstance(r.type, AbsentType)) for n, r in enumerate(op.results)]
        found: dict[str, TypeProto] = {}
        refers = any(isinstance(value, ReferenceAttr) for value in properties.values())
        if not refers and (why := unfit(op)):
            raise IllTyped(why)
        if not refers and defs.has(op.op_type, signature.since, op.domain):
            told = told_types(op, types)
            given = {name: _message(t) for name, t in zip(inputs, told, strict=True) if name}
            data = {
                name: tensor_proto(constant.data)
                for name, constant, value in zip(inputs, constants, values, strict=True)
                if constant is not None and value is not None and not withheld(op, constant)
            }
            explicit = {**MISSED_DEFAULTS.get(type(op), {}), **properties}
            node = to_node_proto(op.create(properties=explicit), inputs, outputs)
            try:
                found = _call(signature, node, given, data, versions)
            except _REFUSALS as error:
                if not any(isinstance(t, UnknownType) for t in types):
                    raise IllTyped(str(error)) from error
        own = own_types(op, types, constants)
        return tuple(
            _result_type(found.get(name), own, signature, index, types)
            for index, name in enumerate(outputs)
        )


def _call(
    signature: Signature,
    node: Any,
    types: dict[str, TypeProto],
    data: dict[str, TensorProto],
    versions: Mapping[str, int],
) -> dict[str, TypeProto]:
    schema = defs.get_schema(signature.op_type, signature.since, signature.domain)
    return shape_inference.infer_node_outputs(
        schema, node, types, data, opset_imports=_imports(tuple(versions.items()))
    )


def _value_key(op: OnnxOp, index: int, constant: TensorAttr | None) -> bytes | None:
    """The bytes of a constant that may decide shapes; None for any other."""
    if constant is None:
        return None
    array = constant.array
    if array.ndim > 1 or array.size > MAX_ELEMENTS:
        return None
    if array.dtype.kind not in "iu" and index not in op.SHAPE_OPERANDS:
        return None
    return data_bytes(array)


def _result_type(
    found: TypeProto | None,
    own: Types | None,
    signature: Signature,
    index: int,
    types: Sequence[Attribute],
) -> Attribute:
    inferred = UNKNOWN if found is None else from_type_proto(found)
    if own is not None:
        return own[index]
    return _by_signature(signature, index, types) if inferred == UNKNOWN else inferred


def _by_signature(signature: Signature, index: int, types: Sequence[Attribute]) -> Attribute:
    """The element type of an output: that of an input of the same variable, or the only one."""
    formal = signature.output_at(index)
    if formal is None:
        return UNKNOWN
    for position, given in enumerate(types):
        source = signature.input_at(position)
        element = element_type(given)
        if element is not None and source is not None and source.variable == formal.variable:
            return tensor_type(element, None)
    if len(formal.types) == 1:
        (text,) = formal.types
        row = BY_NAME.get(text.removeprefix("tensor(").removesuffix(")"))
        if row is not None:
            return tensor_type(element_attribute(row), None)
    return UNKNOWN


@lru_cache(maxsize=1 << 13)
def _message(attribute: Attribute) -> TypeProto:
    """The message of a type, which nobody changes; an empty one where nothing is known."""
    return to_type_proto(attribute) or TypeProto()


@lru_cache(maxsize=64)
def _imports(versions: tuple[tuple[str, int], ...]) -> list[OperatorSetIdProto]:
    return [OperatorSetIdProto(domain=domain, version=version) for domain, version in versions]
