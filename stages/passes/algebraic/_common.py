"""What the algebraic rewrites share: where they may run, which constants they take, what grows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, TypeVar

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation, SSAValue, Use

from foldline.dialects.fold.compact import is_compact
from foldline.dialects.onnx.attributes import Names
from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.op import NodeOp, node_name, opset_versions, result_names
from foldline.dialects.onnx.structure import ReturnOp
from foldline.dialects.onnx.tensor import Array, Tensor, splat
from foldline.stages.context import EVERYTHING, PassContext, PassOptions
from foldline.stages.driver.traversal import Traversal
from foldline.stages.pass_base import GraphPass, Pass
from foldline.stages.passes.cleanup.eliminate_identity import EliminateIdentity
from foldline.stages.passes.shapes.reshape_remove import ReshapeRemove
from foldline.stages.replacing import bypass, is_parametric
from foldline.stages.rewrite.replacement import scope_of
from foldline.stages.symbols.facts import Dims

FLOATS = tuple(np.dtype(t) for t in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16))
"""Types of which constants are taken."""

OLDEST_IR = 4
"""Before, every constant is an input as well: such models are left alone."""

DEFAULT_DOMAINS = ("", "ai.onnx", None)
"""Names of the domain of ONNX itself."""

Candidate = TypeVar("Candidate", bound=NodeOp)

MAX_DEPTH = 64
"""So many values are followed from one operator to those that it leads to."""


@dataclass(frozen=True)
class ConstantMakingPass(GraphPass):
    """A pass that makes constants out of constants."""

    max_bytes: int | None = 64 * 1024
    """New constants larger than this and than what they are made of are refused; None: none is."""

    def configured(self, options: PassOptions) -> Self:
        """With `fold.maxBytes`, which `export.grow` lifts."""
        return replace(self, max_bytes=None if options["export.grow"] else options["fold.maxBytes"])


def candidates(a_pass: Pass, context: PassContext, kind: type[Candidate]) -> list[Candidate]:
    """The operations of a kind that the pass has not declined before, in the stage that runs.

    It may run again after fusions that hide why it did: a Mul may be a part of something now.
    """
    declined = context.declined
    ops = (op for op in context.module.walk() if isinstance(op, kind))
    return [op for op in ops if (a_pass.name, op) not in declined]


def refusal_at(op: NodeOp, opset: int) -> str | None:
    """Why nothing is rewritten around an operation, whatever it is; `opset`: the first allowed."""
    version = opset_versions(op).get("")
    imports = [pair for pair in scope_of(op).opsets.data if pair[0] in DEFAULT_DOMAINS]
    if len(imports) > 1:
        return f"versions {[version for _, version in imports]} of one operator set are imported"
    if version is None or version < opset:
        return f"operator set {opset} is needed, the model has {version or 'none'}"
    ir_version = _ir_version(op)
    if ir_version is not None and ir_version < OLDEST_IR:
        return f"IR version {OLDEST_IR} is needed, the model has {ir_version}"
    return "its attributes are given by the callers of the function" if is_parametric(op) else None


def _ir_version(op: Operation) -> int | None:
    here: Operation | None = op
    while here is not None and not isinstance(here, ModuleOp):
        here = here.parent_op()
    found = None if here is None else here.attributes.get("onnx.ir_version")
    return found.value.data if isinstance(found, IntegerAttr) else None


def float_tensor(value: SSAValue | None) -> Tensor | None:
    """The tensor of a constant of floats; None for anything else, weights held compact too."""
    found = None if value is None or is_compact(value) else constant_tensor(value)
    return found.data if found is not None and found.array.dtype in FLOATS else None


def only_use(value: SSAValue, like: Operation) -> Use | None:
    """The only use of a value, by a node that stands beside `like`; None for any other case."""
    first = value.first_use
    if first is None or any(use is not first for use in value.uses):
        return None
    return first if first.operation.parent is like.parent and is_node(first) else None


def is_node(use: Use) -> bool:
    """Whether it is a node that uses the value: not the end of the graph."""
    return not isinstance(use.operation, ReturnOp)


def fits(shape: Sequence[int], dims: Dims) -> bool:
    """Whether a shape broadcasts into sizes without making any of them larger."""
    if dims is None or len(shape) > len(dims):
        return False
    aligned = dims[len(dims) - len(shape) :]
    return all(n == 1 or n == size.value for n, size in zip(shape, aligned, strict=True))


def is_finite(array: Array) -> bool:
    """Whether no element is infinite or no number."""
    stored = array.reshape(-1)[:1] if array.size and not any(array.strides) else array
    return bool(np.isfinite(stored.astype(np.float64)).all())


def rounded(array: Array, dtype: np.dtype[Any]) -> Array:
    """An array of float64 in another type, rounded once; one repeated element stays one."""
    with np.errstate(over="ignore", under="ignore"):
        if array.size > 1 and not any(array.strides):
            return splat(array.flat[0].astype(dtype), array.shape, dtype)
        return np.asarray(array.astype(dtype))


def widened(tensor: Tensor) -> Array:
    """The elements in float64; one repeated element stays one."""
    return rounded(tensor.array, np.dtype(np.float64))


def stored(arrays: Iterable[Array]) -> int:
    """The bytes that constants take: repeated elements weigh one."""
    return sum(Tensor(array, "raw").stored_bytes for array in arrays)


def growth(size: int, tensors: Iterable[Tensor | None], max_bytes: int | None) -> str | None:
    """Why new constants of `size` bytes are refused: `tensors`, which they are made of, are not
    as large, and neither is the limit.
    """
    given = sum({id(t): t.stored_bytes for t in tensors if t is not None}.values())
    if max_bytes is None or size <= max_bytes or size <= given:
        return None
    return (
        f"new constants of {size} bytes are larger than the old ones of {given} bytes and than "
        f"fold.maxBytes = {max_bytes}"
    )


class FreshNames:
    """Names that nothing in a module has: `prefix`, `prefix_1`, `prefix_2`, …

    Those of bodies and functions count as well, and so do the names of nodes. The module is looked
    at once, when the first name is asked for, and each prefix goes on from the number it had.
    """

    def __init__(self, module: ModuleOp):
        self._module = module
        self._numbers: dict[str, int] = {}

    @cached_property
    def taken(self) -> set[str]:
        """The names that are there."""
        return _names_in(self._module)

    def fresh(self, prefix: str) -> str:
        """The next free name; it is taken from now on."""
        number = self._numbers.get(prefix, 0)
        while (name := f"{prefix}_{number}" if number else prefix) in self.taken:
            number += 1
        self._numbers[prefix] = number + 1
        self.taken.add(name)
        return name


def _names_in(module: ModuleOp) -> set[str]:
    found: set[str] = set()
    for op in module.walk():
        found.update(name for name in (node_name(op), *result_names(op)) if name)
        if isinstance(op, ReturnOp):
            it = op.interface.data
            found.update(info.name for info in (*it.inputs, *it.outputs, *it.value_info))
    return found


def new_constant(context: PassContext, anchor: Operation, array: Array, name: str) -> SSAValue:
    """A constant of a name before an operation."""
    return context.rewriter.constant_before(anchor, array, Names(None, (name,))).results[0]


def remove(context: PassContext, op: NodeOp, value: SSAValue) -> None:
    """Take an operation away: its readers, outputs among them, have the value that it read."""
    reason = bypass(context.rewriter, op, [value])
    assert reason is None, reason


def element_count(dims: Dims) -> int | None:
    """How many elements there are, if all sizes are numbers above 0 and an index counts them."""
    sizes = [] if dims is None else [size.value for size in dims]
    known = [size for size in sizes if size is not None and size > 0]
    if dims is None or len(known) < len(sizes):
        return None
    count = math.prod(known)
    return count if count <= np.iinfo(np.int64).max else None


def tidy(context: PassContext, changes_before: int) -> None:
    """Where something changed in a compile, remove views and copies that have met by it.

    So that a second compile finds nothing to do; the stages that do this have already run.
    """
    if context.options is EVERYTHING or context.rewriter.changes == changes_before:
        return
    passes = [p for p in (ReshapeRemove(), EliminateIdentity()) if context.options.enabled(p.name)]
    if passes:
        Traversal(context, [a_pass.visitor(context) for a_pass in passes]).run()
