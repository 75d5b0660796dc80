import numpy as np
import pytest

from foldline.kernels import resize as reference
from foldline.kernels import resize_fast
from foldline.kernels.registry import Operand, Step, compute, find_kernel, run_once

DATA = np.random.default_rng(0).normal(size=(1, 2, 5, 6)).astype(np.float32)
SIZES = np.array([1, 2, 8, 3], np.int64)


def operand(array, constant=True):
    return Operand(array.shape, array.dtype, array if constant else None)


def planned(*operands, **options):
    """What the maker makes, as a function of the inputs."""
    made = resize_fast.resize(*operands, **options)
    return lambda *inputs, **out: run_once(made, inputs, **out)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("by_scales", [False, True])
def test_planned_and_unplanned_agree_with_the_reference(mode, constant, by_scales):
    scales = np.array([1, 1, 1.7, 0.5], np.float32)
    inputs = [DATA, None, scales] if by_scales else [DATA, None, None, SIZES]
    operands = [operand(DATA, False), None]
    operands += [None if x is None else operand(x, constant) for x in inputs[2:]]
    run = planned(*operands, mode=mode)
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
    result = planned(operand(data, False), None, None, operand(SIZES), **options)(data)
    expected = reference.resize(data, None, None, SIZES, **options)
    assert result.dtype == dtype
    assert np.allclose(result, expected, rtol=1e-12 if dtype is np.float64 else 1e-3)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("place", [(0, 0, 0, 0), (0, 1, 2, 3)])
def test_a_product_does_not_spread_infinities_and_nan(value, place):
    data = DATA.copy()
    data[place] = value
    run = planned(operand(data, False), None, None, operand(SIZES), mode="linear")
    with np.errstate(invalid="ignore"):
        result = run(data)
    expected = reference.resize(data, None, None, SIZES, mode="linear")
    assert np.isfinite(expected).any()
    assert np.allclose(result, expected, atol=1e-6, equal_nan=True)


def test_long_axes_gather_their_taps():
    data = np.random.default_rng(0).normal(size=(2, 3000)).astype(np.float32)
    size = np.array([2, 2000], np.int64)
    run = planned(operand(data, False), None, None, operand(size), mode="linear")
    expected = reference.resize(data, None, None, size, mode="linear")
    assert run(data).tobytes() == expected.tobytes()


def test_constant_sizes_are_read_when_the_plan_is_made():
    run = planned(operand(DATA, False), None, None, operand(SIZES))
    assert run(DATA, None, None, None).shape == (1, 2, 8, 3)


def test_an_empty_input_need_not_be_constant():
    nothing = operand(np.zeros(0, np.float32), constant=False)
    run = planned(operand(DATA, False), nothing, nothing, operand(SIZES))
    assert run(DATA).shape == (1, 2, 8, 3)


def test_registered_as_the_fast_kernel_of_resize():
    entry = find_kernel("", "Resize", 19)
    assert entry is not None
    assert entry.is_maker
    assert compute(entry, [DATA, None, None, SIZES]).shape == (1, 2, 8, 3)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32])
@pytest.mark.parametrize("sizes", [[1, 2, 8, 3], [1, 2, 9, 6], [2, 3, 4, 5], [1, 2, 5, 6]])
@pytest.mark.parametrize("constant", [False, True])
def test_what_is_told_where_to_write_writes_there(mode, dtype, sizes, constant):
    data = (DATA * 50).astype(dtype)
    sizes = np.array(sizes, np.int64)
    run = planned(operand(data, False), None, None, operand(sizes, constant), mode=mode)
    expected = run(data, None, None, sizes)
    out = np.full(tuple(sizes), 7, dtype)
    assert run(data, None, None, sizes, out=out) is out
    assert out.tobytes() == expected.tobytes()


def test_regions_outside_are_filled_where_they_are_written():
    roi = np.array([0, 0, -0.5, 0.2, 1, 1, 1.5, 1.2], np.float32)
    options = {
        "mode": "linear",
        "coordinate_transformation_mode": "tf_crop_and_resize",
        "extrapolation_value": 10.0,
    }
    run = planned(operand(DATA, False), operand(roi), None, operand(SIZES), **options)
    out = np.empty((1, 2, 8, 3), np.float32)
    run(DATA, roi, None, SIZES, out=out)
    expected = reference.resize(DATA, roi, None, SIZES, **options)
    assert (expected == 10).any()
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)


def test_long_axes_have_memory_for_their_taps():
    made = resize_fast.resize(
        Operand((2, 3000), np.dtype(np.float32)), None, None, operand(np.array([2, 2000])),
        mode="linear",
    )  # fmt: skip
    assert isinstance(made, Step)
    assert made.scratch_bytes == 2 * 2000 * 4
