"""Constants of one repeated element: made and computed on without their full size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeGuard, cast

import numpy as np
import numpy.typing as npt

from foldline.dialects.onnx.constant import ConstantOfShapeOp
from foldline.dialects.onnx.op import NodeOp, OnnxOp
from foldline.dialects.onnx.tensor import splat
from foldline.dialects.onnx.traits import ElementWise
from foldline.dialects.onnx.types import static_shape

Array = npt.NDArray[Any]

MAX_BYTES = 1 << 62
"""NumPy has no array, not even a view, whose size in bytes does not fit 63 bits."""


def is_array(result: object) -> TypeGuard[Array]:
    """Whether a result of a kernel is a tensor, not a sequence or an absent optional."""
    return isinstance(result, np.ndarray)


def is_splat(array: Array) -> bool:
    """Whether one stored element stands for several."""
    return array.size > 1 and not any(array.strides)


def splat_of_shape(op: NodeOp, inputs: Sequence[Array | None]) -> Array | None:
    """The result of ConstantOfShape as a view of one element; None for any other operator."""
    if not isinstance(op, ConstantOfShapeOp) or inputs[0] is None:
        return None
    element = op.value_of("value")
    value = np.zeros(1, np.float32) if element is None else cast(Array, element)
    shape = tuple(int(size) for size in inputs[0])
    return splat(value.reshape(()), shape, value.dtype)


def splat_elements(op: NodeOp, inputs: Sequence[Array | None]) -> list[Array | None] | None:
    """The single elements to compute an element-wise node on; None where that does not do.

    It does where every input is one element, stored or repeated, and one of them is a splat. The
    `axis` and `broadcast` of old operator versions speak of shapes, which elements do not have.
    """
    given = [x for x in inputs if x is not None]
    if not any(is_splat(x) for x in given) or not op.has_trait(ElementWise):
        return None
    if "axis" in op.properties or "broadcast" in op.properties:
        return None
    if not all(x.size == 1 or is_splat(x) for x in given):
        return None
    return [None if x is None else np.asarray(x[(0,) * x.ndim], x.dtype) for x in inputs]


def fill(op: OnnxOp, results: Sequence[object]) -> tuple[object, ...]:
    """Single elements seen under the shapes of the results of `op`."""
    shapes = [static_shape(result.type) for result in op.results]
    return tuple(
        splat(x.reshape(()), shape, x.dtype) if is_array(x) and shape is not None else x
        for x, shape in zip(results, shapes, strict=False)
    )


def is_splat_result(op: NodeOp, inputs: Sequence[Array | None]) -> bool:
    """Whether the result will hold one element."""
    return isinstance(op, ConstantOfShapeOp) or splat_elements(op, inputs) is not None


def is_addressable(shape: tuple[int, ...], itemsize: int) -> bool:
    """Whether an array of this shape can exist, if only as a view."""
    return math.prod(size for size in shape if size) * itemsize < MAX_BYTES
