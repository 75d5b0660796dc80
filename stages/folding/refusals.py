"""Why a node is not folded, though its value is known or could be computed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from xdsl.ir import Attribute, Operation

from foldline.dialects.fold import is_kept, no_need_reason
from foldline.dialects.onnx.attributes import ReferenceAttr
from foldline.dialects.onnx.nn import DropoutOp
from foldline.dialects.onnx.op import NodeOp, OnnxOp, opset_versions
from foldline.dialects.onnx.schema import signature
from foldline.dialects.onnx.structure import CallOp, FunctionOp, GraphOp
from foldline.dialects.onnx.tensor import TensorAttr
from foldline.dialects.onnx.traits import DataDependentShape, NonDeterministic, ReadsShapeOnly
from foldline.dialects.onnx.types import AbsentType, element_of, element_type, static_shape
from foldline.stages.context import PassOptions
from foldline.stages.folding.growth import MAX_BYTES, growth
from foldline.stages.folding.skip import SkipPatterns
from foldline.stages.folding.splats import is_addressable, is_splat, is_splat_result
from foldline.stages.pass_base import NodePass
from foldline.stages.rewriting import names_graph_output
from foldline.support.dtypes import ElementType

Array = npt.NDArray[Any]

MAX_SPLAT_READ = 1 << 26
"""Splats cost nothing to hold, and real models ask for petabytes; reading them costs their size."""


@dataclass(frozen=True)
class FoldingPass(NodePass):
    """A pass that folds or marks; what it must leave alone."""

    max_bytes: int | None = MAX_BYTES
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


class Refusals:
    """The reasons under the options of one pass; every method gives one, or None."""

    def __init__(self, options: FoldingPass):
        self._options = options
        self._skip = SkipPatterns(options.skip)

    def by_user(self, op: NodeOp) -> str | None:
        """The user wants the node left alone: it is neither folded nor marked."""
        return "fold.keep is set" if is_kept(op) else self._skip.match(op)

    def by_pass(self, op: NodeOp) -> str | None:
        """A pass wants the node left alone: it is neither folded nor marked."""
        given = no_need_reason(op)
        return None if given is None else f"a pass keeps it: {given}"

    def by_name(self, op: NodeOp) -> str | None:
        """The node names an output of the model: it is marked only."""
        name = None if self._options.graph_outputs else names_graph_output(op)
        if name is None:
            return None
        return f"it names the output '{name}' of the model and fold.graphOutputs is false"

    def by_size(
        self, op: NodeOp, tensors: Sequence[TensorAttr | None], inputs: Sequence[Array | None]
    ) -> str | None:
        """The results are too large, of unknown size, or cannot be constants."""
        if (problem := _splat_problem(op, inputs)) is not None:
            return problem
        size = 0
        for result in op.results:
            if isinstance(result.type, AbsentType):
                continue
            row = _element(result.type)
            if row is None:
                return f"its result of type {result.type} cannot be a constant"
            if (problem := constant_problem(op, row)) is not None:
                return problem
            shape = static_shape(result.type)
            if shape is not None and not is_addressable(shape, row.numpy.itemsize):
                return f"its result of shape {list(shape)} is larger than any memory"
            count = math.prod(shape) if shape is not None else _upper_bound(op, inputs)
            if count is None:
                return f"the size of its result of type {result.type} is not known"
            size += row.numpy.itemsize * (1 if is_splat_result(op, inputs) else count)
        return self.by_bytes(size, tensors)

    def by_bytes(self, size: int, tensors: Sequence[TensorAttr | None]) -> str | None:
        """Results of `size` stored bytes are larger than the inputs and than the limit."""
        return growth(size, (t for t in tensors if t is not None), self._options.max_bytes)


def refusal_by_kind(op: NodeOp) -> str | None:
    """The results are not a matter of the inputs alone, or no kernel is there to compute them."""
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


def constant_problem(op: Operation, row: ElementType) -> str | None:
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


def _splat_problem(op: NodeOp, inputs: Sequence[Array | None]) -> str | None:
    """Why a node cannot be computed on splats: it would read all their elements, one by one."""
    if is_splat_result(op, inputs) or op.has_trait(ReadsShapeOnly):
        return None
    size = max((x.nbytes for x in inputs if x is not None and is_splat(x)), default=0)
    if size <= MAX_SPLAT_READ:
        return None
    return f"it would read all {size} bytes that an input of one repeated element stands for"


def _home(op: Operation) -> type[Operation] | None:
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


def _element(attribute: Attribute) -> ElementType | None:
    element = element_type(attribute)
    return None if element is None else element_of(element)
