"""What a schema demands of one operation: arity, attributes, bodies, element types of inputs.

Shapes are not looked at, and a type that is not known yet is taken on trust. A combination of
operator, types and attribute kinds that was found good once is not checked again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

from onnx import AttributeProto
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    Float32Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
)
from xdsl.ir import Attribute, TypeAttribute

from foldline.dialects.onnx.attributes import Reference, ReferenceAttr
from foldline.dialects.onnx.op import OnnxOp
from foldline.dialects.onnx.schema import Parameter, Signature, operators, signature
from foldline.dialects.onnx.tensor import SparseTensorAttr, TensorAttr
from foldline.dialects.onnx.text import TextAttr, TextsAttr
from foldline.dialects.onnx.types import (
    AbsentType,
    MapType,
    OptionalType,
    SequenceType,
    SparseTensorType,
    element_of,
    element_type,
)

ABSENT = "absent"
TYPES_SHOWN = 16
"""So many allowed types a message lists."""

_KINDS: dict[type, str] = {
    IntegerAttr: "INT",
    FloatAttr: "FLOAT",
    TextAttr: "STRING",
    TextsAttr: "STRINGS",
    IntegerType: "INTS",
    Float32Type: "FLOATS",
    TensorAttr: "TENSOR",
    SparseTensorAttr: "SPARSE_TENSOR",
}
_DENSE: type = DenseArrayBase
_LISTS = ("TENSORS", "SPARSE_TENSORS", "TYPE_PROTOS")


class Checker:
    """Checks the operations under one set of imports.

    `parameters`: names of the enclosing function's attributes; None outside of functions.
    """

    def __init__(self, versions: Mapping[str, int], parameters: frozenset[str] | None = None):
        self.versions = versions
        self.parameters = parameters
        self._spelled: dict[int, str | None] = {}
        self._good: set[tuple[Any, ...]] = set()

    def spelled(self, type_: Attribute) -> str | None:
        """A type as ONNX spells it, or None if it is not known in full."""
        key = id(type_)  # Hashing a tensor type costs more than all else here.
        if key not in self._spelled:
            self._spelled[key] = spelling(type_)
        return self._spelled[key]

    def faults(self, op: OnnxOp) -> Iterable[str]:
        """What is wrong with an operation; its bodies are not entered."""
        spelled = self.spelled
        marks: list[Any] = [type(op), len(op.operands)]
        marks += [spelled(value.type) for value in op.operands]
        marks += [spelled(result.type) for result in op.results]
        for name, value in op.properties.items():
            marks.append(name)
            marks.append(_mark(value))
        if op.regions:
            marks += op.region_names()
        key = tuple(marks)
        if key in self._good:
            return ()
        found = list(self._check(op))
        if not found:
            self._good.add(key)
        return found

    def _check(self, op: OnnxOp) -> Iterator[str]:
        version = self.versions.get(op.domain)
        domain = op.domain or "ai.onnx"
        if version is None:
            yield f"operator set '{domain}' is not imported"
            return
        found = signature(op.domain, op.op_type, version)
        if found is None:
            yield not_in_version(op.domain, op.op_type, version)
            return
        if found.is_deprecated:
            yield (
                f"{op.op_type} is deprecated in version {version} of operator set '{domain}', "
                f"since {found.since}: replace it, or import an earlier version"
            )
            return
        inputs = [self.spelled(value.type) for value in op.operands]
        outputs = [self.spelled(result.type) for result in op.results]
        yield from _arity("inputs", len(inputs), found.min_inputs, found.max_inputs)
        yield from _arity("outputs", len(outputs), found.min_outputs, found.max_outputs)
        yield from _absences("input", inputs, found.input_at)
        yield from _absences("output", outputs, found.output_at)
        yield from self._attributes(op, found)
        yield from _types(inputs, found)

    def _attributes(self, op: OnnxOp, found: Signature) -> Iterator[str]:
        given = {name: _mark(value) for name, value in op.onnx_attributes.items()}
        graphs = op.region_names() if op.regions else ()
        if len(graphs) != len(op.regions):
            yield f"has {len(op.regions)} bodies, but names of {len(graphs)}"
        marks = {**given, **dict.fromkeys(graphs, "GRAPH")}
        for name, mark in marks.items():
            schema = found.attributes.get(name)
            if schema is None:
                yield f"has no attribute '{name}' in version {found.since}"
                continue
            expected = AttributeProto.AttributeType.Name(cast(Any, schema.kind))
            actual = _kind(mark, expected)
            if actual != expected:
                yield f"attribute '{name}' is {actual}, expected {expected}"
            if isinstance(mark, Reference):
                yield from self._reference(name, mark)
        for name, schema in found.attributes.items():
            if schema.is_required and name not in marks:
                yield f"attribute '{name}' is required, but missing"

    def _reference(self, name: str, reference: Reference) -> Iterator[str]:
        if self.parameters is None:
            yield f"attribute '{name}' refers to '{reference.attribute}' outside of a function"
        elif reference.attribute not in self.parameters:
            yield (
                f"attribute '{name}' refers to '{reference.attribute}', which the function does "
                "not declare"
            )


def attribute_kind(value: Attribute, expected: str = "") -> str:
    """The kind of an attribute as ONNX spells it; empty lists of messages have any plural kind."""
    return _kind(_mark(value), expected)


def _kind(mark: object, expected: str) -> str:
    match mark:
        case str():
            return mark
        case Reference():
            return AttributeProto.AttributeType.Name(cast(Any, mark.kind))
        case type() if issubclass(mark, ArrayAttr):
            return expected if expected in _LISTS else "a list of messages"
        case type() if mark not in _KINDS and issubclass(mark, TypeAttribute):
            return "TYPE_PROTO"
        case type():
            return _KINDS.get(mark, mark.__name__)
        case _:
            return str(mark)


def spelling(type_: Attribute) -> str | None:
    """A type as schemas spell it: `seq(tensor(float))`; None if it is not known in full."""
    element = element_type(type_)
    if element is not None:
        row = element_of(element)
        return None if row is None else f"tensor({row.name})"
    match type_:
        case AbsentType():
            return ABSENT
        case SequenceType():
            return _nested("seq({})", type_.element)
        case OptionalType():
            return _nested("optional({})", type_.element)
        case SparseTensorType():
            return _nested("sparse_{}", type_.dense)
        case MapType():
            key = element_of(type_.key)
            return None if key is None else _nested(f"map({key.name},{{}})", type_.value)
        case _:
            return None


def not_in_version(domain: str, op_type: str, version: int) -> str:
    """What is wrong with an operator that is known, but not in the version imported."""
    first = operators()[domain, op_type][0].since
    return (
        f"{op_type} is not in version {version} of operator set '{domain or 'ai.onnx'}', it came "
        f"with {first}: import that or a later one"
    )


def _shown(types: frozenset[str], actual: str) -> str:
    """Allowed types, those of the kind of the actual one first; not all of a long list."""
    kind = actual[: actual.find("(")]
    ordered = sorted(types, key=lambda name: (not name.startswith(f"{kind}("), name))
    rest = len(ordered) - TYPES_SHOWN
    return ", ".join(ordered[:TYPES_SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def _nested(form: str, inner: Attribute) -> str | None:
    spelled = spelling(inner)
    return None if spelled is None else form.format(spelled)


def _mark(value: Attribute) -> object:
    """What of an attribute matters here: its class, or the reference it is."""
    if isinstance(value, ReferenceAttr):
        return value.data
    if type(value) is _DENSE:
        element: Attribute = cast(Any, value).elt_type
        return type(element)
    return type(value)


def _arity(what: str, actual: int, least: int, most: int) -> Iterator[str]:
    if not least <= actual <= most:
        expected = str(least) if least == most else f"{least} to {most}"
        yield f"has {actual} {what}, expected {expected if most < 1 << 30 else f'{least} or more'}"


def _absences(
    what: str, spelled: list[str | None], formal_at: Callable[[int], Parameter | None]
) -> Iterator[str]:
    for index, actual in enumerate(spelled):
        formal = formal_at(index)
        if actual != ABSENT or formal is None:
            continue
        if not formal.is_optional and not formal.is_variadic:
            yield f"{what} {index} '{formal.name}' is required, but absent"


def _types(spelled: list[str | None], found: Signature) -> Iterator[str]:
    """Inputs against the allowed types, and against each other where they share a variable."""
    bound: dict[str, tuple[int, str]] = {}
    for index, actual in enumerate(spelled):
        formal = found.input_at(index)
        if formal is None or actual is None or actual == ABSENT:
            continue
        if actual not in formal.types:
            allowed = _shown(formal.types, actual)
            yield f"input {index} '{formal.name}' is {actual}, expected one of {allowed}"
        elif formal.is_homogeneous:
            first, expected = bound.setdefault(formal.variable, (index, actual))
            if actual != expected:
                yield (
                    f"input {index} '{formal.name}' is {actual}, but input {first} is {expected}; "
                    f"both are of type {formal.variable}"
                )
