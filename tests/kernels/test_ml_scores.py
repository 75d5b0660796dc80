import numpy as np
import pytest

from foldline.kernels.ml_scores import class_labels, feature_rows, transformed, two_scores

SCORES = np.array([[0.5, 0.25, 0.0], [-1.0, 2.0, 0.5]], np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        ("NONE", [0.5, 0.25, 0]),
        ("LOGISTIC", [0.622459, 0.562177, 0.5]),
        ("SOFTMAX", [0.419229, 0.326496, 0.254275]),
        ("SOFTMAX_ZERO", [0.562177, 0.437823, 0]),
        ("PROBIT", [0, -0.674, -np.inf]),
    ],
)
def test_transforms(transform, expected, dtype):
    with np.errstate(all="ignore"):
        result = transformed(SCORES.astype(dtype), transform)
    assert result.dtype == dtype
    assert result[0].tolist() == pytest.approx(
        expected, abs=1e-3 if transform == "PROBIT" else 1e-6
    )


def test_great_scores_do_not_overflow():
    with np.errstate(over="raise", invalid="raise"):
        great = np.array([[1000, -1000]], np.float32)
        assert transformed(great, "LOGISTIC").tolist() == [[1, 0]]
        assert transformed(great, "SOFTMAX").tolist() == [[1, 0]]
        assert transformed(great, "SOFTMAX_ZERO").tolist() == [[1, 0]]


def test_a_single_score_takes_probit_only():
    one = np.array([[0.75]], np.float32)
    for transform in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"):
        assert transformed(one, transform).tolist() == [[0.75]]
    assert transformed(one, "PROBIT")[0, 0] == pytest.approx(0.674, abs=1e-3)
    with pytest.raises(ValueError, match="SIGMOID"):
        transformed(one, "SIGMOID")


def test_two_scores_of_one():
    score = np.array([0.25, -1], np.float32)
    assert two_scores(score, "NONE", mirrored=True).tolist() == [[-0.25, 0.25], [1, -1]]
    assert two_scores(score, "SOFTMAX", mirrored=False).tolist() == [[0.75, 0.25], [2, -1]]
    both = two_scores(score, "LOGISTIC", mirrored=False)
    assert both.sum(axis=1).tolist() == [1, 1]
    assert both[0, 1] == pytest.approx(0.562177)


def test_rows_and_labels():
    assert feature_rows(np.arange(3)).shape == (1, 3)
    assert feature_rows(np.arange(3)).dtype == np.float32
    assert feature_rows(np.zeros((2, 3))).dtype == np.float64
    assert class_labels((3, 4), None).dtype == np.int64
    assert class_labels((), ("a",)).tolist() == ["a"]
    for ints, strings in ((None, None), ((1,), ("a",))):
        with pytest.raises(ValueError, match="exactly one"):
            class_labels(ints, strings)
