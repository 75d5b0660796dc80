"""Functions that schemas define operators by: what a node without kernel is made of.

    onnx.Celu {alpha = 2.0}   ->   a function of X and alpha, of Constant, CastLike, Elu, Div, Mul …

A body is that of the operator set the node is of, or the earliest later one; it brings its own
imports. Bodies that depend on the node are built from its attributes and the types of its inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

from onnx import AttributeProto, FunctionProto, NodeProto, TypeProto, defs

from foldline.dialects.onnx.attributes import ReferenceAttr
from foldline.dialects.onnx.node_proto import to_node_proto
from foldline.dialects.onnx.op import NodeOp, OnnxOp, opset_versions
from foldline.dialects.onnx.structure import FunctionOp
from foldline.dialects.onnx.type_proto import to_type_proto
from foldline.dialects.onnx.types import AbsentType

ReadFunction: TypeAlias = Callable[[FunctionProto], FunctionOp]
"""From a message to an operation: the importer's part, which lowering does not know."""


def function_of(op: NodeOp, read: ReadFunction) -> FunctionOp | None:
    """The function that a schema defines `op` by, with the schema's defaults.

    None where there is none, or it cannot be built from what is known of the node: a body may
    depend on types of inputs, or on attributes that only a caller of the function around knows.
    """
    if not isinstance(op, OnnxOp) or op.regions:
        return None
    version = opset_versions(op).get(op.domain)
    if version is None or not defs.has(op.op_type, version, op.domain):
        return None
    schema = defs.get_schema(op.op_type, version, op.domain)
    functions = cast(Any, schema)  # The stubs of onnx lack what it says of functions.
    proto = _fixed_body(functions, version) or _body_of_node(functions, version, op)
    if proto is None:
        return None
    _give_defaults(proto, schema)
    _complete_imports(proto, op)
    _define_outputs(proto, op)
    return read(proto)


def _fixed_body(schema: Any, version: int) -> FunctionProto | None:
    chosen = _nearest(schema.function_opset_versions, version)
    if chosen is None:
        return None
    return _parsed(schema.get_function_with_opset_version(chosen))


def _body_of_node(schema: Any, version: int, op: NodeOp) -> FunctionProto | None:
    chosen = _nearest(schema.context_dependent_function_opset_versions, version)
    refers = any(isinstance(value, ReferenceAttr) for value in op.onnx_attributes.values())
    if chosen is None or refers:
        return None
    return _parsed(
        schema.get_context_dependent_function_with_opset_version(
            chosen,
            _node(op).SerializeToString(),
            [_type(value.type).SerializeToString() for value in op.operands],
        )
    )


def _nearest(versions: Sequence[int], version: int) -> int | None:
    """The last of `versions` up to `version`, else the first one after it."""
    earlier = [v for v in versions if v <= version]
    return max(earlier, default=min(versions, default=None))


def _parsed(data: bytes) -> FunctionProto | None:
    return FunctionProto.FromString(data) if data else None


def _node(op: NodeOp) -> NodeProto:
    inputs = [f"i{n}" * _is_given(value.type) for n, value in enumerate(op.operands)]
    outputs = [f"o{n}" * _is_given(value.type) for n, value in enumerate(op.results)]
    return to_node_proto(op, inputs, outputs)


def _is_given(type_of: object) -> bool:
    return not isinstance(type_of, AbsentType)


def _type(type_of: Any) -> TypeProto:
    return to_type_proto(type_of) or TypeProto()


def _give_defaults(proto: FunctionProto, schema: defs.OpSchema) -> None:
    """Make the attributes that have a default in the schema have it in the function."""
    given = {name: attribute.default_value for name, attribute in schema.attributes.items()}
    without: list[str] = []
    for name in proto.attribute:
        default = given[name] if name in given else AttributeProto()
        if default.name:
            proto.attribute_proto.append(default)
        else:
            without.append(name)
    del proto.attribute[:]
    proto.attribute.extend(without)


def _complete_imports(proto: FunctionProto, op: NodeOp) -> None:
    """A body that says nothing of a domain it uses means the operator set that the node is in."""
    imported = {entry.domain for entry in proto.opset_import}
    for domain, version in opset_versions(op).items():
        if domain not in imported:
            proto.opset_import.add(domain=domain, version=version)


def _define_outputs(proto: FunctionProto, op: NodeOp) -> None:
    """Let outputs that the node does not ask for, which a body may leave out, be the first one."""
    asked = [_is_given(value.type) for value in op.results]
    first = proto.output[asked.index(True)] if any(asked) else None
    for index in range(len(proto.output)):
        if first is not None and not (index < len(asked) and asked[index]):
            proto.output[index] = first
