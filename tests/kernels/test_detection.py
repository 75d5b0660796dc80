"""NonMaxSuppression and RoiAlign: rules by hand, then against ONNX Runtime."""

import itertools

import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.detection import non_max_suppression, roi_align, roi_align_10
from tests.kernels.one_node import assert_as_onnxruntime

BOXES = np.array([[[0, 0, 2, 2], [0, 0, 2, 1], [3, 3, 4, 4], [2, 2, 0, 0]]], np.float32)
SCORES = np.array([[[0.5, 0.9, 0.7, 0.5]]], np.float32)
TEN = np.array(10)


def f32(value):
    return np.array(value, np.float32)


def kept(*args, **options):
    return non_max_suppression(BOXES, SCORES, *args, **options)[:, 2].tolist()


def test_boxes_are_kept_by_score_unless_they_overlap_too_much():
    assert kept(TEN, f32(0.4)) == [1, 2]
    # An overlap of exactly the threshold is kept, the copy of a kept box is not.
    assert kept(TEN, f32(0.5)) == [1, 2, 0]
    assert kept(TEN, f32(1)) == [1, 2, 0, 3]


def test_limits_and_thresholds():
    assert kept(np.array([2]), f32([0.5])) == [1, 2]
    assert kept(TEN, f32(0.5), f32(0.7)) == [1]
    assert kept(TEN) == [1, 2]
    assert kept(TEN, None, f32(0.6)) == [1, 2]


def test_without_a_limit_nothing_is_kept():
    for limit in (None, np.array(0), np.array(-1), np.zeros(0, np.int64)):
        result = non_max_suppression(BOXES, SCORES, limit)
        assert result.dtype == np.int64
        assert result.shape == (0, 3)


def test_classes_and_batches_do_not_suppress_each_other():
    boxes = np.concatenate([BOXES, BOXES])
    scores = np.tile(SCORES, (2, 2, 1))
    result = non_max_suppression(boxes, scores, np.array(1))
    assert result.tolist() == [[0, 0, 1], [0, 1, 1], [1, 0, 1], [1, 1, 1]]


def test_centre_form():
    boxes = f32([[[1, 1, 2, 2], [0.5, 1, 1, 2], [3.5, 3.5, 1, 1]]])
    result = non_max_suppression(boxes, SCORES[..., :3], TEN, f32(0.4), center_point_box=1)
    assert result[:, 2].tolist() == [1, 2]


def test_boxes_without_area_and_scores_without_order():
    boxes = f32([[[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 1]]])
    scores = f32([[[np.nan, 1, np.inf]]])
    assert set(non_max_suppression(boxes, scores, TEN)[:, 2].tolist()) == {0, 1, 2}
    assert non_max_suppression(boxes, scores, TEN, None, f32(0.5))[:, 2].tolist() == [2, 1]
    assert non_max_suppression(boxes[:, :0], scores[..., :0], TEN).shape == (0, 3)


@pytest.mark.parametrize("center_point_box", [0, 1])
@pytest.mark.parametrize("seed", range(4))
def test_selection_as_onnxruntime(center_point_box, seed):
    rng = np.random.default_rng(seed)
    boxes = rng.random((2, 12, 4)).astype(np.float32)
    scores = np.round(rng.random((2, 3, 12)), 1).astype(np.float32)  # with ties
    inputs = [boxes, scores, np.array([5]), f32([rng.choice([0, 0.1, 0.3, 0.5])]), f32([0.2])]
    options = {"center_point_box": center_point_box}
    assert_as_onnxruntime("NonMaxSuppression", 11, inputs, options)


IMAGE = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
ZERO = np.zeros(1, np.int64)


def test_align_of_whole_elements():
    whole = f32([[0, 0, 4, 4]])
    size = {"output_height": 2, "output_width": 2}
    assert roi_align(IMAGE, whole, ZERO, **size)[0, 0].tolist() == [[2.5, 4.5], [10.5, 12.5]]
    shifted = roi_align_10(IMAGE, whole, ZERO, **size, sampling_ratio=1)
    assert shifted[0, 0].tolist() == [[5, 7], [13, 15]]
    scaled = roi_align(IMAGE, whole * 2, ZERO, **size, spatial_scale=0.5)
    assert scaled[0, 0].tolist() == [[2.5, 4.5], [10.5, 12.5]]


def test_regions_that_are_empty_or_outside():
    rois = f32([[2, 2, 2, 2], [9, 9, 12, 12], [3, 3, 1, 1]])
    images = np.zeros(3, np.int64)
    assert roi_align(IMAGE, rois, images).ravel().tolist() == [0, 0, 0]
    # In the older mode a region is at least one element a side.
    assert roi_align_10(IMAGE, rois, images).ravel().tolist() == [12.5, 0, 15]
    assert roi_align(IMAGE, rois[:0], images[:0]).shape == (0, 1, 1, 1)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_dtypes_of_regions(dtype):
    result = roi_align(IMAGE.astype(dtype), f32([[0, 0, 4, 4]]).astype(dtype), ZERO)
    assert result.dtype == dtype
    assert result.ravel().tolist() == [7.5]


def test_modes_and_images_that_do_not_exist():
    with pytest.raises(ValueError, match="mode is 'min'"):
        roi_align(IMAGE, f32([[0, 0, 1, 1]]), ZERO, mode="min")
    with pytest.raises(IndexError):
        roi_align(IMAGE, f32([[0, 0, 1, 1]]), ZERO + 1)


@pytest.mark.parametrize(
    ("transformation", "mode", "sampling_ratio"),
    [*itertools.product([None, "half_pixel", "output_half_pixel"], ["avg", "max"], [0, 2])],
)
def test_regions_as_onnxruntime(transformation, mode, sampling_ratio):
    x = np.random.default_rng(0).normal(size=(2, 3, 9, 8)).astype(np.float32)
    rois = f32([[0, 0, 7, 7], [5, 5, 4, 4], [-3, -2, 12, 15], [0.3, 0.7, 6.2, 5.1]])
    options = {"mode": mode, "sampling_ratio": sampling_ratio, "spatial_scale": 0.5}
    options |= {"output_height": 3, "output_width": 2}
    if transformation:
        options["coordinate_transformation_mode"] = transformation
    opset = 16 if transformation else 10
    assert_as_onnxruntime("RoiAlign", opset, [x, rois, np.array([0, 1, 0, 1])], options)
