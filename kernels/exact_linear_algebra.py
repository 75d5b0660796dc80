"""Einsum 12/28 and Det 11/22 in exact mode.

Einsum contracts from left to right, two operands at a time. A contraction is a matrix product
whose k runs, in C order, over the labels that vanish, in the order in which they first occur; a
label that occurs in one operand only, and an operand that stands alone, are no exception.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from foldline.kernels.exact_bits import canonical, canonicalised
from foldline.kernels.exact_products import product
from foldline.kernels.precision import widening
from foldline.kernels.registry import Array, kernel

Labels = tuple[str, ...]
"""One for each axis; those that an ellipsis stands for are numbered from the last one."""


@kernel("Einsum", grade="exact")
@canonicalised
@widening
def einsum(*operands: Array, equation: str) -> Array:
    """Einsum 12/28: spaces are ignored, an output that is not stated is that of NumPy."""
    terms, output = _parsed(equation, [x.ndim for x in operands])
    pairs = [_diagonal(x, labels) for x, labels in zip(operands, terms, strict=True)]
    sizes: dict[str, int] = {}
    for x, labels in pairs:
        for label, size in zip(labels, x.shape, strict=True):
            if sizes.get(label, 1) != 1 and size not in (1, sizes[label]):
                raise ValueError(f"{equation!r}: '{label}' is {sizes[label]} and {size}")
            sizes[label] = size if sizes.get(label, 1) == 1 else sizes[label]
    result, labels = pairs[0]
    for index, (x, more) in enumerate(pairs[1:], 2):
        needed = {*output, *(label for _, later in pairs[index:] for label in later)}
        result, labels = _contracted(result, labels, x, more, needed, sizes)
    if set(labels) - set(output):
        one = np.ones((), result.dtype)
        result, labels = _contracted(result, labels, one, (), set(output), sizes)
    return _spread(result, labels, output, sizes).copy()


def _parsed(equation: str, ranks: Sequence[int]) -> tuple[list[Labels], Labels]:
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"{equation!r} has {len(terms)} terms for {len(ranks)} operands")
    read = [_labels(term, rank) for term, rank in zip(terms, ranks, strict=True)]
    hidden = max((sorted(x for x in labels if len(x) > 1) for labels in read), key=len)
    open_axes = tuple(reversed(hidden))
    if arrow:
        start, dots, end = right.partition("...")
        return read, (*start, *(open_axes if dots else ()), *end)
    letters = sorted(set(left) - {",", "."})
    counted = [letter for letter in letters if left.count(letter) == 1]
    return read, (*open_axes, *counted)


def _labels(term: str, rank: int) -> Labels:
    start, dots, end = term.partition("...")
    hidden = rank - len(start) - len(end)
    if hidden < 0 or (hidden and not dots):
        raise ValueError(f"the term {term!r} does not fit an operand of rank {rank}")
    # Numbered from the last, in a form that sorts: broadcasting aligns them there.
    return (*start, *(f".{index:03}" for index in reversed(range(hidden))), *end)


def _diagonal(x: Array, labels: Labels) -> tuple[Array, Labels]:
    """The axes of one label taken together."""
    for label in labels:
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            x = np.diagonal(x, 0, first, second)
            labels = (*(a for i, a in enumerate(labels) if i not in (first, second)), label)
    return x, labels


def _contracted(
    a: Array, of_a: Labels, b: Array, of_b: Labels, needed: set[str], sizes: dict[str, int]
) -> tuple[Array, Labels]:
    both = tuple(x for x in of_a if x in of_b and x in needed)
    rows = tuple(x for x in of_a if x not in of_b and x in needed)
    columns = tuple(x for x in of_b if x not in of_a and x in needed)
    summed = tuple(x for x in dict.fromkeys((*of_a, *of_b)) if x not in needed)
    left = _spread(a, of_a, (*both, *rows, *summed), sizes)
    right = _spread(b, of_b, (*both, *summed, *columns), sizes)
    batch, m, k, n = (math.prod(sizes[x] for x in some) for some in (both, rows, summed, columns))
    result = product(left.reshape(batch, m, k), right.reshape(batch, k, n))
    labels = (*both, *rows, *columns)
    return result.reshape([sizes[x] for x in labels]), labels


def _spread(x: Array, labels: Labels, wanted: Labels, sizes: dict[str, int]) -> Array:
    """`x` with its axes in the order wanted, repeated along labels it does not have."""
    present = [label for label in wanted if label in labels]
    x = x.transpose([labels.index(label) for label in present])
    shape = [x.shape[present.index(label)] if label in present else 1 for label in wanted]
    return np.broadcast_to(x.reshape(shape), [sizes[label] for label in wanted])


@kernel("Det", grade="exact")
@widening
def det(x: Array) -> Array:
    """Det 11/22: of each matrix in X `(..., n, n)`, by elimination with the greatest pivot."""
    n = x.shape[-1]
    matrices = x.reshape(math.prod(x.shape[:-2]), n, n)
    result = np.array([_determinant(matrix.copy()) for matrix in matrices], x.dtype)
    return canonical(result.reshape(x.shape[:-2]))


def _determinant(matrix: Array) -> Array:
    total = np.ones((), matrix.dtype)
    for column in range(len(matrix)):
        pivot = column + int(np.argmax(np.abs(matrix[column:, column])))
        if pivot != column:
            matrix[[column, pivot]] = matrix[[pivot, column]]
            total = np.negative(total)
        head = matrix[column, column]
        total = np.multiply(total, head)
        if head == 0:
            return np.asarray(total)
        below = matrix[column + 1 :, column : column + 1] / head
        matrix[column + 1 :] -= below * matrix[column]
    return np.asarray(total)
