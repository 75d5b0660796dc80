"""Elements that are made from shapes, moved, joined, cut and repeated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.ir import SSAValue

from foldline.dialects.onnx.op import NodeOp, OnnxOp
from foldline.dialects.onnx.types import element_of, element_type
from foldline.stages.symbols.facts import (
    MAX_ITEMS,
    Elements,
    Item,
    Known,
    ValueRule,
    as_expr,
    item_of,
    static_dims,
)
from foldline.stages.symbols.reading import axis_of, by_class, operand_dims, product
from foldline.stages.symbols.shapes_layout import range_length, shape_slice
from foldline.stages.symbols.shapes_select import slice_ranges

Objects = npt.NDArray[np.object_]
Found = Sequence[Elements | None]
INT64 = np.dtype(np.int64)


def objects_of(known: Known, value: SSAValue | None) -> tuple[np.dtype[Any], Objects] | None:
    """The elements of a value as objects, None where one is not known; None if it is not small."""
    if value is None:
        return None
    elements = known.elements(value)
    if elements is not None:
        return elements.dtype, elements.objects()
    shape = static_dims(known.dims(value))
    element = element_type(value.type)
    row = None if element is None else element_of(element)
    if shape is None or row is None or math.prod(shape) > MAX_ITEMS:
        return None
    return row.numpy, np.full(shape, None, np.object_)


def elements_of(dtype: np.dtype[Any], array: Objects) -> Elements:
    """Objects as elements."""
    return Elements(dtype, array.shape, tuple(array.reshape(-1).tolist()))


def _shape(op: OnnxOp, known: Known) -> Found:
    dims = operand_dims(op, known, 0)
    if dims is None:
        return ()
    kept = dims[shape_slice(op)]
    return (Elements(INT64, (len(kept),), tuple(map(item_of, kept))),)


def _size(op: OnnxOp, known: Known) -> Found:
    dims = operand_dims(op, known, 0)
    return () if dims is None else (Elements(INT64, (), (item_of(product(dims)),)),)


def _same_items(op: OnnxOp, known: Known) -> Found:
    """The same elements under the shape of the result."""
    elements, shape = known.elements(op.operands[0]), known.result_shape(op)
    if elements is None or shape is None or math.prod(shape) != len(elements.items):
        return ()
    return (Elements(elements.dtype, shape, elements.items),)


def _transpose(op: OnnxOp, known: Known) -> Found:
    elements = known.elements(op.operands[0])
    if elements is None:
        return ()
    order = op.ints_of("perm")
    if order is not None and sorted(order) != list(range(len(elements.shape))):
        return ()
    return (elements_of(elements.dtype, elements.objects().transpose(order)),)


def _gather(op: OnnxOp, known: Known) -> Found:
    data, indices = objects_of(known, op.operands[0]), known.elements(op.operands[1])
    if data is None or indices is None or not indices.is_known:
        return ()
    dtype, array = data
    axis = axis_of(op, array.ndim)
    places = indices.array()
    if axis is None or places.size * array.size > MAX_ITEMS * MAX_ITEMS:
        return ()
    size = array.shape[axis]
    if places.size and not (-size <= places.min() and places.max() < size):
        return ()
    return _small(dtype, np.asarray(np.take(array, places, axis=axis), np.object_))


def _slice(op: OnnxOp, known: Known) -> Found:
    data = objects_of(known, op.operands[0])
    if data is None:
        return ()
    dtype, array = data
    ranges = slice_ranges(op, known, array.ndim)
    if ranges is None:
        return ()
    index = [slice(None)] * array.ndim
    for axis, (start, end, step) in ranges.items():
        if not (isinstance(start, int) and isinstance(end, int) and isinstance(step, int) and step):
            return ()
        if step < 0 and start < -array.shape[axis]:
            return ()
        index[axis] = slice(start, end, step)
        if step < 0:
            first, last, _ = slice(start, end, step).indices(array.shape[axis])
            index[axis] = slice(first, last if last >= 0 else None, step)
    return (elements_of(dtype, array[tuple(index)]),)


def _concat(op: OnnxOp, known: Known) -> Found:
    parts = [objects_of(known, operand) for operand in op.operands]
    given = [part for part in parts if part is not None]
    if len(given) < len(parts) or not given or len({part[1].ndim for part in given}) > 1:
        return ()
    dtype, first = given[0]
    axis = axis_of(op, first.ndim, default=1)
    if axis is None:
        return ()
    shapes = {part.shape[:axis] + part.shape[axis + 1 :] for _, part in given}
    if len(shapes) > 1:
        return ()
    return _small(dtype, np.concatenate([part for _, part in given], axis))


def _split(op: OnnxOp, known: Known) -> Found:
    data = objects_of(known, op.operands[0])
    if data is None:
        return ()
    dtype, array = data
    axis = axis_of(op, array.ndim)
    shapes = [known.result_shape(op, index) for index in range(len(op.results))]
    if axis is None or any(shape is None for shape in shapes):
        return ()
    ends = np.cumsum([shape[axis] for shape in shapes if shape is not None])
    if ends[-1] != array.shape[axis]:
        return ()
    return [elements_of(dtype, part) for part in np.split(array, ends[:-1], axis)]


def _expand(op: OnnxOp, known: Known) -> Found:
    data, shape = objects_of(known, op.operands[0]), known.result_shape(op)
    if data is None or shape is None or math.prod(shape) > MAX_ITEMS:
        return ()
    dtype, array = data
    if np.broadcast_shapes(array.shape, shape) != shape:
        return ()
    return (elements_of(dtype, np.broadcast_to(array, shape)),)


def _tile(op: OnnxOp, known: Known) -> Found:
    data, shape = objects_of(known, op.operands[0]), known.result_shape(op)
    if data is None or shape is None or math.prod(shape) > MAX_ITEMS:
        return ()
    dtype, array = data
    if len(shape) != array.ndim or 0 in array.shape:
        return ()
    repeats = [new // old for new, old in zip(shape, array.shape, strict=True)]
    return (elements_of(dtype, np.tile(array, repeats)),)


def _constant_of_shape(op: OnnxOp, known: Known) -> Found:
    shape = known.result_shape(op)
    if shape is None or math.prod(shape) > MAX_ITEMS:
        return ()
    value = op.value_of("value")
    fill = np.zeros(1, np.float32) if not isinstance(value, np.ndarray) else value
    if fill.size != 1 or fill.dtype.kind not in "iubf":
        return ()
    items: tuple[Item, ...] = (fill.reshape(-1).tolist()[0],) * math.prod(shape)
    return (Elements(fill.dtype, shape, items),)


def _range(op: OnnxOp, known: Known) -> Found:
    length = range_length(op, known)
    count = None if length is None else length.value
    bounds = [known.elements(operand) for operand in op.operands]
    if count is None or count > MAX_ITEMS or bounds[0] is None or bounds[2] is None:
        return ()
    start, step = as_expr(bounds[0].items[0]), as_expr(bounds[2].items[0])
    if start is None or step is None:
        return ()
    items = tuple(item_of(start + step * place) for place in range(count))
    return (Elements(bounds[0].dtype, (count,), items),)


def _small(dtype: np.dtype[Any], array: Objects) -> Found:
    return (elements_of(dtype, array),) if array.size <= MAX_ITEMS else ()


RULES: dict[type[NodeOp], ValueRule] = by_class(
    {
        _shape: ("Shape",),
        _size: ("Size",),
        _same_items: ("Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze"),
        _transpose: ("Transpose",),
        _gather: ("Gather",),
        _slice: ("Slice",),
        _concat: ("Concat",),
        _split: ("Split",),
        _expand: ("Expand",),
        _tile: ("Tile",),
        _constant_of_shape: ("ConstantOfShape",),
        _range: ("Range",),
    }
)
