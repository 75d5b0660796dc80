import numpy as np
import pytest

from foldline.support.errors import KernelFailed
from tests.kernels.contrib import assert_close, both, normal, one_node, own_results

WITHOUT = [("Relu", []), ("Sigmoid", []), ("Tanh", []), ("", [])]
WITH = [("LeakyRelu", [0.2]), ("Clip", [-0.5, 0.75]), ("HardSigmoid", [0.3, 0.4])]


@pytest.mark.parametrize(("activation", "params"), WITHOUT + WITH)
@pytest.mark.parametrize("bias", [False, True])
def test_fused_conv_activations(activation, params, bias):
    attributes = {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}
    if activation:
        attributes["activation"] = activation
    if params:
        attributes["activation_params"] = params
    inputs = [normal(2, 4, 7, 6), normal(5, 4, 3, 3, seed=1)]
    inputs += [normal(5, seed=2)] if bias else []
    assert_close("FusedConv", inputs, attributes, tolerance=2e-5)


@pytest.mark.parametrize("bias", [False, True])
def test_fused_conv_sum(bias):
    inputs = [
        normal(1, 4, 8, 8),
        normal(6, 2, 3, 3, seed=1),
        normal(6, seed=2) if bias else None,
        normal(1, 6, 3, 3, seed=3),
    ]
    attributes = {"group": 2, "strides": [2, 2], "activation": "Relu"}
    assert_close("FusedConv", inputs, attributes, tolerance=2e-5)


def test_fused_conv_of_one_axis_and_auto_pad():
    attributes = {"auto_pad": "SAME_UPPER", "activation": "Relu"}
    assert_close(
        "FusedConv", [normal(1, 3, 11), normal(2, 3, 3, seed=1)], attributes, tolerance=2e-5
    )


def test_unknown_activation():
    inputs = [normal(1, 1, 3), normal(1, 1, 3, seed=1)]
    model = one_node("FusedConv", inputs, {"activation": "Sing"}, (True,), "com.microsoft", ())
    with pytest.raises(KernelFailed, match="unknown activation 'Sing'"):
        own_results(model, {"x0": inputs[0], "x1": inputs[1]})


GEMM = [
    *((name, {}) for name in ("Relu", "Sigmoid", "Tanh", "Softplus", "Softsign")),
    ("LeakyRelu", {"activation_alpha": 0.3}),
    ("Elu", {"activation_alpha": 0.7}),
    ("Selu", {"activation_alpha": 1.5, "activation_gamma": 1.1}),
    ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.45}),
    ("ThresholdedRelu", {"activation_alpha": 0.5}),
]


@pytest.mark.parametrize(("activation", "parameters"), GEMM)
def test_fused_gemm_activations(activation, parameters):
    inputs = [normal(3, 4), normal(4, 5, seed=1), normal(5, seed=2)]
    assert_close("FusedGemm", inputs, {"activation": activation, **parameters}, tolerance=1e-5)


@pytest.mark.parametrize("flags", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("constant", [(), (1, 2)])
def test_fused_gemm_factors(flags, constant):
    inputs = [normal(40, 7), normal(7, 5, seed=1)]
    inputs = [x.T.copy() if flag else x for x, flag in zip(inputs, flags, strict=True)]
    attributes = {"activation": "Relu", "transA": flags[0], "transB": flags[1]}
    attributes |= {"alpha": 0.5, "beta": 2.0}
    inputs.append(normal(40, 5, seed=2))
    assert_close("FusedGemm", inputs, attributes, constant=constant, tolerance=1e-5)


SHAPES = [
    ((2, 3, 4), (2, 4, 5), 0, 0, 0, 0),
    ((2, 4, 3), (2, 4, 5), 1, 0, 0, 0),
    ((2, 3, 4), (2, 5, 4), 0, 1, 0, 0),
    ((2, 1, 3, 4), (6, 5, 4), 0, 1, 0, 0),
    ((3, 2, 4), (2, 4, 5), 0, 0, 1, 0),
    ((4, 2, 3), (2, 4, 5), 1, 0, 1, 0),
    ((3, 2, 6, 4), (4, 2, 6, 5), 0, 0, 1, 1),
    ((3, 2, 6, 4), (5, 2, 6, 4), 0, 1, 1, 1),
    ((7, 4), (4, 5), 0, 0, 0, 0),
    ((4,), (4, 5), 0, 0, 0, 0),
    ((3, 4), (4,), 0, 0, 0, 0),
]


@pytest.mark.parametrize(("a", "b", "trans_a", "trans_b", "batch_a", "batch_b"), SHAPES)
@pytest.mark.parametrize("constant", [(), (1,)])
def test_fused_matmul(a, b, trans_a, trans_b, batch_a, batch_b, constant):
    attributes = {"alpha": 0.25, "transA": trans_a, "transB": trans_b}
    attributes |= {"transBatchA": batch_a, "transBatchB": batch_b}
    inputs = [normal(*a), normal(*b, seed=1)]
    assert_close("FusedMatMul", inputs, attributes, constant=constant, tolerance=1e-5)


def test_transpose_matmul():
    inputs = [normal(4, 3), normal(5, 4, seed=1)]
    assert_close("TransposeMatMul", inputs, {"transA": 1, "transB": 1}, tolerance=1e-5)


def test_fused_matmul_of_vectors_is_an_array():
    expected, actual = both("FusedMatMul", [normal(4), normal(4, seed=1)], {"alpha": 2.0})
    assert type(actual[0]) is np.ndarray
    np.testing.assert_allclose(actual[0], expected[0], rtol=1e-6)


def test_float16_is_rounded_once():
    a, b = normal(3, 64, dtype=np.float16), normal(64, 3, seed=1, dtype=np.float16)
    model = one_node("FusedMatMul", [a, b], {"alpha": 0.3}, (True,), "com.microsoft", ())
    expected = (a.astype(np.float32) @ b.astype(np.float32) * np.float32(0.3)).astype(np.float16)
    np.testing.assert_array_equal(own_results(model, {"x0": a, "x1": b})[0], expected)
