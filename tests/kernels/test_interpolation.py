import numpy as np
import pytest

from foldline.kernels.interpolation import (
    SOURCE_POSITION,
    Line,
    Taps,
    nearest_taps,
    resample,
    weighted_taps,
)


def line(size, count, roi=(0.0, 1.0)):
    return Line(size, count, count / size, float(count), roi)


@pytest.mark.parametrize(
    ("transformation", "expected"),
    [
        ("half_pixel", [-0.25, 0.25, 0.75, 1.25]),
        ("half_pixel_symmetric", [-0.25, 0.25, 0.75, 1.25]),
        ("pytorch_half_pixel", [-0.25, 0.25, 0.75, 1.25]),
        ("align_corners", [0, 1 / 3, 2 / 3, 1]),
        ("asymmetric", [0, 0.5, 1, 1.5]),
        ("tf_half_pixel_for_nn", [0.25, 0.75, 1.25, 1.75]),
        ("tf_crop_and_resize", [0, 1 / 3, 2 / 3, 1]),
    ],
)
def test_source_positions_of_two_elements_doubled(transformation, expected):
    positions = SOURCE_POSITION[transformation](np.arange(4.0), line(2, 4))
    assert np.allclose(positions, expected)


@pytest.mark.parametrize(
    ("transformation", "expected"),
    [
        ("half_pixel", 2),
        ("pytorch_half_pixel", 0),
        ("align_corners", 0),
        ("asymmetric", 0),
        ("tf_crop_and_resize", 2.2),
    ],
)
def test_source_position_of_a_single_element(transformation, expected):
    position = SOURCE_POSITION[transformation](np.arange(1.0), line(5, 1, (0.2, 0.9)))
    assert np.allclose(position, [expected])


def test_symmetric_positions_keep_the_centre_when_the_width_was_cut():
    cut = Line(5, 2, 0.5, 2.5)
    positions = SOURCE_POSITION["half_pixel_symmetric"](np.arange(2.0), cut)
    assert np.allclose(positions, [1, 3])
    assert np.allclose(SOURCE_POSITION["half_pixel"](np.arange(2.0), cut), [0.5, 2.5])


def test_aligned_corners_use_the_width_before_it_was_cut():
    positions = SOURCE_POSITION["align_corners"](np.arange(2.0), Line(4, 2, 0.6, 2.4))
    assert np.allclose(positions, [0, 3 / 1.4])


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("round_prefer_floor", [0, 0, 1, 1]),
        ("round_prefer_ceil", [0, 1, 1, 1]),
        ("floor", [0, 0, 1, 1]),
        ("ceil", [0, 1, 1, 1]),
    ],
)
def test_nearest_modes_at_halves(mode, expected):
    taps = nearest_taps(line(2, 4), "asymmetric", mode)
    assert taps.weights is None
    assert taps.index[:, 0].tolist() == expected


def test_nearest_finds_integers_again_when_the_scale_was_rounded():
    taps = nearest_taps(Line(10, 6, float(np.float32(0.6)), 6.0), "asymmetric", "floor")
    assert taps.index[:, 0].tolist() == [0, 1, 3, 5, 6, 8]


def test_linear_and_cubic_weights():
    linear = weighted_taps(line(2, 4), "half_pixel", "linear", -0.75, False, False)
    assert linear.index.tolist() == [[0, 0], [0, 1], [0, 1], [1, 1]]
    assert linear.weights is not None
    assert np.allclose(linear.weights, [[0.25, 0.75], [0.75, 0.25], [0.25, 0.75], [0.75, 0.25]])
    cubic = weighted_taps(line(4, 8), "asymmetric", "cubic", -0.5, False, False)
    assert cubic.weights is not None
    assert np.allclose(cubic.weights[0], [0, 1, 0, 0])
    assert np.allclose(cubic.weights[1], [-0.0625, 0.5625, 0.5625, -0.0625])
    assert cubic.index[1].tolist() == [0, 0, 1, 2]


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("inner_only", [False, True])
def test_weights_add_up_to_one(mode, antialias, inner_only):
    for count in (3, 20):
        taps = weighted_taps(line(9, count), "half_pixel", mode, -0.75, antialias, inner_only)
        assert taps.weights is not None
        assert np.allclose(taps.weights.sum(1), 1)


def test_inner_only_gives_no_weight_to_taps_outside():
    taps = weighted_taps(line(3, 6), "half_pixel", "cubic", -0.75, False, True)
    assert taps.weights is not None
    assert taps.weights[0, :2].tolist() == [0, 0]


def test_antialias_of_a_halved_line_is_a_triangle():
    taps = weighted_taps(line(8, 4), "half_pixel", "linear", -0.75, True, False)
    assert taps.weights is not None
    inner = taps.weights[1]
    assert np.allclose(inner[inner > 0], [0.125, 0.375, 0.375, 0.125])


def test_positions_outside_are_marked_for_cropping_only():
    cropped = nearest_taps(line(3, 3, (-0.5, 1.0)), "tf_crop_and_resize", "floor")
    assert cropped.outside is not None
    assert cropped.outside.tolist() == [True, False, False]
    inside = nearest_taps(line(3, 3), "tf_crop_and_resize", "floor")
    assert inside.outside is None
    assert nearest_taps(line(3, 6), "half_pixel", "floor").outside is None


def test_resample_does_not_read_taps_without_weight():
    taps = Taps(np.array([[0, 1], [1, 2]]), np.array([[1.0, 0.0], [0.5, 0.5]]))
    x = np.array([[1, np.inf, 3]], np.float32)
    assert resample(x, 1, taps).tolist() == [[1, np.inf]]
    assert resample(x.T, 0, taps).tolist() == [[1], [np.inf]]
    assert resample(x, 1, taps).dtype == np.float32
