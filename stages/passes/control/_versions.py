"""An operator of one operator set, said in the form of another one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from foldline.dialects.onnx import OPERATORS
from foldline.dialects.onnx.builder import Builder, Ops
from foldline.dialects.onnx.constant import ConstantOp
from foldline.dialects.onnx.demands import Checker, spelling
from foldline.dialects.onnx.form import SPELLINGS, constant
from foldline.dialects.onnx.op import OnnxOp, plain_value
from foldline.dialects.onnx.plain import attribute_of, int_attribute
from foldline.dialects.onnx.schema import Parameter, Signature
from foldline.dialects.onnx.shape import SplitOp
from foldline.dialects.onnx.types import AbsentType
from foldline.kernels.registry import find_kernel
from foldline.support.errors import RewriteError

SAME_MEANING: dict[type[OnnxOp], int] = {
    OPERATORS["", name]: version
    for version, names in {
        1: (
            *("Constant", "Slice", "Squeeze", "Unsqueeze"),
            *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean"),
            *("ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"),
        ),
        2: ("Pad", "Split"),
        5: ("Reshape",),
        6: ("Cast", "Clip", "Tile"),
        10: ("TopK",),
    }.items()
    for name in names
}
"""Operators that mean the same from a version on, though kernels read their forms differently."""

NEGATIVE_AXES = 11
"""Before this version axes are not counted from the end."""


def translate(op: OnnxOp, own: Signature, target: Signature, checker: Checker) -> Ops:
    """What stands for `op`, of the schema `own`, where it would be of the schema `target`.

    Attributes whose defaults changed are written out; parameters become attributes or inputs as
    the version has them. The list ends with `op` itself, or with what is to replace it.

    Raises RewriteError where there is no such form, or it is not known to mean the same.
    """
    label = f"{op.op_type} of version {own.since} under version {target.since}"
    if not _means_the_same(type(op), own, target):
        raise RewriteError(f"{label} may mean something else")
    if not _takes_unknown_types(op, own, target):
        raise RewriteError(f"{label} may not take a type that is not known yet")
    _write_defaults(op, own, target)
    made: Ops = [op]
    if list(checker.faults(op)):
        made = _rebuilt(op, own, target, Builder(checker.versions))
        made[-1].attributes.update(op.attributes)
    nodes = [new for new in made if isinstance(new, OnnxOp)]
    faults = [fault for new in nodes for fault in checker.faults(new)]
    if target.since < NEGATIVE_AXES and any(map(_counts_from_the_end, nodes)):
        faults.append("axes cannot be counted from the end")
    if faults:
        if made[-1] is not op:
            for new in reversed(made):
                new.erase()
        raise RewriteError(f"{label}: {faults[0]}")
    return made


def _means_the_same(operator: type[OnnxOp], own: Signature, target: Signature) -> bool:
    """Whether two versions compute the same from the same parameters.

    They do where one kernel serves both, as it is given nothing of the version.
    """
    since = SAME_MEANING.get(operator)
    if since is not None:
        return min(own.since, target.since) >= since
    kernels = [find_kernel(s.domain, s.op_type, s.since) for s in (own, target)]
    return kernels[0] is not None and kernels[0] is kernels[1]


def _takes_unknown_types(op: OnnxOp, own: Signature, target: Signature) -> bool:
    """Whether every type that the schemas leave open is among the target's."""
    inputs = [(v, own.input_at(i), target.input_at(i)) for i, v in enumerate(op.operands)]
    outputs = [(v, own.output_at(i), target.output_at(i)) for i, v in enumerate(op.results)]
    return all(
        before is None or (after is not None and before.types <= after.types)
        for value, before, after in (*inputs, *outputs)
        if spelling(value.type) is None
    )


def _write_defaults(op: OnnxOp, own: Signature, target: Signature) -> None:
    """Write out what the own version has by default, and the other one has otherwise."""
    inputs = {formal.name for formal in target.inputs}
    for name, schema in own.attributes.items():
        if name in op.properties or schema.default is None:
            continue
        other = target.attributes.get(name)
        is_other = other is not None and not np.array_equal(
            _array(other.default), _array(schema.default)
        )
        if is_other or _newest(op, name) in inputs:
            op.properties[name] = attribute_of(schema.kind, schema.default)
    if isinstance(op, SplitOp) and len(op.operands) == 1 and "split" not in op.properties:
        if "num_outputs" in target.attributes and "num_outputs" not in op.properties:
            op.properties["num_outputs"] = int_attribute(len(op.results))


def _newest(op: OnnxOp, name: str) -> str:
    """The name that the newest version has for a parameter."""
    for newest, older in SPELLINGS.get((op.domain, op.op_type), {}).items():
        if name in older:
            return newest
    return name


def _counts_from_the_end(op: OnnxOp) -> bool:
    axes = [op.properties.get(name) for name in ("axis", "axes")]
    values = [plain_value(given) for given in axes if given is not None]
    return any(bool(np.any(np.asarray(value) < 0)) for value in values)


def _array(value: Any) -> Any:
    return np.asarray(value, np.object_)


def _rebuilt(op: OnnxOp, own: Signature, target: Signature, builder: Builder) -> Ops:
    if isinstance(op, ConstantOp):
        tensor = op.tensor()
        if tensor is None:
            raise RewriteError("a Constant without value")
        return [constant(tensor, builder.opsets.get(""))]
    if op.regions:
        raise RewriteError(f"{op.op_type} has bodies and no form of version {target.since}")
    operands: list[SSAValue | None] = []
    parameters: dict[str, Any] = {}
    positions = {formal.name: index for index, formal in enumerate(target.inputs)}
    named = {formal.name for formal in own.inputs}
    for index, value in enumerate(op.operands):
        formal = own.input_at(index)
        given = None if isinstance(value.type, AbsentType) else value
        position = _position(index, formal, positions, named, target)
        if position is not None:
            operands += [None] * (position + 1 - len(operands))
            operands[position] = given
        elif given is not None and formal is not None:
            parameters[_newest(op, formal.name)] = given
    for name in own.attributes:
        value = op.value_of(name) if name in op.properties else None
        if value is not None:
            parameters[_newest(op, name)] = value
    return builder.operator(type(op), operands, parameters, tuple(op.result_types))


def _position(
    index: int,
    formal: Parameter | None,
    positions: Mapping[str, int],
    named: Collection[str],
    target: Signature,
) -> int | None:
    """Where an input stands in the target: by its name, or where that has a new name."""
    if formal is None or formal.is_variadic:
        return index
    if formal.name in positions or index >= len(target.inputs):
        return positions.get(formal.name)
    return None if target.inputs[index].name in named else index
