import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.resize import (
    resize,
    resize_10,
    upsample_1,
    upsample_by_attribute,
)
from tests.kernels.one_node import assert_as_onnxruntime

X = np.array([[[[1, 2], [3, 4]]]], np.float32)
LINE = np.array([1, 2, 4, 8], np.float32)


def scales(*values):
    return np.array(values, np.float32)


def sizes(*values):
    return np.array(values, np.int64)


DOUBLED = [[1, 1, 2, 2], [1, 1, 2, 2], [3, 3, 4, 4], [3, 3, 4, 4]]


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.bool_, object, ml_dtypes.bfloat16])
def test_nearest_copies_elements_of_any_dtype(dtype):
    data = X.astype(dtype)
    result = resize(data, None, scales(1, 1, 2, 2))
    assert result.dtype == dtype
    assert result[0, 0].tolist() == np.array(DOUBLED).astype(dtype).tolist()


def test_old_versions():
    doubled = scales(1, 1, 2, 2)
    results = [
        upsample_1(X, height_scale=2.0, width_scale=2.0),
        upsample_by_attribute(X, scales=(1.0, 1.0, 2.0, 2.0)),
        resize_10(X, doubled),
    ]
    assert [result[0, 0].tolist() for result in results] == [DOUBLED] * 3
    linear = resize_10(LINE, scales(2), mode="linear")
    assert linear.tolist() == [1, 1.5, 2, 3, 4, 6, 8, 8]
    bilinear = upsample_1(X, height_scale=1.0, width_scale=2.0, mode="bilinear")
    assert bilinear[0, 0].tolist() == [[1, 1.5, 2, 2], [3, 3.5, 4, 4]]
    wide = upsample_by_attribute(X, scales=(1.0, 1.0, 1.0, 2.0), mode="linear")
    assert wide.tolist() == bilinear.tolist()


NOTHING = np.zeros(0, np.float32)


@pytest.mark.parametrize("nearest", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
@pytest.mark.parametrize(
    "given",
    [
        (NOTHING, sizes(1, 1, 7, 5)),
        (NOTHING, sizes(1, 1, 2, 9)),
        (scales(1, 1, 0.6, 1.7), None),
    ],
)
def test_half_pixels_for_nearest_neighbours_as_onnxruntime(nearest, given):
    data = np.arange(24, dtype=np.float32).reshape(1, 1, 4, 6)
    inputs = [data, NOTHING, *(x for x in given if x is not None)]
    options = {"coordinate_transformation_mode": "tf_half_pixel_for_nn", "nearest_mode": nearest}
    assert_as_onnxruntime("Resize", 11, inputs, options)


def test_resize_10_rounds_up_when_it_shrinks():
    data = np.arange(1, 9, dtype=np.float32).reshape(1, 1, 2, 4)
    assert resize_10(data, scales(1, 1, 0.6, 0.6))[0, 0].tolist() == [[1, 3]]


def test_linear_and_cubic_of_a_line():
    linear = resize(LINE, None, None, sizes(8), mode="linear")
    assert linear.tolist() == [1, 1.25, 1.75, 2.5, 3.5, 5, 7, 8]
    shrunk = resize(LINE, None, None, sizes(2), mode="linear")
    assert shrunk.tolist() == [1.5, 6]
    cubic = resize(LINE, None, scales(2), mode="cubic", coordinate_transformation_mode="asymmetric")
    assert cubic[::2].tolist() == LINE.tolist()
    assert np.isclose(cubic[3], 2 * 0.59375 + 4 * 0.59375 - (1 + 8) * 0.09375)


def test_antialias_averages_more_elements():
    data = np.array([0, 0, 0, 8, 0, 0, 0, 0], np.float32)
    plain = resize(data, None, None, sizes(4), mode="linear")
    smooth = resize(data, None, None, sizes(4), mode="linear", antialias=1)
    assert plain.tolist() == [0, 4, 0, 0]
    assert smooth.tolist() == [0, 3, 1, 0]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("stretch", (7, 8)), ("not_larger", (4, 8)), ("not_smaller", (7, 14))],
)
def test_aspect_ratio_policies(policy, expected):
    data = np.zeros((2, 2, 4), np.float32)
    result = resize(data, None, None, sizes(8, 7), axes=(-1, 1), keep_aspect_ratio_policy=policy)
    assert result.shape == (2, *expected)


def test_sizes_are_cut_in_float32():
    assert resize(np.zeros(10, np.float32), None, scales(2.6)).shape == (26,)
    assert resize(np.zeros(5, np.float32), None, scales(0.5)).shape == (2,)


def test_crop_and_resize_fills_what_lies_outside():
    options = {
        "coordinate_transformation_mode": "tf_crop_and_resize",
        "extrapolation_value": 10.0,
        "mode": "linear",
    }
    roi = np.array([0.0, 0.5, 1.0, 1.5], np.float32)
    data = np.arange(9, dtype=np.float32).reshape(3, 3)
    result = resize(data, roi, None, sizes(3, 3), **options)
    assert result.tolist() == [[1, 2, 10], [4, 5, 10], [7, 8, 10]]
    axis_only = resize(data, np.array([0.5, 1.5]), None, sizes(3), axes=(1,), **options)
    assert axis_only.tolist() == result.tolist()
    with pytest.raises(ValueError, match="roi of 4 numbers"):
        resize(data, None, None, sizes(3, 3), **options)


def test_integers_round_and_saturate():
    data = np.array([0, 255, 255, 0], np.uint8)
    result = resize(data, None, None, sizes(8), mode="cubic")
    assert result.dtype == np.uint8
    assert result.max() == 255
    assert result[0] == 0
    linear = resize(np.array([0, 3], np.int32), None, scales(2), mode="linear")
    assert linear.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_linear_keeps_float_types(dtype):
    result = resize(LINE.astype(dtype), None, scales(2), mode="linear")
    assert result.dtype == dtype
    assert result.tolist() == [1, 1.25, 1.75, 2.5, 3.5, 5, 7, 8]


def test_linear_in_float64_is_more_precise_than_float32():
    data = np.array([1, 1 + 2**-40])
    result = resize(data, None, None, sizes(4), mode="linear")
    assert result[1] == 1 + 2**-42


def test_an_unchanged_size_copies():
    result = resize(X, None, scales(1, 1, 1, 1), mode="linear")
    assert result.tolist() == X.tolist()
    assert not np.shares_memory(result, X)


def test_empty_results_and_empty_inputs():
    assert resize(X, None, scales(1, 1, 0.1, 2), mode="linear").shape == (1, 1, 0, 4)
    assert resize(X[:0], None, None, sizes(0, 1, 4, 4)).shape == (0, 1, 4, 4)


def test_an_empty_tensor_counts_as_absent():
    nothing = np.zeros(0, np.float32)
    assert resize(LINE, nothing, nothing, sizes(2)).shape == (2,)
    assert resize(LINE, nothing, scales(2), np.zeros(0, np.int64)).shape == (8,)
    for given in ({}, {"scales": scales(2), "sizes": sizes(8)}):
        with pytest.raises(ValueError, match="exactly one of scales and sizes"):
            resize(LINE, **given)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_axes_are_independent(mode):
    data = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    both = resize(data, None, None, sizes(7, 2), mode=mode)
    one = resize(data, None, None, sizes(2), axes=(1,), mode=mode)
    assert np.allclose(both, resize(one, None, None, sizes(7), axes=(0,), mode=mode), atol=1e-6)
