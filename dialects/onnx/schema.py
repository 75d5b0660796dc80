"""What `onnx.defs` says of an operator at one version, as plain data, looked up once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias, cast

import numpy.typing as npt
import onnx
from onnx import defs, helper, numpy_helper

from foldline.support.text import decoded

AttributeValue: TypeAlias = "int | float | str | npt.NDArray[Any] | tuple[AttributeValue, ...]"
"""An attribute as kernels take it: INT, FLOAT, STRING, TENSOR, and tuples for the plural kinds."""


@dataclass(frozen=True)
class Parameter:
    """A formal input or output."""

    name: str
    types: frozenset[str]
    """Allowed types as ONNX spells them: `tensor(float)`, `seq(tensor(int64))`."""
    variable: str
    """The type variable (or the type itself); inputs of one variable have one type."""
    is_optional: bool
    is_variadic: bool
    is_homogeneous: bool


@dataclass(frozen=True)
class AttributeSchema:
    """A formal attribute."""

    name: str
    kind: int
    """Value of `AttributeProto.type`."""
    is_required: bool
    default: AttributeValue | None
    """The default as a plain value, or None where there is none."""


@dataclass(frozen=True)
class Signature:
    """An operator's schema at one version."""

    domain: str
    op_type: str
    since: int
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    attributes: dict[str, AttributeSchema]
    min_inputs: int
    max_inputs: int
    min_outputs: int
    max_outputs: int
    is_deprecated: bool
    has_function: bool
    """Whether the schema carries a function body, fixed or built from the node."""

    def input_at(self, index: int) -> Parameter | None:
        """The formal input of an actual position; a variadic one repeats."""
        return _parameter_at(self.inputs, index)

    def output_at(self, index: int) -> Parameter | None:
        """The formal output of an actual position."""
        return _parameter_at(self.outputs, index)


def _parameter_at(parameters: tuple[Parameter, ...], index: int) -> Parameter | None:
    if index < len(parameters):
        return parameters[index]
    return parameters[-1] if parameters and parameters[-1].is_variadic else None


@lru_cache(maxsize=1 << 14)
def signature(domain: str, op_type: str, version: int) -> Signature | None:
    """The signature that `op_type` has under an import of `domain` at `version`, or None."""
    found = None
    for candidate in operators().get((domain, op_type), ()):
        if candidate.since <= version:
            found = candidate
    return found


def _signature(schema: defs.OpSchema) -> Signature:
    functions = cast(Any, schema)  # The stubs of onnx lack both flags.
    return Signature(
        schema.domain,
        schema.name,
        schema.since_version,
        tuple(_parameter(p) for p in schema.inputs),
        tuple(_parameter(p) for p in schema.outputs),
        {name: _attribute(a) for name, a in schema.attributes.items()},
        schema.min_input,
        schema.max_input,
        schema.min_output,
        schema.max_output,
        schema.deprecated,
        functions.has_function or functions.has_context_dependent_function,
    )


def _parameter(formal: defs.OpSchema.FormalParameter) -> Parameter:
    option = defs.OpSchema.FormalParameterOption
    return Parameter(
        formal.name,
        frozenset(formal.types),
        formal.type_str,
        formal.option == option.Optional,
        formal.option == option.Variadic,
        formal.is_homogeneous,
    )


def _attribute(attribute: defs.OpSchema.Attribute) -> AttributeSchema:
    default = attribute.default_value
    return AttributeSchema(
        attribute.name,
        cast(Any, attribute.type).value,
        attribute.required,
        _plain(helper.get_attribute_value(default)) if default.name else None,
    )


def _plain(value: object) -> AttributeValue:
    match value:
        case bytes():
            return decoded(value)
        case int() | float():
            return value
        case list():
            return tuple(_plain(item) for item in cast("list[object]", value))
        case onnx.TensorProto():
            return numpy_helper.to_array(value)
        case _:
            raise TypeError(f"a schema default of type {type(value).__name__} has no plain form")


@lru_cache(maxsize=1)
def operators() -> dict[tuple[str, str], tuple[Signature, ...]]:
    """Every operator of the installed onnx, and those declared, with all versions, oldest first."""
    table: dict[tuple[str, str], list[Signature]] = {}
    for schema in defs.get_all_schemas_with_history():
        table.setdefault((schema.domain, schema.name), []).append(_signature(schema))
    return {key: tuple(sorted(table[key], key=lambda s: s.since)) for key in sorted(table)}


def declare(signatures: Iterable[Signature]) -> tuple[Signature, ...]:
    """Make operators known that `onnx.defs` lacks, or lacks in early versions.

    Raises ValueError for an operator that is known at that version already.
    """
    declared = tuple(signatures)
    for entry in declared:
        key = entry.domain, entry.op_type
        known = operators().get(key, ())
        if any(entry.since == other.since for other in known):
            raise ValueError(f"{entry.op_type} of domain '{entry.domain}' is declared twice")
        operators()[key] = tuple(sorted((*known, entry), key=lambda s: s.since))
    signature.cache_clear()
    return declared


@lru_cache(maxsize=1)
def newest_versions() -> dict[str, int]:
    """The newest operator set of each domain of the installed onnx."""
    newest: dict[str, int] = {}
    for schema in defs.get_all_schemas():
        newest[schema.domain] = max(newest.get(schema.domain, 0), schema.since_version)
    newest[""] = defs.onnx_opset_version()
    return newest
