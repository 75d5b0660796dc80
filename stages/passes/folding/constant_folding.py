"""constant-folding: compute what depends on constants only.

    %s = onnx.Mul(%c0, %c1)   ->   %s = onnx.Constant() {value = #onnx.tensor<…>}

The kernels that run the model compute the value, bit for bit. Left alone, each with a remark: what
may differ from run to run; what the user or a pass keeps; nodes with bodies, calls and custom
operators; nodes that name an output of the model; results that are too large or have no known
size; arithmetic that fails when run, which then fails at run time as before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Operation

from foldline.dialects.onnx.attributes import ReferenceAttr, TextAttr
from foldline.dialects.onnx.constant import ConstantOp, constant_tensor
from foldline.dialects.onnx.nn import DropoutOp
from foldline.dialects.onnx.op import NodeOp, OnnxOp, describe, opset_versions
from foldline.dialects.onnx.schema import signature
from foldline.dialects.onnx.structure import CallOp, FunctionOp, GraphOp
from foldline.dialects.onnx.tensor import TensorAttr
from foldline.dialects.onnx.traits import DataDependentShape, NonDeterministic, ReadsShapeOnly
from foldline.dialects.onnx.types import (
    AbsentType,
    dims_of,
    element_of,
    element_type,
    static_shape,
)
from foldline.stages.context import PassContext, PassOptions
from foldline.stages.driver.visitor import NodeVisitor
from foldline.stages.folding.engine import DATA_ERRORS, Declined
from foldline.stages.folding.skip import SkipPatterns
from foldline.stages.folding.splats import is_addressable, is_array, is_splat, is_splat_result
from foldline.stages.pass_base import NodePass
from foldline.stages.rewriting import names_graph_output
from foldline.support.dtypes import ElementType
from foldline.support.errors import KernelFailed
from foldline.support.passes import PASSES

Array = npt.NDArray[Any]

MAX_SPLAT_READ = 1 << 26
"""Splats cost nothing to hold, and real models ask for petabytes; reading them costs their size."""


@dataclass(frozen=True)
class ConstantFolding(NodePass):
    """Compute operators whose inputs are all constant."""

    name = "constant-folding"
    INFO: ClassVar = PASSES["constant-folding"]

    max_bytes: int | None = 64 * 1024
    """A result larger than this and than its inputs together is not computed; None: any is."""
    graph_outputs: bool = False
    """Also fold nodes that name an output of the model."""
    skip: tuple[str, ...] = ()
    """Node names, globs, `op:TYPE`, `value:NAME` that are left alone."""

    def configured(self, options: PassOptions) -> Self:
        """With `fold.maxBytes` (none if `export.grow`), `fold.graphOutputs`, `fold.skip`."""
        return replace(
            self,
            max_bytes=None if options["export.grow"] else options["fold.maxBytes"],
            graph_outputs=options["fold.graphOutputs"],
            skip=tuple(options["fold.skip"]),
        )

    def visitor(self, context: PassContext) -> NodeVisitor:
        """The pass for one traversal."""
        return _Visitor(self, context)


class _Visitor(NodeVisitor):
    def __init__(self, options: ConstantFolding, context: PassContext):
        super().__init__(options.name, context)
        self._options = options
        self._skip = SkipPatterns(options.skip)

    def visit(self, op: NodeOp) -> None:
        """Fold a node, or remark why not; say nothing of nodes that need more than constants."""
        if isinstance(op, ConstantOp):
            return
        tensors: list[TensorAttr | None] = []
        for operand in op.operands:
            tensor = constant_tensor(operand)
            if tensor is None and not isinstance(operand.type, AbsentType):
                return
            tensors.append(tensor)
        inputs = [None if tensor is None else tensor.array for tensor in tensors]
        reason = (
            _refusal_by_kind(op)
            or self._refusal_by_wish(op)
            or self._refusal_by_size(op, tensors, inputs)
        )
        if reason is None:
            self._fold(op, inputs)
        else:
            self.declined(op, reason)

    def visit_after_bodies(self, op: NodeOp) -> None:
        """Nothing: a node with bodies was declined before they were walked."""

    def _fold(self, op: NodeOp, inputs: Sequence[Array | None]) -> None:
        try:
            outcome = self.context.engines.fold(op, inputs)
        except KernelFailed as error:
            if _always_runs(op) or not isinstance(error.__cause__, DATA_ERRORS):
                raise
            self.declined(op, f"it fails if it runs: {error.__cause__}")
            return
        if isinstance(outcome, Declined):
            self.declined(op, outcome.reason)
            return
        arrays = [
            _checked(op, index, outcome[index] if index < len(outcome) else None)
            for index in range(len(op.results))
        ]
        used = [a for a, r in zip(arrays, op.results, strict=True) if r.first_use is not None]
        shapes = ", ".join(f"{a.dtype}{list(a.shape)}" for a in used)
        self.applied(op, f"computed {shapes or 'nothing that is used'}")
        self.rewriter.replace_by_constants(op, arrays)

    def _refusal_by_wish(self, op: NodeOp) -> str | None:
        if "fold.keep" in op.attributes:
            return "fold.keep is set"
        if (given := op.attributes.get("fold.no_need")) is not None:
            return f"a pass keeps it: {_text(given)}"
        if (pattern := self._skip.match(op)) is not None:
            return pattern
        if not self._options.graph_outputs and (name := names_graph_output(op)) is not None:
            return f"it names the output '{name}' of the model and fold.graphOutputs is false"
        return None

    def _refusal_by_size(
        self, op: NodeOp, tensors: Sequence[TensorAttr | None], inputs: Sequence[Array | None]
    ) -> str | None:
        if (problem := _splat_problem(op, inputs)) is not None:
            return problem
        given = {id(t.data): t.data.stored_bytes for t in tensors if t is not None}
        size = 0
        for result in op.results:
            if isinstance(result.type, AbsentType):
                continue
            row = _element(result.type)
            if row is None:
                return f"its result of type {result.type} cannot be a constant"
            if (problem := _constant_problem(op, row)) is not None:
                return problem
            shape = static_shape(result.type)
            if shape is not None and not is_addressable(shape, row.numpy.itemsize):
                return f"its result of shape {list(shape)} is larger than any memory"
            count = math.prod(shape) if shape is not None else _upper_bound(op, inputs)
            if count is None:
                return f"the size of its result of type {result.type} is not known"
            size += row.numpy.itemsize * (1 if is_splat_result(op, inputs) else count)
        limit = self._options.max_bytes
        if limit is not None and size > limit and size > sum(given.values()):
            return (
                f"its result of {size} bytes is larger than its inputs of {sum(given.values())} "
                f"bytes and than fold.maxBytes = {limit}"
            )
        return None


def _refusal_by_kind(op: NodeOp) -> str | None:
    if op.has_trait(NonDeterministic):
        return "it draws random numbers"
    if isinstance(op, DropoutOp) and op.may_train():
        return "it may drop elements at random, as training_mode is not known to be false"
    if isinstance(op, CallOp):
        return "it calls a function, which is not inlined here"
    if op.regions:
        return "it has bodies, which are not evaluated here"
    if not isinstance(op, OnnxOp):
        return f"{op.domain}::{op.op_type} is a custom operator"
    if any(isinstance(value, ReferenceAttr) for value in op.properties.values()):
        return "its attributes are given by the callers of the function"
    return None


def _splat_problem(op: NodeOp, inputs: Sequence[Array | None]) -> str | None:
    """Why a node cannot be computed on splats: it would read all their elements, one by one."""
    if is_splat_result(op, inputs) or op.has_trait(ReadsShapeOnly):
        return None
    size = max((x.nbytes for x in inputs if x is not None and is_splat(x)), default=0)
    if size <= MAX_SPLAT_READ:
        return None
    return f"it would read all {size} bytes that an input of one repeated element stands for"


def _constant_problem(op: NodeOp, row: ElementType) -> str | None:
    """Why a Constant node cannot hold an element type here.

    Below opset 9 the specification allows floats only, and every reader allows the types of 9.
    """
    version = opset_versions(op).get("")
    if version is None:
        return None if _home(op) is not FunctionOp else "functions hold no initializers"
    found = signature("", "Constant", max(version, 9))
    if found is None or f"tensor({row.name})" not in found.outputs[0].types:
        return f"Constant of opset {version} cannot hold {row.name}"
    return None


def _home(op: NodeOp) -> type[Operation] | None:
    """What holds an operation in the end: the graph or a function."""
    holder = op.parent_op()
    while holder is not None and not isinstance(holder, GraphOp | FunctionOp):
        holder = holder.parent_op()
    return None if holder is None else type(holder)


def _upper_bound(op: NodeOp, inputs: Sequence[Array | None]) -> int | None:
    """So many elements at most has a result whose shape hangs on elements of the inputs.

    Operators with that trait select among their elements or write an index of `rank` numbers for
    each; of strings, one piece for each character.
    """
    if not op.has_trait(DataDependentShape) or not inputs or inputs[0] is None:
        return None
    largest = max((x for x in inputs if x is not None), key=lambda x: x.size)
    count = max(largest.ndim, 1) * largest.size
    if largest.dtype == np.object_:
        count *= 1 + max((len(text) for text in largest.flat), default=0)
    return count


def _checked(op: NodeOp, index: int, array: object) -> Array:
    """The result as it can be kept. Raises KernelFailed where it is not what inference says."""
    result = op.results[index]
    if not is_array(array):
        if result.first_use is None:
            return np.empty(0, np.float32)
        raise KernelFailed(f"folding {describe(op)} gave {array!r} for result {index}, no array")
    row, dims = _element(result.type), dims_of(result.type)
    fits = dims is None or (
        len(dims) == array.ndim
        and all(
            not isinstance(d, int) or d < 0 or d == n
            for d, n in zip(dims, array.shape, strict=True)
        )
    )
    if (row is not None and row.numpy != array.dtype) or not fits:
        raise KernelFailed(
            f"folding {describe(op)} gave {array.dtype}{list(array.shape)} for result {index}, "
            f"inference says {result.type}"
        )
    return _settled(array)


def _settled(array: Array) -> Array:
    """The array in C order, and in memory of its own where a view would keep more alive."""
    if is_splat(array):
        return array
    base = array.base
    is_part = base is not None and not (is_array(base) and base.nbytes <= array.nbytes)
    return array.copy("C") if is_part or not array.flags.c_contiguous else array


def _element(attribute: Attribute) -> ElementType | None:
    element = element_type(attribute)
    return None if element is None else element_of(element)


def _always_runs(op: NodeOp) -> bool:
    return op.parent is not None and isinstance(op.parent.parent_op(), GraphOp)


def _text(attribute: Attribute) -> str:
    return attribute.data if isinstance(attribute, TextAttr | StringAttr) else str(attribute)
