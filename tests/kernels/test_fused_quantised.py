"""Operators on codes, against DequantizeLinear, the operator and QuantizeLinear: the same bits."""

from typing import Any

import numpy as np
import pytest

from foldline.kernels.fused_quantised import LEAST_ROW, all_codes, looked_up
from foldline.kernels.registry import GRADES, Operand, compute, find_kernel, run_once

MODES = ("fast", "exact")
BYTES = (np.int8, np.uint8)


def kernel_of(op_type, mode, version=22):
    return find_kernel("", op_type, version, GRADES[mode])


def codes(shape, dtype, seed=0):
    info = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(info.min, info.max, shape, dtype, endpoint=True)


def scale(value):
    return np.full((), value, np.float32)


def run(op_type, arrays, mode, constant=True, **attributes):
    entry = find_kernel("foldline", op_type, 1, GRADES[mode])
    if not entry.is_maker:
        return entry.function(*arrays, **attributes)
    operands = [
        None if x is None else Operand(x.shape, x.dtype, x if constant and place else None)
        for place, x in enumerate(arrays)
    ]
    return run_once(entry.function(*operands, **attributes), arrays)


def dequantised(x, x_scale, zero, mode):
    return compute(kernel_of("DequantizeLinear", mode), [x, x_scale, zero])


def quantised(y, y_scale, zero, mode):
    return compute(kernel_of("QuantizeLinear", mode), [y, y_scale, zero])


def bits(found, wanted):
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    np.testing.assert_array_equal(found, wanted)


ACTIVATIONS: dict[str, Any] = {
    "Relu": (),
    "Sigmoid": (),
    "Tanh": (),
    "HardSwish": (),
    "LeakyRelu": (0.25,),
    "HardSigmoid": (0.2, 0.5),
    "Clip": (-0.5, 0.75),
    "Gelu": (0.0,),
    "Swish": (1.0,),
}
NAMES = {"LeakyRelu": ("alpha",), "HardSigmoid": ("alpha", "beta"), "Swish": ("alpha",)}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_of_every_code(name: str, dtype: Any, mode: str):
    x, params = all_codes(dtype).reshape(2, 128), ACTIVATIONS[name]
    zero = codes((), dtype, 4)
    for x_zero, y_zero, y_scale in ((None, zero, 0.01), (zero, zero, 0.5), (zero, zero, 1e-6)):
        values = dequantised(x, scale(0.05), x_zero, mode)
        given = [np.array(p, np.float32) for p in params] if name == "Clip" else []
        named = dict(zip(NAMES.get(name, ()), params, strict=False))
        if name == "Gelu":
            named = {"approximate": "none"}
        version = 24 if name == "Swish" else 22
        y = compute(kernel_of(name, mode, version), [values, *given], **named)
        wanted = quantised(y, scale(y_scale), y_zero, mode)
        for constant in (True, False):
            found = run(
                "QLinearActivation",
                [x, scale(0.05), x_zero, scale(y_scale), y_zero],
                mode,
                constant,
                activation=name,
                activation_params=params,
            )
            bits(found, wanted)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize(
    "shape", [(2, 3, 5, 5), (2, 3, LEAST_ROW), (1, 3, 32, 40), (4, 3), (0, 3, 7), (2, 3, 0)]
)
def test_a_batch_normalization(shape: Any, dtype: Any, mode: str):
    x, zero = codes(shape, dtype), codes((), dtype, 4)
    random = np.random.default_rng(1)
    parameters = [random.standard_normal(3).astype(np.float32) for _ in range(3)]
    parameters.append(random.uniform(0.1, 2, 3).astype(np.float32))
    values = dequantised(x, scale(0.05), zero, mode)
    y = compute(kernel_of("BatchNormalization", mode), [values, *parameters], epsilon=1e-3)
    wanted = quantised(y, scale(0.03), zero, mode)
    for constant in (True, False):
        given = [x, scale(0.05), zero, scale(0.03), zero, *parameters]
        bits(run("QLinearBatchNormalization", given, mode, constant, epsilon=1e-3), wanted)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("op_type", ["Add", "Mul"])
@pytest.mark.parametrize("dtype", BYTES)
def test_sums_and_products_broadcast(dtype: Any, op_type: str, mode: str):
    a, b, zero = codes((2, 3, 4, 5), dtype), codes((3, 1, 1), dtype, 1), codes((), dtype, 4)
    parts = [dequantised(a, scale(0.1), zero, mode), dequantised(b, scale(0.02), None, mode)]
    y = compute(kernel_of(op_type, mode), parts)
    given = [a, scale(0.1), zero, b, scale(0.02), None, scale(0.07), zero]
    bits(run(f"QLinear{op_type}", given, mode), quantised(y, scale(0.07), zero, mode))


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0, 2), (2, 3)])
def test_looking_up_keeps_the_shape_and_gives_memory_of_its_own(shape: Any):
    x = codes(shape, np.int8)
    table = all_codes(np.int8)[::-1].copy()
    found = looked_up(x, table.tobytes())
    bits(found, table[x.view(np.uint8)] if shape else np.asarray(table[int(x.view(np.uint8))]))
    assert found.flags.writeable
    assert not np.shares_memory(found, x)


def test_codes_that_are_not_contiguous_are_looked_up_in_order():
    x = codes((4, 6), np.uint8).T
    table = np.roll(np.arange(256, dtype=np.uint8), 3)
    bits(looked_up(x, table.tobytes()), table[x])
