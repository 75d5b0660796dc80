"""Sizes of products, reductions and recurrent operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from foldline.dialects import OPERATORS
from foldline.dialects.onnx.op import NodeOp, OnnxOp
from foldline.dialects.onnx.reduction import OPERATORS as REDUCTIONS
from foldline.dialects.onnx.reduction import ReduceOp
from foldline.stages.symbols.expression import Expr, broadcast, constant
from foldline.stages.symbols.facts import Dims, Known, ShapeRule
from foldline.stages.symbols.reading import (
    axes_of,
    axis_of,
    by_class,
    given_numbers,
    operand_dims,
)
from foldline.stages.symbols.shapes_elementwise import broadcast_dims

ONE = constant(1)


def _matmul(second: int) -> Callable[[OnnxOp, Known], Sequence[Dims]]:
    """The product of input 0 and input `second`, leading axes broadcast."""

    def rule(op: OnnxOp, known: Known) -> Sequence[Dims]:
        a, b = operand_dims(op, known, 0), operand_dims(op, known, second)
        if not a or not b:
            return ()
        left, right = a[-2:-1], b[-1:] if len(b) > 1 else ()
        leading = broadcast_dims(op, known, [a[:-2], b[:-2]])
        return () if leading is None else ((*leading, *left, *right),)

    return rule


def _gemm(op: OnnxOp, known: Known) -> Sequence[Dims]:
    a, b = operand_dims(op, known, 0), operand_dims(op, known, 1)
    if a is None or b is None or len(a) != 2 or len(b) != 2:
        return ()
    rows = a[1] if op.int_of("transA") else a[0]
    columns = b[0] if op.int_of("transB") else b[1]
    return ((rows, columns),)


def _linear(op: OnnxOp, known: Known) -> Sequence[Dims]:
    a, b = operand_dims(op, known, 0), operand_dims(op, known, 1)
    if not a or b is None or len(b) != 2:
        return ()
    return ((*a[:-1], b[0 if op.int_of("transB") else 1]),)


def _einsum(op: OnnxOp, known: Known) -> Sequence[Dims]:
    equation = op.value_of("equation")
    if not isinstance(equation, str) or "." in equation or "->" not in equation:
        return ()
    inputs, output = equation.replace(" ", "").split("->")
    sizes: dict[str, Expr] = {}
    for index, labels in enumerate(inputs.split(",")):
        dims = operand_dims(op, known, index)
        if dims is None or len(dims) != len(labels):
            return ()
        for label, size in zip(labels, dims, strict=True):
            found = broadcast(sizes.get(label, ONE), size)
            if found is None:
                return ()
            sizes[label] = found
    return (tuple(sizes[label] for label in output),)


def _reduce(op: OnnxOp, known: Known) -> Sequence[Dims]:
    dims, given = operand_dims(op, known, 0), given_numbers(op, known, "axes", 1)
    if dims is None:
        return ()
    keeps = op.int_of("keepdims") != 0
    if given is None:
        return (tuple(known.fresh(op, 0, i) for i in range(len(dims))),) if keeps else ()
    if not given.value and isinstance(op, ReduceOp) and op.noop_with_empty_axes:
        return (dims,)
    axes = axes_of(given.value or range(len(dims)), len(dims))
    return () if axes is None else (_reduced(dims, axes, keeps),)


def _arg(op: OnnxOp, known: Known) -> Sequence[Dims]:
    dims = operand_dims(op, known, 0)
    axis = None if dims is None else axis_of(op, len(dims))
    if dims is None or axis is None:
        return ()
    return (_reduced(dims, (axis,), op.int_of("keepdims") != 0),)


def _reduced(dims: Sequence[Expr], axes: Sequence[int], keeps: bool) -> tuple[Expr, ...]:
    if keeps:
        return tuple(ONE if axis in axes else size for axis, size in enumerate(dims))
    return tuple(size for axis, size in enumerate(dims) if axis not in axes)


def _recurrent(op: OnnxOp, known: Known) -> Sequence[Dims]:
    """All states, and the last ones (of LSTM: and the last cells)."""
    dims, hidden = operand_dims(op, known, 0), op.int_of("hidden_size")
    if dims is None or len(dims) != 3 or hidden is None:
        return ()
    directions = constant(2 if op.value_of("direction") == "bidirectional" else 1)
    size = constant(hidden)
    if op.int_of("layout"):
        batch, length, _ = dims
        return ((batch, length, directions, size), *((batch, directions, size),) * 2)
    length, batch, _ = dims
    return ((length, directions, batch, size), *((directions, batch, size),) * 2)


RULES: dict[type[NodeOp], ShapeRule] = {
    **by_class(
        {
            _matmul(1): ("MatMul", "MatMulInteger"),
            _matmul(3): ("QLinearMatMul",),
            _gemm: ("Gemm",),
            _einsum: ("Einsum",),
            _recurrent: ("LSTM", "GRU", "RNN"),
        }
    ),
    **by_class(
        {
            _matmul(1): ("DynamicQuantizeMatMul", "MatMulIntegerToFloat"),
            _gemm: ("FusedGemm",),
            _recurrent: ("DynamicQuantizeLSTM",),
        },
        "com.microsoft",
    ),
    OPERATORS["foldline", "Linear"]: _linear,
    **by_class(
        {_matmul(1): ("DynamicQuantizeMatMul", "MatMulIntegerToFloat")},
        "foldline",
    ),
    **{operator: _reduce for operator in REDUCTIONS},
    OPERATORS["", "ArgMax"]: _arg,
    OPERATORS["", "ArgMin"]: _arg,
}
