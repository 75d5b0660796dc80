"""Sizes of what is reshaped, moved, joined, cut, repeated or made."""

from __future__ import annotations

from collections.abc import Sequence

from foldline.dialects.onnx.op import NodeOp, OnnxOp
from foldline.dialects.onnx.shape import TransposeOp
from foldline.stages.symbols.expression import (
    Expr,
    constant,
    exact_quotient,
    floordiv,
    maximum,
    simplest,
    vanishes_with,
)
from foldline.stages.symbols.facts import Dims, Item, Known, ShapeRule, as_expr, static_dims
from foldline.stages.symbols.reading import (
    axes_of,
    axis_of,
    by_class,
    given_items,
    given_numbers,
    operand_dims,
    product,
    without_common,
)
from foldline.stages.symbols.shapes_elementwise import broadcast_dims

ONE = constant(1)


def _shape(op: OnnxOp, known: Known) -> Sequence[Dims]:
    dims = operand_dims(op, known, 0)
    return () if dims is None else ((constant(len(dims[shape_slice(op)])),),)


def shape_slice(op: OnnxOp) -> slice:
    """Which axes a Shape gives."""
    return slice(op.int_of("start") or 0, op.int_of("end"))


def _scalar(op: OnnxOp, known: Known) -> Sequence[Dims]:
    return ((),)


def _reshape(op: OnnxOp, known: Known) -> Sequence[Dims]:
    dims, target = operand_dims(op, known, 0), given_items(op, known, "shape", 1)
    if target is None or target.value is None:
        return ()
    return (reshaped(op, known, dims, target.value, bool(op.int_of("allowzero"))),)


def reshaped(
    op: OnnxOp, known: Known, dims: Dims, target: Sequence[Item], allows_zero: bool
) -> Dims:
    """The sizes that a Reshape of `dims` to `target` gives."""
    sizes: list[Expr | None] = []
    left: int | None = None
    for axis, item in enumerate(target):
        if item == 0 and not isinstance(item, Expr) and not allows_zero:
            copied = None if dims is None or axis >= len(dims) else dims[axis]
            sizes.append(copied)
        elif item == -1:
            left = axis
            sizes.append(None)
        else:
            sizes.append(as_expr(item))
    if not allows_zero and dims is not None:
        sizes = _if_no_zero_copies(dims, sizes, left)
    unknown = [axis for axis, size in enumerate(sizes) if size is None]
    if len(unknown) == 1 and dims is not None:
        others = [size for size in sizes if size is not None]
        sizes[unknown[0]] = _rest(dims, others, must_divide=left is not None)
    return tuple(
        known.fresh(op, 0, axis) if size is None else size for axis, size in enumerate(sizes)
    )


def _if_no_zero_copies(
    dims: Sequence[Expr], sizes: list[Expr | None], left: int | None
) -> list[Expr | None]:
    """Sizes without those that may turn out as 0, for which Reshape copies the input's size.

    A copy does no harm where it is 0 as well, or where the elements cannot fit then, as all other
    sizes are positive numbers.
    """
    found: list[Expr | None] = []
    for axis, size in enumerate(sizes):
        others_are_numbers = left is None and all(
            other is not None and other.value for i, other in enumerate(sizes) if i != axis
        )
        if (
            size is None
            or axis >= len(dims)
            or others_are_numbers
            or vanishes_with(dims[axis], size)
        ):
            found.append(size)
        else:
            found.append(None)
    return found


def _rest(dims: Sequence[Expr], others: Sequence[Expr], must_divide: bool) -> Expr | None:
    """What is left of a product of sizes for the one size that is not known."""
    total, divisor = map(product, without_common(dims, others))
    number = product(others).value
    if number == 0 or divisor.value == 0 or not (must_divide or number):
        return None
    return exact_quotient(total, divisor) or (floordiv(total, divisor) if must_divide else None)


def _flatten(op: OnnxOp, known: Known) -> Sequence[Dims]:
    dims, axis = operand_dims(op, known, 0), op.int_of("axis")
    if dims is None or axis is None or not -len(dims) <= axis <= len(dims):
        return ()
    axis = axis + len(dims) if axis < 0 else axis
    return ((product(dims[:axis]), product(dims[axis:])),)


def _squeeze(op: OnnxOp, known: Known) -> Sequence[Dims]:
    dims, given = operand_dims(op, known, 0), given_numbers(op, known, "axes", 1)
    if dims is None or given is None:
        return ()
    if given.value is None:
        shape = static_dims(dims)
        return () if shape is None else (tuple(d for d in dims if d is not ONE),)
    axes = axes_of(given.value, len(dims))
    return () if axes is None else (tuple(d for i, d in enumerate(dims) if i not in axes),)


def _unsqueeze(op: OnnxOp, known: Known) -> Sequence[Dims]:
    dims, given = operand_dims(op, known, 0), given_numbers(op, known, "axes", 1)
    if dims is None or given is None or given.value is None:
        return ()
    axes = axes_of(given.value, len(dims) + len(given.value))
    if axes is None:
        return ()
    rest = iter(dims)
    return (tuple(ONE if i in axes else next(rest) for i in range(len(dims) + len(axes))),)


def _transpose(op: OnnxOp, known: Known) -> Sequence[Dims]:
    dims = operand_dims(op, known, 0)
    if dims is None or not isinstance(op, TransposeOp):
        return ()
    order = op.ints_of("perm") or tuple(reversed(range(len(dims))))
    if sorted(order) != list(range(len(dims))):
        return ()
    return (tuple(dims[axis] for axis in order),)


def _expand(op: OnnxOp, known: Known) -> Sequence[Dims]:
    dims, target = operand_dims(op, known, 0), given_items(op, known, "shape", 1)
    if dims is None or target is None or target.value is None:
        return ()
    rank = max(len(dims), len(target.value))
    first = rank - len(target.value)
    wanted = [
        size if (size := as_expr(item)) is not None else known.fresh(op, 0, first + axis)
        for axis, item in enumerate(target.value)
    ]
    return (broadcast_dims(op, known, [dims, tuple(wanted)]),)


def _tile(op: OnnxOp, known: Known) -> Sequence[Dims]:
    dims, repeats = operand_dims(op, known, 0), given_items(op, known, "repeats", 1)
    if dims is None or repeats is None or repeats.value is None or op.since < 6:
        return ()
    if len(repeats.value) != len(dims):
        return ()
    factors = [as_expr(item) for item in repeats.value]
    return (
        tuple(
            known.fresh(op, 0, axis) if factor is None else size * factor
            for axis, (size, factor) in enumerate(zip(dims, factors, strict=True))
        ),
    )


def _concat(op: OnnxOp, known: Known) -> Sequence[Dims]:
    return (joined(op, [known.dims(operand) for operand in op.operands]),)


def _quantised_concat(op: OnnxOp, known: Known) -> Sequence[Dims]:
    """Inputs from the third on, each followed by its scale and zero point."""
    return (joined(op, [known.dims(operand) for operand in op.operands[2::3]]),)


def joined(op: OnnxOp, shapes: Sequence[Dims]) -> Dims:
    """Shapes joined along the axis that `op` names; elsewhere all are alike."""
    given = [shape for shape in shapes if shape is not None]
    if len(given) < len(shapes) or not given or len({*map(len, given)}) > 1:
        return None
    rank = len(given[0])
    axis = axis_of(op, rank, default=1)
    if axis is None:
        return None
    sizes: list[Expr] = []
    for index, column in enumerate(zip(*given, strict=True)):
        if index == axis:
            total = constant(0)
            for size in column:
                total = total + size
            sizes.append(total)
        else:
            sizes.append(next((s for s in column if s.value is not None), simplest(column)))
    return tuple(sizes)


def _split(op: OnnxOp, known: Known) -> Sequence[Dims]:
    dims = operand_dims(op, known, 0)
    axis = None if dims is None else axis_of(op, len(dims))
    given = given_items(op, known, "split", 1)
    if dims is None or axis is None or given is None:
        return ()
    count, size = len(op.results), dims[axis]
    if given.value is not None:
        parts = [as_expr(item) for item in given.value]
        if len(parts) != count:
            return ()
    else:
        # Below version 18 parts are equal or the node fails.
        part = floordiv(size + (count - 1 if op.since >= 18 else 0), count)
        last = part if op.since < 18 else size - part * (count - 1)
        parts = [*[part] * (count - 1), last]
    return [
        (*dims[:axis], known.fresh(op, index, axis) if part is None else part, *dims[axis + 1 :])
        for index, part in enumerate(parts)
    ]


def _range(op: OnnxOp, known: Known) -> Sequence[Dims]:
    return ((range_length(op, known) or known.fresh(op, 0, 0),),)


def range_length(op: OnnxOp, known: Known) -> Expr | None:
    """How many elements a Range of integers has; steps are numbers."""
    bounds = [known.elements(operand) for operand in op.operands]
    start, limit, step = (
        None if e is None or e.dtype.kind not in "iu" or len(e.items) != 1 else as_expr(e.items[0])
        for e in bounds
    )
    if start is None or limit is None or step is None or not step.value:
        return None
    if step.value < 0:
        start, limit, step = limit, start, -step
    return maximum(0, floordiv(limit - start + (step - 1), step))


def _constant_of_shape(op: OnnxOp, known: Known) -> Sequence[Dims]:
    items = given_items(op, known, "", 0)
    if items is not None and items.value is not None:
        sizes = [as_expr(item) for item in items.value]
    else:
        dims = operand_dims(op, known, 0)
        count = None if dims is None or len(dims) != 1 else dims[0].value
        if count is None:
            return ()
        sizes = [None] * count
    return (
        tuple(
            known.fresh(op, 0, axis) if size is None else size for axis, size in enumerate(sizes)
        ),
    )


def _depth_to_space(op: OnnxOp, known: Known) -> Sequence[Dims]:
    dims, block = operand_dims(op, known, 0), op.int_of("blocksize")
    if dims is None or len(dims) != 4 or not block:
        return ()
    n, c, h, w = dims
    return ((n, floordiv(c, block * block), h * block, w * block),)


def _space_to_depth(op: OnnxOp, known: Known) -> Sequence[Dims]:
    dims, block = operand_dims(op, known, 0), op.int_of("blocksize")
    if dims is None or len(dims) != 4 or not block:
        return ()
    n, c, h, w = dims
    return ((n, c * (block * block), floordiv(h, block), floordiv(w, block)),)


RULES: dict[type[NodeOp], ShapeRule] = {
    **by_class(
        {
            _shape: ("Shape",),
            _scalar: ("Size",),
            _reshape: ("Reshape",),
            _flatten: ("Flatten",),
            _squeeze: ("Squeeze",),
            _unsqueeze: ("Unsqueeze",),
            _transpose: ("Transpose",),
            _expand: ("Expand",),
            _tile: ("Tile",),
            _concat: ("Concat",),
            _split: ("Split",),
            _range: ("Range",),
            _constant_of_shape: ("ConstantOfShape",),
            _depth_to_space: ("DepthToSpace",),
            _space_to_depth: ("SpaceToDepth",),
        }
    ),
    **by_class({_quantised_concat: ("QLinearConcat",)}, "com.microsoft"),
}
