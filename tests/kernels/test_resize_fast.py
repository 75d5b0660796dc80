import numpy as np
import pytest

from foldline.kernels import resize as reference
from foldline.kernels import resize_fast
from foldline.kernels.registry import Operand, compute, find_kernel

DATA = np.random.default_rng(0).normal(size=(1, 2, 5, 6)).astype(np.float32)
SIZES = np.array([1, 2, 8, 3], np.int64)


def operand(array, constant=True):
    return Operand(array.shape, array.dtype, array if constant else None)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("by_scales", [False, True])
def test_planned_and_unplanned_agree_with_the_reference(mode, constant, by_scales):
    scales = np.array([1, 1, 1.7, 0.5], np.float32)
    inputs = [DATA, None, scales] if by_scales else [DATA, None, None, SIZES]
    operands = [operand(DATA, False), None]
    operands += [None if x is None else operand(x, constant) for x in inputs[2:]]
    run = resize_fast.resize(*operands, mode=mode)
    expected = reference.resize(*inputs, mode=mode)
    result = run(*inputs)
    assert (result.shape, result.dtype) == (expected.shape, np.float32)
    assert np.allclose(result, expected, rtol=1e-5, atol=1e-6)
    if mode == "nearest" or not constant:
        assert result.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.uint8, np.int32])
@pytest.mark.parametrize("antialias", [0, 1])
def test_planned_products_of_other_types(dtype, antialias):
    data = (DATA * 50 + 100).astype(dtype)
    options = {"mode": "linear", "antialias": antialias}
    result = resize_fast.resize(operand(data, False), None, None, operand(SIZES), **options)(data)
    expected = reference.resize(data, None, None, SIZES, **options)
    assert result.dtype == dtype
    assert np.allclose(result, expected, rtol=1e-12 if dtype is np.float64 else 1e-3)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("place", [(0, 0, 0, 0), (0, 1, 2, 3)])
def test_a_product_does_not_spread_infinities_and_nan(value, place):
    data = DATA.copy()
    data[place] = value
    run = resize_fast.resize(operand(data, False), None, None, operand(SIZES), mode="linear")
    with np.errstate(invalid="ignore"):
        result = run(data)
    expected = reference.resize(data, None, None, SIZES, mode="linear")
    assert np.isfinite(expected).any()
    assert np.allclose(result, expected, atol=1e-6, equal_nan=True)


def test_long_axes_gather_their_taps():
    data = np.random.default_rng(0).normal(size=(2, 3000)).astype(np.float32)
    size = np.array([2, 2000], np.int64)
    run = resize_fast.resize(operand(data, False), None, None, operand(size), mode="linear")
    expected = reference.resize(data, None, None, size, mode="linear")
    assert run(data).tobytes() == expected.tobytes()


def test_constant_sizes_are_read_when_the_plan_is_made():
    run = resize_fast.resize(operand(DATA, False), None, None, operand(SIZES))
    assert run(DATA, None, None, None).shape == (1, 2, 8, 3)


def test_an_empty_input_need_not_be_constant():
    nothing = operand(np.zeros(0, np.float32), constant=False)
    run = resize_fast.resize(operand(DATA, False), nothing, nothing, operand(SIZES))
    assert run(DATA).shape == (1, 2, 8, 3)


def test_registered_as_the_fast_kernel_of_resize():
    entry = find_kernel("", "Resize", 19)
    assert entry is not None
    assert entry.is_maker
    assert compute(entry, [DATA, None, None, SIZES]).shape == (1, 2, 8, 3)
