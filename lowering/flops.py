"""How many floating-point operations a call takes, by operator; a multiply-add counts as two.

Only what products and convolutions multiply is counted: sums, activations and copies around them
are a few per cent, and of other operators a count says nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

Shape: TypeAlias = tuple[int, ...]
Shapes: TypeAlias = Sequence[Shape | None]
"""None where there is no tensor."""
Count: TypeAlias = Callable[[Shapes, Shapes, Mapping[str, Any]], int]
"""(inputs, results, attributes) -> operations"""


def flops_of(
    operator: tuple[str, str], inputs: Shapes, results: Shapes, attributes: Mapping[str, Any]
) -> int | None:
    """Operations of one call; None where its operator has no count, or a shape is missing."""
    count = COUNTS.get(operator)
    try:
        return None if count is None else count(inputs, results, attributes)
    except (TypeError, IndexError):
        return None


def _convolution(inputs: Shapes, results: Shapes, attributes: Mapping[str, Any]) -> int:
    """Each result sums the weights of its map."""
    return 2 * _size(results[0]) * math.prod(_shape(inputs[1])[1:])


def _transposed_convolution(inputs: Shapes, results: Shapes, attributes: Mapping[str, Any]) -> int:
    """Each input is multiplied with the weights of its channel."""
    return 2 * _size(inputs[0]) * math.prod(_shape(inputs[1])[1:])


def _product(inputs: Shapes, results: Shapes, attributes: Mapping[str, Any]) -> int:
    """Each result sums as many terms as A has columns, or rows where it is transposed."""
    left = _shape(inputs[0])
    return 2 * _size(results[0]) * left[0 if attributes.get("transA") else -1]


def _second_product(inputs: Shapes, results: Shapes, attributes: Mapping[str, Any]) -> int:
    """The same where scale or zero point stand between the factors."""
    return 2 * _size(results[0]) * _shape(inputs[0])[-1]


def _attention(inputs: Shapes, results: Shapes, attributes: Mapping[str, Any]) -> int:
    """Q K^T and its product with V, of all heads: `(..., rows, channels)`, each key once a row."""
    query, key = _shape(inputs[0]), _shape(inputs[1])
    return (
        2 * _size(inputs[0]) * key[-2]
        + 2 * math.prod(query[:-1]) * key[-2] * (_shape(results[0])[-1])
    )


def _recurrent(inputs: Shapes, results: Shapes, attributes: Mapping[str, Any]) -> int:
    """X W^T and H R^T at every step: X (steps, batch, inputs), W and R with all gates in rows."""
    steps, batch = _shape(inputs[0])[:2]
    return 2 * steps * batch * (_size(inputs[1]) + _size(inputs[2]))


COUNTS: dict[tuple[str, str], Count] = {
    **{
        (domain, name): _convolution
        for domain in ("", "foldline")
        for name in ("Conv", "ConvInteger", "QLinearConv")
    },
    **{(domain, "ConvTranspose"): _transposed_convolution for domain in ("", "foldline")},
    **{
        operator: _product
        for operator in (
            ("", "MatMul"),
            ("", "Gemm"),
            ("", "MatMulInteger"),
            ("foldline", "Linear"),
            ("com.microsoft", "FusedMatMul"),
            ("com.microsoft", "FusedGemm"),
            ("com.microsoft", "DynamicQuantizeMatMul"),
            ("com.microsoft", "MatMulIntegerToFloat"),
        )
    },
    ("", "QLinearMatMul"): _second_product,
    ("", "Attention"): _attention,
    ("foldline", "Attention"): _attention,
    **{("", name): _recurrent for name in ("LSTM", "GRU", "RNN")},
}


def _shape(shape: Shape | None) -> Shape:
    if shape is None:
        raise TypeError("no tensor")
    return shape


def _size(shape: Shape | None) -> int:
    return math.prod(_shape(shape))
