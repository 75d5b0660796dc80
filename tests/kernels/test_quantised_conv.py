"""ConvInteger and QLinearConv: grades against each other, and against a convolution in float64."""

import numpy as np
import pytest

from foldline.kernels.conv import conv_reference
from foldline.kernels.registry import compute, find_kernel


def both(op_type, inputs, **attributes):
    results = [
        compute(find_kernel("", op_type, 10, (grade,)), inputs, **attributes)
        for grade in ("fast", "reference")
    ]
    assert results[0].dtype == results[1].dtype
    assert results[0].tolist() == results[1].tolist()
    return results[0]


def integers(shape, dtype, seed):
    info = np.iinfo(dtype)
    random = np.random.default_rng(seed)
    return random.integers(info.min, info.max, shape, endpoint=True).astype(dtype)


CASES = [
    ((1, 4, 9, 8), (6, 4, 3, 3), {}),
    ((2, 4, 9, 8), (6, 4, 3, 3), {"pads": (1, 0, 2, 1), "strides": (2, 1)}),
    ((1, 4, 9, 8), (6, 4, 3, 2), {"dilations": (2, 3), "kernel_shape": (3, 2)}),
    ((1, 4, 9, 8), (6, 2, 3, 3), {"group": 2, "auto_pad": "SAME_UPPER", "strides": (2, 2)}),
    ((1, 4, 9, 8), (4, 1, 3, 3), {"group": 4, "auto_pad": "SAME_LOWER"}),
    ((1, 4, 9, 8), (6, 4, 1, 1), {"auto_pad": "VALID"}),
    ((1, 3, 12), (2, 3, 5), {"pads": (2, 2), "dilations": (2,)}),
    ((1, 2, 4, 5, 6), (3, 2, 2, 2, 2), {"strides": (1, 2, 2)}),
    ((1, 300, 3, 3), (2, 300, 3, 3), {"pads": (1, 1, 1, 1)}),
]


@pytest.mark.parametrize(("x_shape", "w_shape", "attributes"), CASES)
@pytest.mark.parametrize(("x_type", "w_type"), [(np.uint8, np.int8), (np.int8, np.uint8)])
def test_conv_integer(x_shape, w_shape, attributes, x_type, w_type):
    x, w = integers(x_shape, x_type, 0), integers(w_shape, w_type, 1)
    x_zero, w_zero = np.array(7, x_type), integers(w_shape[:1], w_type, 2)
    exact = conv_reference(
        x.astype(np.float64) - 7,
        w.astype(np.float64) - w_zero.astype(np.float64).reshape(-1, *(1,) * (w.ndim - 1)),
        **attributes,
    )
    result = both("ConvInteger", [x, w, x_zero, w_zero], **attributes)
    assert result.dtype == np.int32
    assert (result == exact).all()
    plain = both("ConvInteger", [x, w], **attributes)
    exact = conv_reference(x.astype(np.float64), w.astype(np.float64), **attributes)
    assert (plain == exact).all()


@pytest.mark.parametrize(("x_shape", "w_shape", "attributes"), CASES)
@pytest.mark.parametrize("per_map", [False, True])
def test_qlinear_conv(x_shape, w_shape, attributes, per_map):
    x, w = integers(x_shape, np.uint8, 0), integers(w_shape, np.int8, 1)
    maps = w_shape[0]
    w_scale = np.linspace(0.5, 1.5, maps) if per_map else np.array(0.75)
    bias = integers((maps,), np.int16, 3).astype(np.int32)
    zeros = [np.array(120, np.uint8), np.zeros(maps if per_map else (), np.int8)]
    scales = [np.array(0.5, np.float32), w_scale.astype(np.float32), np.array(900, np.float32)]
    inputs = [x, scales[0], zeros[0], w, scales[1], zeros[1], scales[2], np.array(-3, np.int8)]
    result = both("QLinearConv", [*inputs, bias], **attributes)
    by_map = (-1, *(1,) * (w.ndim - 2))
    total = conv_reference(x.astype(np.float64) - 120, w.astype(np.float64), **attributes)
    total += bias.reshape(by_map)
    factor = (scales[0] * scales[1] / scales[2]).reshape(-1)
    factor = factor.reshape(by_map) if per_map else factor
    expected = np.clip(np.rint(total.astype(np.float32) * factor) - 3, -128, 127)
    assert result.dtype == np.int8
    assert np.unique(result).size > 1
    assert (result == expected).all()


def test_qlinear_conv_rounds_half_to_even_and_saturates():
    x = np.array([[[1, 3, 5, 255]]], np.uint8)
    one, zero = np.array(1, np.float32), np.array(0, np.uint8)
    w = np.array([[[1]]], np.uint8)
    inputs = [x, one, zero, w, one, zero, np.array(2, np.float32), np.array(1, np.int8)]
    assert both("QLinearConv", inputs).tolist() == [[[1, 3, 3, 127]]]


def test_nothing_in_the_batch():
    x, w = np.zeros((0, 2, 4), np.uint8), np.zeros((3, 2, 2), np.int8)
    assert both("ConvInteger", [x, w]).shape == (0, 3, 3)


def test_channels_must_fit():
    x, w = np.zeros((1, 4, 5), np.uint8), np.zeros((3, 2, 2), np.int8)
    with pytest.raises(ValueError, match="do not fit together with group=1"):
        compute(find_kernel("", "ConvInteger", 10), [x, w])
