from __future__ import annotations

import numpy as np
import pytest

from foldline.kernels.registry import Operand, find_kernel
from foldline.lowering.reshapes import MOST_ELEMENTS, plain_reshape
from tests.lowering.models import assert_same, every_kind, program

INTS = np.dtype(np.int64)


def _found(op_type: str, shape: tuple[int, ...], result: tuple[int, ...], *others: object):
    kernel = find_kernel("", op_type, 13)
    assert kernel is not None
    constants = [Operand((len(o),), INTS, np.array(o)) if o else None for o in others]
    return plain_reshape(kernel.function, [Operand(shape, INTS), *constants], result)


@pytest.mark.parametrize(
    ("op_type", "shape", "result", "others"),
    [
        ("Unsqueeze", (2, 3), (2, 1, 3, 1), [[1, 3]]),
        ("Squeeze", (2, 1, 3), (2, 3), [[1]]),
        ("Reshape", (2, 6), (3, 4), [[3, -1]]),
        ("Identity", (2, 3), (2, 3), []),
        ("Transpose", (1, 3), (3, 1), []),
    ],
)
def test_what_keeps_the_order_is_a_reshape(op_type, shape, result, others) -> None:
    found = _found(op_type, shape, result, *others)
    data = np.random.default_rng(0).standard_normal(shape)
    assert_same([found(data, *others)], [data.reshape(result)])


@pytest.mark.parametrize(
    ("op_type", "shape", "result", "others"),
    [
        ("Transpose", (2, 3), (3, 2), []),
        ("Expand", (1, 3), (2, 3), [[2, 3]]),
        ("Slice", (4,), (4,), [[3], [-5], [0], [-1]]),
        ("Identity", (MOST_ELEMENTS + 1,), (MOST_ELEMENTS + 1,), []),
        ("Identity", (0, 3), (0, 3), []),
    ],
)
def test_what_does_not_is_none(op_type, shape, result, others) -> None:
    assert _found(op_type, shape, result, *others) is None


def test_nothing_is_known_of_an_operand_without_value() -> None:
    kernel = find_kernel("", "Reshape", 13)
    assert kernel is not None
    operands = [Operand((2,), INTS), Operand((1,), INTS)]
    assert plain_reshape(kernel.function, operands, (2,)) is None


def test_outputs_stay_the_callers_alone() -> None:
    ready = program(
        "g (float[N, 2] x) => (float[A, B, C] y, float[N, 2] z) <int64[1] at = {0}> "
        "{ u = Unsqueeze(x, at) y = Identity(u) z = Neg(x) }"
    )
    x = np.float32([[1, -0.0], [np.nan, 3]])
    for y, z in every_kind(ready, [x]):
        assert_same([y, z], [x[np.newaxis], -x])
        assert not np.shares_memory(y, x)
