"""Sizes of what selects, pads or interpolates."""

from __future__ import annotations

from collections.abc import Sequence

from foldline.dialects.onnx.op import NodeOp, OnnxOp
from foldline.dialects.onnx.resizing import ResizeOp, UpsampleOp
from foldline.stages.symbols.expression import Expr, constant, floordiv, maximum, minimum
from foldline.stages.symbols.facts import Dims, Item, Known, ShapeRule, as_expr
from foldline.stages.symbols.reading import (
    axes_of,
    axis_of,
    by_class,
    given_items,
    given_numbers,
    operand_dims,
)


def _slice(op: OnnxOp, known: Known) -> Sequence[Dims]:
    dims = operand_dims(op, known, 0)
    if dims is None:
        return ()
    ranges = slice_ranges(op, known, len(dims))
    if ranges is None:
        axes = given_numbers(op, known, "axes", 3)
        return (_opened(op, known, dims, None if axes is None else axes.value),)
    sizes = list(dims)
    for axis, (start, end, step) in ranges.items():
        length = slice_length(known, dims[axis], start, end, step)
        sizes[axis] = known.fresh(op, 0, axis) if length is None else length
    return (tuple(sizes),)


def _opened(op: OnnxOp, known: Known, dims: Sequence[Expr], axes: Sequence[int] | None) -> Dims:
    """Sizes where only the axes are known, or not even they."""
    cut = axes_of(range(len(dims)) if axes is None else axes, len(dims))
    if cut is None:
        return None
    return tuple(known.fresh(op, 0, i) if i in cut else size for i, size in enumerate(dims))


def slice_ranges(op: OnnxOp, known: Known, rank: int) -> dict[int, tuple[Item, Item, Item]] | None:
    """Start, end and step by axis; None where axes or the number of entries are not known."""
    starts, ends = given_items(op, known, "starts", 1), given_items(op, known, "ends", 2)
    axes, steps = given_numbers(op, known, "axes", 3), given_items(op, known, "steps", 4)
    count = next((len(g.value) for g in (starts, ends, axes) if g and g.value is not None), None)
    if count is None or axes is None:
        return None
    unknown: tuple[Item, ...] = (None,) * count
    listed = axes_of(range(count) if axes.value is None else axes.value, rank)
    first = unknown if starts is None or starts.value is None else starts.value
    last = unknown if ends is None or ends.value is None else ends.value
    by = unknown if steps is None else (1,) * count if steps.value is None else steps.value
    if listed is None or not len(listed) == len(first) == len(last) == len(by):
        return None
    return {axis: (a, b, c) for axis, a, b, c in zip(listed, first, last, by, strict=True)}


def slice_length(known: Known, size: Expr, start: Item, end: Item, step: Item) -> Expr | None:
    """How many elements a range selects of `size`; None where it is not known."""
    if not isinstance(step, int) or step == 0:
        return None
    if step < 0:
        return _reversed_length(size, start, end, step)
    if (first := _clamped(known, size, start)) is None:
        return None
    if (last := _clamped(known, size, end)) is None:
        return None
    begin = as_expr(start)
    if last is size and begin is not None and known.is_nonneg(begin):
        length = maximum(0, size - begin)
    elif isinstance(end, int) and isinstance(start, int) and end < 0 <= start:
        length = maximum(0, size + (end - start))
    elif last is size and isinstance(start, int):
        length = minimum(size, -start)
    else:
        length = maximum(0, last - first)
    return floordiv(length + (step - 1), step)


def _clamped(known: Known, size: Expr, bound: Item) -> Expr | None:
    """A bound of a range with positive step as a place from 0 to `size`."""
    place = as_expr(bound)
    if place is None:
        return None
    if place.value is not None and place.value < 0:
        return maximum(0, size + place)
    if place.value is not None and place.value >= (1 << 31) - 1:
        return size
    return minimum(place, size) if known.is_nonneg(place) else None


def _reversed_length(size: Expr, start: Item, end: Item, step: int) -> Expr | None:
    """All of an axis from its end, or ranges between numbers."""
    if not isinstance(start, int) or not isinstance(end, int):
        return None
    number = size.value
    if number is not None and start >= -number:
        return constant(len(range(*slice(start, end, step).indices(number))))
    if (start == -1 or start >= (1 << 31) - 1) and end <= -(1 << 31) + 1:
        return floordiv(size + (-step - 1), -step)
    return None


def _gather(op: OnnxOp, known: Known) -> Sequence[Dims]:
    data, indices = operand_dims(op, known, 0), operand_dims(op, known, 1)
    axis = None if data is None else axis_of(op, len(data))
    if data is None or indices is None or axis is None:
        return ()
    return ((*data[:axis], *indices, *data[axis + 1 :]),)


def _gather_elements(op: OnnxOp, known: Known) -> Sequence[Dims]:
    return (operand_dims(op, known, 1),)


def _gather_nd(op: OnnxOp, known: Known) -> Sequence[Dims]:
    data, indices = operand_dims(op, known, 0), operand_dims(op, known, 1)
    width = None if not indices else indices[-1].value
    if data is None or indices is None or width is None:
        return ()
    return ((*indices[:-1], *data[(op.int_of("batch_dims") or 0) + width :]),)


def _one_hot(op: OnnxOp, known: Known) -> Sequence[Dims]:
    dims, depth = operand_dims(op, known, 0), given_items(op, known, "", 1)
    axis = None if dims is None else axis_of(op, len(dims) + 1, default=-1)
    if dims is None or axis is None:
        return ()
    size = None
    if depth is not None and depth.value is not None and len(depth.value) == 1:
        size = as_expr(depth.value[0])
    return ((*dims[:axis], known.fresh(op, 0, axis) if size is None else size, *dims[axis:]),)


def _top_k(op: OnnxOp, known: Known) -> Sequence[Dims]:
    dims, k = operand_dims(op, known, 0), given_items(op, known, "k", 1)
    axis = None if dims is None else axis_of(op, len(dims), default=-1)
    if dims is None or axis is None:
        return ()
    kept = None
    if k is not None and k.value is not None and len(k.value) == 1:
        kept = as_expr(k.value[0])
    size = known.fresh(op, 0, axis) if kept is None else kept
    return ((*dims[:axis], size, *dims[axis + 1 :]),) * 2


def _pad(op: OnnxOp, known: Known) -> Sequence[Dims]:
    dims = operand_dims(op, known, 0)
    pads = given_items(op, known, "paddings" if "paddings" in op.properties else "pads", 1)
    axes = given_numbers(op, known, "axes", 3)
    if dims is None or axes is None:
        return ()
    listed = axes_of(range(len(dims)) if axes.value is None else axes.value, len(dims))
    if listed is None:
        return ()
    if pads is None or pads.value is None or len(pads.value) != 2 * len(listed):
        return (_opened(op, known, dims, listed),)
    half, sizes = len(listed), list(dims)
    for axis, before, after in zip(listed, pads.value[:half], pads.value[half:], strict=True):
        a, b = as_expr(before), as_expr(after)
        sizes[axis] = known.fresh(op, 0, axis) if a is None or b is None else sizes[axis] + a + b
    return (tuple(sizes),)


def _resize(op: OnnxOp, known: Known) -> Sequence[Dims]:
    dims = operand_dims(op, known, 0)
    if dims is None or not isinstance(op, ResizeOp):
        return ()
    plain = op.value_of("coordinate_transformation_mode") != "tf_crop_and_resize"
    stretched = op.value_of("keep_aspect_ratio_policy") in (None, "stretch")
    listed = axes_of(op.ints_of("axes") or range(len(dims)), len(dims))
    sizes = given_items(op, known, "", 3)
    if listed is None:
        return ()
    if sizes is not None and sizes.value and stretched:
        return (_placed(op, known, dims, listed, [as_expr(item) for item in sizes.value]),)
    scales = op.scales_known()
    if op.operand(3) is None and scales is not None and scales.value is not None and plain:
        return (_placed(op, known, dims, listed, _scaled(dims, listed, scales.value)),)
    return (_opened(op, known, dims, listed),)


def _upsample(op: OnnxOp, known: Known) -> Sequence[Dims]:
    dims = operand_dims(op, known, 0)
    scales = op.scales_known() if isinstance(op, UpsampleOp) else None
    if dims is None or scales is None:
        return ()
    axes = tuple(range(len(dims)))
    return (_placed(op, known, dims, axes, _scaled(dims, axes, scales)),)


def _placed(
    op: OnnxOp, known: Known, dims: Sequence[Expr], axes: Sequence[int], new: Sequence[Expr | None]
) -> Dims:
    """Sizes with others on some axes; a symbol where the other is not known."""
    if len(axes) != len(new):
        return None
    sizes = list(dims)
    for axis, size in zip(axes, new, strict=True):
        sizes[axis] = known.fresh(op, 0, axis) if size is None else size
    return tuple(sizes)


def _scaled(
    dims: Sequence[Expr], axes: Sequence[int], scales: Sequence[float]
) -> list[Expr | None]:
    """Sizes times scales; only fractions of small powers of two multiply exactly in floats."""
    if len(axes) != len(scales):
        return []
    found: list[Expr | None] = []
    for axis, scale in zip(axes, scales, strict=True):
        over, under = scale.as_integer_ratio() if 0 < scale < 1 << 12 else (0, 1)
        exact = over and under <= 1 << 6
        found.append(floordiv(dims[axis] * over, under) if exact else None)
    return found


def _grid_sample(op: OnnxOp, known: Known) -> Sequence[Dims]:
    data, grid = operand_dims(op, known, 0), operand_dims(op, known, 1)
    if data is None or grid is None or len(data) != len(grid) or len(data) < 3:
        return ()
    return ((*data[:2], *grid[1:-1]),)


def _non_zero(op: OnnxOp, known: Known) -> Sequence[Dims]:
    dims = operand_dims(op, known, 0)
    return () if dims is None else ((constant(len(dims)), known.fresh(op, 0, 1)),)


RULES: dict[type[NodeOp], ShapeRule] = by_class(
    {
        _slice: ("Slice",),
        _gather: ("Gather",),
        _gather_elements: ("GatherElements",),
        _gather_nd: ("GatherND",),
        _one_hot: ("OneHot",),
        _top_k: ("TopK",),
        _pad: ("Pad",),
        _resize: ("Resize",),
        _upsample: ("Upsample",),
        _grid_sample: ("GridSample",),
        _non_zero: ("NonZero",),
    }
)
