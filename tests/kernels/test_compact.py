import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.compact import widening_inputs
from foldline.kernels.registry import Operand, Step, find_kernel, run_once

HALVES = [np.float16, ml_dtypes.bfloat16]


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def made(entry, inputs, constant=(), **attributes):
    operands = [
        None if x is None else Operand(x.shape, x.dtype, x if i in constant else None)
        for i, x in enumerate(inputs)
    ]
    return entry.function(*operands, **attributes)


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize(
    ("op_type", "grade", "shapes", "attributes"),
    [
        ("MatMul", "fast", [(5, 40), (40, 30)], {}),
        ("MatMul", "exact", [(5, 40), (40, 30)], {}),
        ("Gemm", "fast", [(5, 40), (30, 40), (30,)], {"transB": 1}),
        ("Conv", "fast", [(1, 8, 12, 12), (8, 8, 3, 3), (8,)], {"pads": (1, 1, 1, 1)}),
        ("Conv", "fast", [(1, 64, 30, 30), (64, 64, 3, 3)], {}),
    ],
)
def test_the_bits_are_those_of_widened_weights(half, op_type, grade, shapes, attributes):
    entry = find_kernel("", op_type, 22, [grade])
    inputs = [normal(*shape, seed=i) for i, shape in enumerate(shapes)]
    inputs[1] = inputs[1].astype(half)
    wide = [inputs[0], inputs[1].astype(np.float32), *inputs[2:]]
    expected = run_once(made(entry, wide, **attributes), wide) if entry.is_maker else None
    if expected is None:
        expected = entry.function(*wide, **attributes)
    compact = widening_inputs(entry, (1,))
    assert compact.is_maker
    step = made(compact, inputs, constant=(1,), **attributes)
    assert isinstance(step, Step)
    for _ in range(2):
        found = run_once(step, inputs)
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))


def test_weights_are_not_told_to_be_constant():
    """What a kernel prepares of constants takes the memory that was to be saved."""
    entry = find_kernel("", "MatMul", 13, ["fast"])
    told = []

    def spy(*operands, **attributes):
        told.extend(operands)
        return entry.function(*operands, **attributes)

    watched = widening_inputs(type(entry)(**{**vars(entry), "function": spy}), (1,))
    b = normal(40, 30).astype(np.float16)
    step = watched.function(Operand((5, 40), np.dtype(np.float32)), Operand(b.shape, b.dtype, b))
    assert told[1] == Operand((40, 30), np.dtype(np.float32))
    assert step.scratch_bytes == 40 * 30 * 4


def test_an_absent_input_stays_absent():
    entry = find_kernel("", "Gemm", 13, ["fast"])
    compact = widening_inputs(entry, (2,))
    a, b = normal(3, 4), normal(4, 5)
    step = made(compact, [a, b])
    np.testing.assert_array_equal(run_once(step, [a, b]), run_once(made(entry, [a, b]), [a, b]))
