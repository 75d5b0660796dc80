import numpy as np
import pytest

from foldline.kernels.recurrent_activations import named_activations

X = np.array([-2.0, -0.5, 0.0, 0.5, 2.0], np.float32)
EXPECTED = {
    "Relu": [0, 0, 0, 0.5, 2],
    "Tanh": np.tanh(X),
    "Sigmoid": 1 / (1 + np.exp(-X)),
    "Affine": X,
    "LeakyRelu": [-0.02, -0.005, 0, 0.5, 2],
    "ThresholdedRelu": [0, 0, 0, 0, 2],
    "ScaledTanh": np.tanh(X),
    "HardSigmoid": [0.1, 0.4, 0.5, 0.6, 0.9],
    "Elu": [np.expm1(-2), np.expm1(-0.5), 0, 0.5, 2],
    "Softsign": [-2 / 3, -1 / 3, 0, 1 / 3, 2 / 3],
    "Softplus": np.log1p(np.exp(X)),
}


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_defaults_and_case(name, dtype):
    for spelling in (name, name.upper(), name.lower()):
        ((function,),) = named_activations([spelling], None, None, ("Tanh",), 1)
        result = function(X.astype(dtype))
        assert result.dtype == dtype
        np.testing.assert_allclose(result, EXPECTED[name], rtol=1e-6, atol=1e-7)


def test_thresholded_relu_keeps_the_threshold():
    ((function,),) = named_activations(["ThresholdedRelu"], [0.5], None, ("Tanh",), 1)
    assert function(X).tolist() == [0, 0, 0, 0.5, 2]


def test_alphas_go_to_those_that_have_one():
    names = ["Sigmoid", "LeakyRelu", "Affine", "Tanh", "HardSigmoid", "Elu"]
    forward, backward = named_activations(names, [0.5, 2.0, 0.1], [3.0], ("a", "b", "c"), 2)
    assert forward[1](X).tolist() == [-1, -0.25, 0, 0.5, 2]
    assert forward[2](X).tolist() == (2 * X + 3).tolist()
    np.testing.assert_allclose(backward[1](X), 0.1 * X + 0.5, rtol=1e-6)  # beta by default
    np.testing.assert_allclose(backward[2](X), EXPECTED["Elu"], rtol=1e-6)  # alpha by default


def test_errors():
    with pytest.raises(ValueError, match="unknown activation 'Swish'"):
        named_activations(["Swish"], None, None, ("Tanh",), 1)
    with pytest.raises(ValueError, match="expected 2 for each direction"):
        named_activations(["Tanh"] * 3, None, None, ("Sigmoid", "Tanh"), 2)
