import numpy as np
import pytest

from foldline.kernels.optimisers import adagrad, adam, momentum


def number(value, dtype=np.float32):
    return np.array(value, dtype)


def vector(*values, dtype=np.float32):
    return np.array(values, dtype)


T0, T1 = np.array(0, np.int64), np.array(1, np.int64)


def test_adagrad():
    x, squares = adagrad(
        number(0.5), T1, vector(1, 2), vector(3, -8), vector(7, 0),
        decay_factor=1.0, epsilon=1.0, norm_coefficient=0.0,
    )  # fmt: skip
    assert squares.tolist() == [16, 64]
    np.testing.assert_allclose(x, [1 - 0.25 * 3 / 5, 2 + 0.25 * 8 / 9], rtol=1e-6)
    x, squares = adagrad(
        number(1), T0, vector(2), vector(1), vector(0), epsilon=0.0, norm_coefficient=0.5
    )
    assert (x.tolist(), squares.tolist()) == ([1], [4])


def test_adam():
    options = {"alpha": 0.5, "beta": 0.75, "epsilon": 0.0}
    tensors = vector(1), vector(2), vector(4), vector(8)
    x, mean, squares = adam(number(0.1), T0, *tensors, **options)
    assert (mean.tolist(), squares.tolist()) == ([3], [7])
    np.testing.assert_allclose(x, 1 - 0.1 * 3 / np.sqrt(7), rtol=1e-6)
    x, *_ = adam(number(0.1), T1, *tensors, norm_coefficient_post=0.25, **options)
    step = 0.1 * np.sqrt(1 - 0.75) / (1 - 0.5)
    np.testing.assert_allclose(x, 0.75 * (1 - step * 3 / np.sqrt(7)), rtol=1e-6)
    _, mean, _ = adam(number(0.1), T0, *tensors, norm_coefficient=2.0, **options)
    assert mean.tolist() == [0.5 * 4 + 0.5 * 4]


@pytest.mark.parametrize(
    ("mode", "count", "x", "velocity"),
    [("standard", T0, 7.5, 5), ("standard", T1, 6.5, 7), ("nesterov", T0, 7.75, 5),
     ("nesterov", T1, 7.25, 7)],
)  # fmt: skip
def test_momentum(mode, count, x, velocity):
    options = {"alpha": 0.5, "beta": 2.0, "norm_coefficient": 0.1, "mode": mode}
    result = momentum(number(0.5), count, vector(10), vector(1), vector(6), **options)
    # the gradient with its penalty is 2, scaled by beta from the second iteration on
    assert [r.tolist() for r in result] == [[x], [velocity]]


def test_many_tensors_keep_their_groups():
    a, b = vector(1, 2), np.array([[3.0]], np.float32)
    tensors = [a, b, a * 0 + 1, b * 0 + 2, a * 0 + 4, b * 0 + 5]
    options = {"alpha": 1.0, "beta": 1.0, "norm_coefficient": 0.0, "mode": "standard"}
    results = momentum(number(1), T1, *tensors, **options)
    assert [r.tolist() for r in results] == [[-4, -3], [[-4]], [5, 5], [[7]]]
    assert [r.shape for r in adagrad(number(1), T1, *tensors)] == [(2,), (1, 1)] * 2
    assert len(adam(number(1), T1, *tensors, a, b)) == 6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rate_type", [np.float32, np.float64])
def test_types_are_those_of_the_tensors(dtype, rate_type):
    tensors = [vector(value, dtype=dtype) for value in (1, 2, 3, 4)]
    rate = number(0.1, rate_type)
    options = {"alpha": 0.9, "beta": 0.1, "norm_coefficient": 0.0, "mode": "nesterov"}
    for results in (
        adagrad(rate, T1, *tensors[:3]),
        adam(rate, T1, *tensors),
        momentum(rate, T1, *tensors[:3], **options),
    ):
        assert {r.dtype for r in results} == {np.dtype(dtype)}


def test_scalars_are_arrays():
    for result in adagrad(number(1), T1, number(1), number(2), number(3)):
        assert type(result) is np.ndarray
        assert result.shape == ()


def test_no_bias_to_correct_is_infinite():
    x, *_ = adam(number(1), T1, vector(1), vector(1), vector(1), vector(1), alpha=1.0)
    assert x.tolist() == [-np.inf]


def test_errors():
    with pytest.raises(ValueError, match="4 tensors are not 3 for each"):
        adagrad(number(1), T1, *[vector(1)] * 4)
    with pytest.raises(ValueError, match="mode is 'other'"):
        momentum(
            number(1), T1, *[vector(1)] * 3, alpha=1.0, beta=1.0, norm_coefficient=0.0, mode="other"
        )
