"""The body of a function, copied for one call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import Attribute, Operation, SSAValue

from foldline.dialects.onnx.attributes import ReferenceAttr
from foldline.dialects.onnx.demands import Checker
from foldline.dialects.onnx.op import NodeOp, OnnxOp
from foldline.dialects.onnx.schema import Signature, signature
from foldline.dialects.onnx.structure import (
    CallOp,
    CustomOp,
    FunctionOp,
    NoneOp,
    ReturnOp,
    terminator,
)
from foldline.dialects.onnx.types import AbsentType
from foldline.stages.inlining import copy_refusal
from foldline.stages.passes.control._versions import translate
from foldline.support.errors import RewriteError

GRAPH_KINDS = (5, 10)
"""Values of `AttributeProto.type` for GRAPH and GRAPHS."""


class BodyCopy:
    """The operations of a function for one call, in no block yet."""

    def __init__(self, call: CallOp, function: FunctionOp, given: Mapping[str, Attribute]):
        """Raises RewriteError where an attribute would be a graph that is not there."""
        self._call = call
        self._own = function.opsets.versions
        self._ops: list[Operation] = []
        self._instead: dict[Operation, tuple[Operation, ...]] = {}
        self._twins: dict[SSAValue, SSAValue] = {}
        body = function.body.block
        for inner in body.walk():
            if any(_is_graph(value) for value in _attributes(inner)):
                raise RewriteError("its function takes a graph as an attribute")
        absent = NoneOp.new()
        passed = list(call.operands) + [absent.value] * (len(body.args) - len(call.operands))
        if len(passed) > len(call.operands):
            self._ops.append(absent)
        values: dict[SSAValue, SSAValue] = dict(zip(body.args, passed, strict=True))
        for inner in body.ops:
            if not isinstance(inner, ReturnOp):
                self._ops.append(inner.clone(values))
        for new in self._walk():
            _resolve(new, given)
        returned = [values.get(value, value) for value in terminator(body).operands]
        self.results: list[SSAValue] = returned[: len(call.results)]

    def translate(self, checker: Checker) -> None:
        """Say each operator in the form of the target. Raises RewriteError where that fails."""
        for new in list(self._walk()):
            if not isinstance(new, OnnxOp):
                continue
            own = _schema(new, self._own)
            target = _schema(new, checker.versions)
            if own is None or target is None:
                raise RewriteError(f"{new.op_type} is not in the operator set imported here")
            if own is not target:
                self._replace(new, translate(new, own, target, checker))
        self.results = [self._twins.get(value, value) for value in self.results]

    def check(self, checker: Checker) -> None:
        """Raises RewriteError where an operator is not valid in the target."""
        for new in self._walk():
            for fault in checker.faults(new) if isinstance(new, OnnxOp) else ():
                raise RewriteError(f"in it, {new.name} {fault}")
        for value, result in zip(self.results, self._call.results, strict=True):
            if isinstance(value.type, AbsentType) and not isinstance(result.type, AbsentType):
                raise RewriteError("it returns an input that is absent")
        reason = copy_refusal(self._call, self.results, checker.versions)
        if reason is not None:
            raise RewriteError(reason)

    @property
    def ops(self) -> list[Operation]:
        """The operations, in order."""
        return [new for op in self._ops for new in self._instead.get(op, (op,))]

    def discard(self) -> None:
        """Let go of all values."""
        for op in reversed(self.ops):
            op.erase()

    def _walk(self) -> Iterator[Operation]:
        for op in self.ops:
            yield from op.walk()

    def _replace(self, op: OnnxOp, made: Sequence[Operation]) -> None:
        if made[-1] is op:
            return
        for old, new in zip(op.results, made[-1].results, strict=True):
            old.replace_all_uses_with(new)
            self._twins[old] = new
        if op.parent is None:
            self._instead[op] = tuple(made)
        else:
            op.parent.insert_ops_before(made, op)
            op.detach()
        op.erase()


def _schema(op: OnnxOp, versions: Mapping[str, int]) -> Signature | None:
    version = versions.get(op.domain)
    return None if version is None else signature(op.domain, op.op_type, version)


def _resolve(op: Operation, given: Mapping[str, Attribute]) -> None:
    """Put what is given in the place of references; what is not given is left out."""
    if isinstance(op, CallOp | CustomOp):
        attributes = op.onnx_attributes
        if any(isinstance(value, ReferenceAttr) for value in attributes.values()):
            op.properties["given"] = DictionaryAttr(_resolved(attributes, given))
    elif isinstance(op, NodeOp):
        if any(isinstance(value, ReferenceAttr) for value in op.properties.values()):
            op.properties = _resolved(op.properties, given)


def _resolved(
    attributes: Mapping[str, Attribute], given: Mapping[str, Attribute]
) -> dict[str, Attribute]:
    resolved: dict[str, Attribute] = {}
    for name, value in attributes.items():
        if not isinstance(value, ReferenceAttr):
            resolved[name] = value
        elif value.data.attribute in given:
            resolved[name] = given[value.data.attribute]
    return resolved


def _attributes(op: Operation) -> list[Attribute]:
    return list(op.onnx_attributes.values()) if isinstance(op, NodeOp) else []


def _is_graph(value: Attribute) -> bool:
    return isinstance(value, ReferenceAttr) and value.data.kind in GRAPH_KINDS
