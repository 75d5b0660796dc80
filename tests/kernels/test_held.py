"""float16 held in float32: bit for bit what the kernels give on float16."""

from functools import partial
from itertools import product

import numpy as np
import pytest

from foldline.kernels.channels_last import channels_last
from foldline.kernels.half import HALF, LEAST_SIZE, SINGLE
from foldline.kernels.held import held_step
from foldline.kernels.parallel import use_threads
from foldline.kernels.registry import Operand, all_kernels, compute, find_kernel, run_once

ALL = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
ELEMENT_WISE = {
    "Abs": 1,
    "Add": 2,
    "Celu": 1,
    "Div": 2,
    "Elu": 1,
    "HardSigmoid": 1,
    "HardSwish": 1,
    "LeakyRelu": 1,
    "Mish": 1,
    "Mul": 2,
    "Neg": 1,
    "PRelu": 2,
    "Relu": 1,
    "Selu": 1,
    "Sigmoid": 1,
    "Softplus": 1,
    "Sub": 2,
}
ACTIVATIONS = {
    "": (),
    "Clip": (0.0, 6.0),
    "Gelu": (0,),
    "LeakyRelu": (0.1,),
    "Relu": (),
    "Tanh": (),
}


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


def halves(*shape, seed=0, scale=1.0):
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float16)


def same(found, wanted):
    """Equal bits; where a NaN came from does not matter."""
    assert found.shape == wanted.shape
    rounded = found.astype(HALF)
    np.testing.assert_array_equal(rounded.astype(found.dtype), found)
    numbers = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.isnan(rounded), ~numbers)
    np.testing.assert_array_equal(rounded.view(np.uint16)[numbers], wanted.view(np.uint16)[numbers])


def check(entry, inputs, constants=(), **attributes):
    """All ways to hold inputs and result, of which some inputs are constants."""
    wanted = compute(entry, inputs, **attributes)
    operands = [
        None if x is None else Operand(x.shape, x.dtype, x if place in constants else None)
        for place, x in enumerate(inputs)
    ]
    wide = [x if x is None or x.dtype != HALF else x.astype(SINGLE) for x in inputs]
    for arrays, dtype in product((inputs, wide), (HALF, SINGLE)):
        step = held_step(entry, operands, attributes)
        out = np.empty(wanted.shape, dtype)
        before = [None if x is None else x.copy() for x in arrays]
        assert run_once(step, arrays, out=out) is out
        same(out, wanted)
        for x, old in zip(arrays, before, strict=True):
            if x is not None:
                np.testing.assert_array_equal(x, old)


@pytest.mark.parametrize("op_type", ELEMENT_WISE)
def test_element_wise_operators_on_all_halves(op_type):
    entry = find_kernel("", op_type, 25)
    other = np.random.default_rng(1).permutation(ALL)
    check(entry, [ALL, other][: ELEMENT_WISE[op_type]])


@pytest.mark.parametrize("bounds", [(0, 6), (-0.0, 0.0), (-np.inf, 1e-7), (2, -2)])
def test_clip_on_all_halves(bounds):
    check(find_kernel("", "Clip", 13), [ALL, *(np.array(b, HALF) for b in bounds)])
    check(find_kernel("", "Clip", 6), [ALL], min=bounds[0], max=bounds[1])


def test_broadcast_operands():
    check(find_kernel("", "Mul", 14), [halves(2, 5, 31, 33), halves(5, 1, 1, seed=1)])
    check(find_kernel("", "Add", 14), [halves(2, 5), halves(3, 1, 1, seed=1)])
    check(find_kernel("", "Add", 14), [halves(0, 5), halves(1, 5, seed=1)])


@pytest.mark.parametrize("group", [1, 8])
def test_convolutions(group):
    entry = find_kernel("", "Conv", 22)
    inputs = [halves(1, 8, 37, 35), halves(8, 8 // group, 3, 3, seed=1), halves(8, seed=2)]
    check(entry, inputs, pads=(1, 1, 1, 1), group=group)
    check(entry, inputs, (1, 2), pads=(1, 1, 1, 1), group=group)


@pytest.mark.parametrize("added", [None, (1, 8, 37, 35), (8, 1, 1)])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_what_is_fused_to_a_convolution(activation, added):
    entry = find_kernel("foldline", "Conv", 1)
    z = None if added is None else halves(*added, seed=3)
    inputs = [halves(1, 8, 37, 35), halves(8, 8, 1, 1, seed=1), halves(8, seed=2), z]
    given = {"activation": activation, "activation_params": ACTIVATIONS[activation]}
    check(entry, inputs, (1, 2), **given)


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("rows", [1, 32, 300])
def test_linear(activation, has_bias, rows):
    entry = find_kernel("foldline", "Linear", 1)
    bias = halves(257, seed=2) if has_bias else None
    inputs = [halves(1, rows, 64), halves(64, 257, seed=1), bias]
    given = {"activation": activation, "activation_params": ACTIVATIONS[activation]}
    check(entry, inputs, **given)
    check(entry, inputs, (1, 2), **given)
    check(entry, [inputs[0], np.ascontiguousarray(inputs[1].T), bias], (1,), transB=1, **given)


def test_normalisations():
    parameters = [halves(8, seed=n) for n in range(3)]
    spread = np.abs(halves(8, seed=4))
    batch = find_kernel("", "BatchNormalization", 15)
    check(batch, [halves(2, 8, 31, 33), *parameters, spread], (1, 2, 3, 4))
    check(batch, [halves(2, 8, 31, 33), *parameters, spread])
    rows = [halves(3, 71, 64), halves(3, 71, 64, seed=1), halves(64, seed=2), halves(64, seed=3)]
    check(find_kernel("foldline", "SkipLayerNormalization", 1), rows)


def test_what_becomes_no_finite_half():
    large = np.full(LEAST_SIZE + 3, 300, np.float16)
    large[5:9] = np.nan, np.inf, -np.inf, -300
    check(find_kernel("", "Mul", 14), [large, large])
    check(find_kernel("", "HardSwish", 22), [large])


@pytest.mark.parametrize("threads", [1, 3])
def test_channels_innermost_and_threads(threads):
    shape = 1, 8, 41, 39
    x, w = halves(*shape), halves(8, 8, 3, 3, seed=1)
    entry = find_kernel("", "Conv", 22)
    wanted = compute(entry, [x, w], pads=(1, 1, 1, 1))
    held = channels_last(np.empty(x.size, SINGLE), shape)
    held[...] = x
    operands = [Operand(shape, HALF, None, True), Operand(w.shape, HALF, w)]
    step = held_step(entry, operands, {"pads": (1, 1, 1, 1)})
    assert step.channels_last
    assert step.bind is not None
    scratch = np.empty(step.scratch_bytes, np.uint8)
    for dtype, bind in product((HALF, SINGLE), (step.bind, partial(partial, step.run))):
        out = channels_last(np.zeros(x.size, dtype), shape)
        with use_threads(threads):
            bind(held, w, out=out, scratch=scratch)()
        same(out, wanted)


def test_no_kernel_of_half_types_alone_is_held():
    """What has a float16 loop of NumPy's own may round otherwise than its float32 loop."""
    held = {entry.op_type for entry in all_kernels() if entry.in_single is not None}
    assert held.isdisjoint({"Exp", "Log", "Tanh", "Sqrt", "Pow", "Erf", "Cast"})
