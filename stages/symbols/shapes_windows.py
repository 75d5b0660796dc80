"""Sizes of what windows move over: convolutions and pools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from foldline.dialects.onnx.op import NodeOp, OnnxOp
from foldline.stages.symbols.expression import Expr, constant, floordiv
from foldline.stages.symbols.facts import Dims, Known, ShapeRule, static_dims
from foldline.stages.symbols.reading import by_class, operand_dims
from foldline.stages.symbols.shapes_elementwise import broadcast_dims

ONE = constant(1)


@dataclass(frozen=True)
class _Window:
    """A window, one entry a spatial axis."""

    extent: tuple[int, ...]
    """Elements from the first to the last that it touches."""
    strides: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    auto_pad: str


def _window(op: OnnxOp, kernel: Sequence[int]) -> _Window | None:
    count = len(kernel)
    ones, zeros = (1,) * count, (0,) * (2 * count)
    dilations = op.ints_of("dilations") or ones
    strides, pads = op.ints_of("strides") or ones, op.ints_of("pads") or zeros
    if not (len(dilations) == len(strides) == count and len(pads) == 2 * count):
        return None
    extent = tuple((k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True))
    auto_pad = op.value_of("auto_pad")
    mode = auto_pad if isinstance(auto_pad, str) else "NOTSET"
    return _Window(extent, strides, pads[:count], pads[count:], mode)


def _slid(sizes: Sequence[Expr], window: _Window) -> list[Expr]:
    """How many places a window has on each axis."""
    found: list[Expr] = []
    for axis, size in enumerate(sizes):
        extent, stride = window.extent[axis], window.strides[axis]
        match window.auto_pad:
            case "SAME_UPPER" | "SAME_LOWER":
                found.append(floordiv(size + (stride - 1), stride))
            case "VALID":
                found.append(floordiv(size - extent, stride) + 1)
            case _:
                border = window.before[axis] + window.after[axis]
                found.append(floordiv(size + (border - extent), stride) + 1)
    return found


def _conv(weight: int) -> Callable[[OnnxOp, Known], Sequence[Dims]]:
    """A convolution whose weight is that input."""

    def rule(op: OnnxOp, known: Known) -> Sequence[Dims]:
        x, w = operand_dims(op, known, 0), operand_dims(op, known, weight)
        if x is None or w is None or len(x) != len(w) or len(x) < 3:
            return ()
        kernel = static_dims(w[2:])
        window = None if kernel is None else _window(op, kernel)
        return () if window is None else ((x[0], w[0], *_slid(x[2:], window)),)

    return rule


def _conv_transpose(op: OnnxOp, known: Known) -> Sequence[Dims]:
    x, w = operand_dims(op, known, 0), operand_dims(op, known, 1)
    if x is None or w is None or len(x) != len(w) or len(x) < 3:
        return ()
    channels = w[1] * (op.int_of("group") or 1)
    kernel, shape = static_dims(w[2:]), op.ints_of("output_shape")
    if shape is not None and len(shape) == len(x) - 2:
        return ((x[0], channels, *map(constant, shape)),)
    window = None if kernel is None else _window(op, kernel)
    if window is None:
        return ()
    extra = op.ints_of("output_padding") or (0,) * len(x[2:])
    sizes: list[Expr] = []
    for axis, size in enumerate(x[2:]):
        stride, extent = window.strides[axis], window.extent[axis]
        match window.auto_pad:
            case "SAME_UPPER" | "SAME_LOWER":
                sizes.append(size * stride)
            case "VALID":
                sizes.append((size - 1) * stride + (extra[axis] + extent))
            case _:
                border = window.before[axis] + window.after[axis]
                sizes.append((size - 1) * stride + (extra[axis] + extent - border))
    return ((x[0], channels, *sizes),)


def _with_sum(
    rule: Callable[[OnnxOp, Known], Sequence[Dims]],
) -> Callable[[OnnxOp, Known], Sequence[Dims]]:
    """A fused convolution, whose input 3 is added to the result."""

    def fused(op: OnnxOp, known: Known) -> Sequence[Dims]:
        found, added = rule(op, known), op.operand(3)
        if added is None or not found:
            return found
        dims = known.dims(added)
        if dims is None or found[0] is None:
            return ()
        total = broadcast_dims(op, known, [found[0], dims])
        return () if total is None else (total,)

    return fused


def _pool(op: OnnxOp, known: Known) -> Sequence[Dims]:
    """A pool and, of MaxPool, the indices. With ceil_mode sizes are left to inference."""
    x, kernel = operand_dims(op, known, 0), op.ints_of("kernel_shape")
    if x is None or kernel is None or len(x) != len(kernel) + 2:
        return ()
    window = _window(op, kernel)
    if window is None:
        return ()
    sizes = _slid(x[2:], window)
    if op.int_of("ceil_mode"):
        sizes = [known.fresh(op, 0, axis + 2) for axis in range(len(sizes))]
    return ((x[0], x[1], *sizes),) * 2


def _global_pool(op: OnnxOp, known: Known) -> Sequence[Dims]:
    x = operand_dims(op, known, 0)
    return () if x is None or len(x) < 2 else ((x[0], x[1], *(ONE,) * (len(x) - 2)),)


RULES: dict[type[NodeOp], ShapeRule] = {
    **by_class(
        {
            _conv(1): ("Conv", "ConvInteger"),
            _conv(3): ("QLinearConv",),
            _conv_transpose: ("ConvTranspose",),
            _pool: ("MaxPool", "AveragePool", "LpPool"),
            _global_pool: ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"),
        }
    ),
    **by_class({_conv(1): ("FusedConv",)}, "com.microsoft"),
    **by_class(
        {
            _conv(1): ("ConvIntegerToFloat", "DynamicQuantizeConv"),
            _global_pool: ("QLinearGlobalAveragePool",),
        },
        "foldline",
    ),
    **by_class(
        {_with_sum(_conv(1)): ("Conv",), _with_sum(_conv_transpose): ("ConvTranspose",)}, "foldline"
    ),
}
