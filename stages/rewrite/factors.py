"""Products with constants in their spellings: `x * 0.5`, `0.5 * x` and `x / 2` are one thing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.tensor import Array
from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.tracing import PatternOperators, Traced, traced

NEAR = 1e-6
"""How far, relatively, a constant may be from the number that it stands for."""

Core: TypeAlias = Callable[[PatternOperators, Traced], Traced]
"""Makes the part of a pattern that hangs on a value in a way of its own."""
_Order: TypeAlias = Callable[[Traced, Traced], Traced]


def is_about(array: Array, value: float, rel: float = NEAR) -> bool:
    """Whether an array has one element, `value` up to a relative error or as its type rounds it."""
    if not is_single(array):
        return False
    found = float(array.reshape(()))
    rounded = float(np.asarray(value).astype(array.dtype))
    return found == rounded or abs(found - value) <= rel * abs(value)


def is_single(array: Array) -> bool:
    """Whether an array is one number."""
    return array.size == 1 and array.dtype.kind not in "OSUb"


def number_of(op: NodeOp, index: int) -> float | None:
    """The operand of a node as a number, if it is a constant of one element."""
    value = op.operand(index)
    tensor = None if value is None else constant_tensor(value)
    if tensor is None or not is_single(tensor.array):
        return None
    return float(tensor.array.reshape(()))


def factor_of(op: NodeOp) -> float | None:
    """The number that a Mul multiplies by, or whose inverse a Div divides by."""
    if op.op_type == "Div":
        divisor = number_of(op, 1)
        return 1 / divisor if divisor else None
    found = number_of(op, 1)
    return number_of(op, 0) if found is None else found


@dataclass(frozen=True)
class Scales:
    """The predicate that a Mul or Div multiplies by a number."""

    factor: float
    rel: float

    def __call__(self, op: NodeOp) -> bool:
        wanted = 1 / self.factor if op.op_type == "Div" else self.factor
        places = (1,) if op.op_type == "Div" else (0, 1)
        tensors = [constant_tensor(op.operands[place]) for place in places]
        return any(t is not None and is_about(t.array, wanted, self.rel) for t in tensors)

    def complaint(self, op: NodeOp) -> str | None:
        """The factor that is another one."""
        found = factor_of(op)
        return None if found is None else f"the factor is {found:g} instead of {self.factor:g}"


def times(value: Traced, factor: float, rel: float = NEAR) -> Traced:
    """A pattern of `value * factor` or `value / (1 / factor)`."""
    op = value.op
    return op.any_of("Mul", "Div")(value, op.constant(), where=Scales(factor, rel))


def scaled(cores: Sequence[Core], factor: float, rel: float = NEAR) -> list[Pattern]:
    """Patterns of `core(x) * factor`; `x` is captured."""
    return [_spelled(core, lambda x, core: times(core, factor, rel)) for core in cores]


def products(cores: Sequence[Core], factor: float, rel: float = NEAR) -> list[Pattern]:
    """Patterns of `x * core(x) * factor`, in any order of the three; `x` is captured."""
    orders: list[_Order] = [
        lambda x, core: times(x * core, factor, rel),
        lambda x, core: x * times(core, factor, rel),
        lambda x, core: times(x, factor, rel) * core,
    ]
    return [_spelled(core, order) for core, order in product(cores, orders)]


def _spelled(core: Core, order: _Order) -> Pattern:
    def spelled(op: PatternOperators, x: Traced) -> Any:
        return order(x, core(op, x))

    return traced(spelled)
