"""How a row of a table of operators is written.

A parameter is `name:type`, `?` after it marks it optional, `*` variadic with types of their own.
An attribute is `name:KIND`, followed by `!` if it is required or `=default`.
"""

from __future__ import annotations

import numpy as np
from onnx import AttributeProto

from foldline.dialects.onnx.schema import AttributeSchema, AttributeValue, Parameter, Signature

COM_MICROSOFT = "com.microsoft"
UNBOUNDED = 2**31 - 1


def row(
    op_type: str,
    inputs: str,
    outputs: str,
    attributes: str = "",
    domain: str = COM_MICROSOFT,
    **types: tuple[str, ...],
) -> Signature:
    """The signature of an operator; `types`: the element types of each type variable."""
    formal_inputs = tuple(_parameter(text, types) for text in inputs.split())
    formal_outputs = tuple(_parameter(text, types) for text in outputs.split())
    return Signature(
        domain,
        op_type,
        1,
        formal_inputs,
        formal_outputs,
        {schema.name: schema for schema in map(_attribute, attributes.split())},
        _least(formal_inputs),
        UNBOUNDED if formal_inputs[-1].is_variadic else len(formal_inputs),
        _least(formal_outputs),
        len(formal_outputs),
        is_deprecated=False,
        has_function=False,
    )


def _parameter(text: str, types: dict[str, tuple[str, ...]]) -> Parameter:
    name, _, variable = text.rstrip("?*").partition(":")
    allowed = frozenset(f"tensor({element})" for element in types.get(variable, (variable,)))
    if variable not in types:
        variable = f"tensor({variable})"
    return Parameter(name, allowed, variable, text[-1] == "?", text[-1] == "*", text[-1] != "*")


def _attribute(text: str) -> AttributeSchema:
    name, _, rest = text.rstrip("!").partition(":")
    kind, _, default = rest.partition("=")
    code = AttributeProto.AttributeType.Value(kind)
    return AttributeSchema(name, code, text[-1] == "!", _value(kind, default) if default else None)


def _value(kind: str, text: str) -> AttributeValue:
    match kind:
        case "INT":
            return int(text)
        case "FLOAT":
            return float(np.float32(text))
        case _:
            return text


def _least(parameters: tuple[Parameter, ...]) -> int:
    """So many are given at least: up to the last that is not optional."""
    return max((i + 1 for i, formal in enumerate(parameters) if not formal.is_optional), default=0)
