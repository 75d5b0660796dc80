"""GridSample and AffineGrid: values by hand, and every mode against ONNX Runtime."""

import itertools

import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.grid_sample import affine_grid, grid_sample
from tests.kernels.one_node import assert_as_onnxruntime

LINE = np.array([1, 2, 4, 8], np.float32)


def along_a_line(positions, x=LINE, **options):
    """Sample a signal of one channel at normalised positions."""
    grid = np.array(positions, np.float32).reshape(1, -1, 1)
    return grid_sample(x.reshape(1, 1, -1), grid, **options)[0, 0].tolist()


def test_positions_without_and_with_align_corners():
    assert along_a_line([-0.75, -0.25, 0.25, 0.75, 0]) == [1, 2, 4, 8, 3]
    assert along_a_line([-1, -1 / 3, 1 / 3, 1, 0], align_corners=1) == [1, 2, 4, 8, 3]


@pytest.mark.parametrize(
    ("padding_mode", "align_corners", "expected"),
    [
        ("zeros", 0, [0, 0.5, 4, 0]),
        ("border", 0, [1, 1, 8, 8]),
        ("reflection", 0, [3, 1, 8, 3]),
        ("reflection", 1, [4, 1, 8, 4]),
    ],
)
def test_padding_modes(padding_mode, align_corners, expected):
    positions = [-7 / 3, -1, 1, 5 / 3] if align_corners else [-2, -1, 1, 2]
    result = along_a_line(positions, padding_mode=padding_mode, align_corners=align_corners)
    assert result == pytest.approx(expected, abs=1e-5)


def test_nearest_rounds_ties_to_even_and_copies_any_dtype():
    words = np.array(["a", "b", "c", "d"], object)
    assert along_a_line([-0.5, 0, 0.5, 3], words, mode="nearest") == ["a", "c", "c", ""]
    assert along_a_line([0.25], np.array([0, 0, 7, 0], np.int64), mode="nearest") == [7]
    numbers = LINE.astype(np.complex64) * 1j
    assert along_a_line([0.25], numbers, mode="nearest") == [4j]


def test_integers_are_cut_and_saturate():
    bytes_ = np.array([0, 255, 255, 0], np.uint8)
    assert along_a_line([-0.6, 0], bytes_) == [76, 255]
    assert along_a_line([0], bytes_, mode="cubic") == [255]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_float_types_are_kept(dtype):
    x = LINE.astype(dtype).reshape(1, 1, 1, 4)
    grid = np.array([[[[0, 0], [0.5, 0]]]], dtype)
    result = grid_sample(x, grid)
    assert result.dtype == dtype
    assert result[0, 0, 0].tolist() == [3, 6]


def test_positions_that_are_not_finite():
    assert along_a_line([np.inf, -np.inf], padding_mode="border") == [8, 1]
    assert along_a_line([np.inf, np.nan], mode="nearest") == [0, 0]
    assert np.isnan(along_a_line([np.nan])).all()


def test_values_that_are_not_finite_do_not_leak_from_outside():
    assert along_a_line([-1], np.array([2, np.inf], np.float32)) == [1]


def test_nothing_to_sample():
    x = np.zeros((1, 2, 4, 4), np.float32)
    assert grid_sample(x, np.zeros((1, 0, 3, 2), np.float32)).shape == (1, 2, 0, 3)
    empty = grid_sample(x[:, :, :0], np.zeros((1, 2, 3, 2), np.float32))
    assert empty.tolist() == np.zeros((1, 2, 2, 3)).tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "quintic"}, "mode is 'quintic'"),
        ({"padding_mode": "wrap"}, "padding_mode is 'wrap'"),
    ],
)
def test_unknown_modes_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        along_a_line([0], **options)


def test_strings_cannot_be_interpolated_and_ranks_must_fit():
    with pytest.raises(ValueError, match="on object"):
        along_a_line([0], np.array(["a", "b"], object))
    with pytest.raises(ValueError, match="does not fit"):
        grid_sample(LINE.reshape(1, 1, 2, 2), np.zeros((1, 1, 3), np.float32))


MODES = {16: ["nearest", "bilinear", "bicubic"], 20: ["nearest", "linear", "cubic"]}


@pytest.mark.parametrize(
    ("opset", "rank", "mode", "padding_mode", "align_corners"),
    [
        case
        for opset, rank in ((16, 2), (20, 2), (20, 3))
        for case in itertools.product(
            [opset], [rank], MODES[opset], ["zeros", "border", "reflection"], [0, 1]
        )
        if (rank, case[2]) != (3, "cubic")  # which the runtime does not have
    ],
)
def test_as_onnxruntime(opset, rank, mode, padding_mode, align_corners):
    rng = np.random.default_rng(rank)
    dtype = np.float64 if (opset, mode) == (20, "cubic") else np.float32
    x = rng.normal(size=(2, 3, 5, 4, 6)[: 2 + rank]).astype(dtype)
    grid = (rng.normal(size=(*(2, 3, 4, 5)[: 1 + rank], rank)) * 1.5).astype(dtype)
    options = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
    assert_as_onnxruntime("GridSample", opset, [x, grid], options, tolerance=1e-4)


def test_affine_grid_of_the_identity_lists_the_innermost_coordinate_first():
    theta = np.array([[[1, 0, 0], [0, 1, 0]]], np.float32)
    grid = affine_grid(theta, np.array([1, 1, 2, 4]))
    assert grid[0, 1, :, 0].tolist() == [-0.75, -0.25, 0.25, 0.75]
    assert grid[0, :, 0, 1].tolist() == [-0.5, 0.5]
    aligned = affine_grid(theta, np.array([1, 1, 1, 3]), align_corners=1)
    assert aligned.tolist() == [[[[-1, 0], [0, 0], [1, 0]]]]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_affine_grid_in_space(dtype):
    theta = np.array([[[0, 0, 2, 1], [1, 0, 0, 0], [0, 1, 0, -1]]], dtype)
    grid = affine_grid(theta, np.array([1, 1, 2, 1, 1]))
    assert grid.dtype == dtype
    assert grid[0, :, 0, 0].tolist() == [[0, 0, -1], [2, 0, -1]]


def test_sampling_at_the_grid_of_the_identity_changes_nothing():
    x = np.random.default_rng(1).normal(size=(2, 3, 4, 5)).astype(np.float32)
    theta = np.tile(np.eye(2, 3, dtype=np.float32), (2, 1, 1))
    for align_corners in (0, 1):
        grid = affine_grid(theta, np.array(x.shape), align_corners=align_corners)
        again = grid_sample(x, grid, align_corners=align_corners)
        np.testing.assert_allclose(again, x, atol=1e-5)
