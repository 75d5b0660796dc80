"""The fused activations against the operators that they stand for."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from foldline.kernels.registry import compute, find_kernel
from tests.kernels.expansion import of_expansion

DTYPES = [np.float32, np.float64, np.float16]
OPERATORS = [
    ("Gelu", {"approximate": "none"}),
    ("Gelu", {"approximate": "tanh"}),
    ("Swish", {"alpha": 1.0}),
    ("Swish", {"alpha": 1.5}),
    ("HardSwish", {}),
    ("Mish", {}),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("op_type", "attributes"), OPERATORS)
def test_within_2_eps_of_x_of_the_expansion(
    op_type: str, attributes: dict[str, object], dtype: npt.DTypeLike
):
    kernel = find_kernel("foldline", op_type, 1)
    assert kernel is not None
    x = np.linspace(-9, 9, 601).astype(dtype)
    found = compute(kernel, [x], **attributes)
    # As an attribute 1/6 is float32, so that the parts of HardSwish are no better than that.
    eps = np.finfo(np.float32 if op_type == "HardSwish" and dtype == np.float64 else x.dtype).eps
    wanted = of_expansion(op_type, [x], attributes)
    assert found.dtype == wanted.dtype == x.dtype
    error = np.abs(found.astype(np.float64) - wanted.astype(np.float64))
    steps = 6 if dtype == np.float16 else 2
    assert (error <= steps * float(eps) * np.maximum(np.abs(x.astype(np.float64)), 1e-4)).all()


@pytest.mark.parametrize(("op_type", "attributes"), OPERATORS)
def test_special_values(op_type: str, attributes: dict[str, object]):
    kernel = find_kernel("foldline", op_type, 1)
    assert kernel is not None
    x = np.array([np.inf, np.nan, 0.0, -0.0, 1e-45, -np.inf], np.float32)
    found = compute(kernel, [x], **attributes)
    assert found[0] == np.inf
    assert np.isnan(found[1])
    np.testing.assert_array_equal(np.signbit(found[2:5]), [False, True, False])
    assert abs(found[4]) <= 1e-45
    assert found[5] == 0 if op_type == "Mish" else np.isnan(found[5])


@pytest.mark.parametrize(("op_type", "attributes"), OPERATORS)
def test_same_bits_as_the_operator_of_onnx(op_type: str, attributes: dict[str, object]):
    ours, theirs = find_kernel("foldline", op_type, 1), find_kernel("", op_type, 24)
    assert ours is not None
    assert theirs is not None
    for dtype in (*DTYPES, ml_dtypes.bfloat16):
        x = np.linspace(-9, 9, 97).astype(dtype)
        a, b = compute(ours, [x], **attributes), compute(theirs, [x], **attributes)
        np.testing.assert_array_equal(a.view(np.uint8), b.view(np.uint8))


@pytest.mark.parametrize("shape", [(), (0, 3), (2, 0)])
def test_scalars_and_zero_size(shape: tuple[int, ...]):
    for op_type, attributes in OPERATORS:
        kernel = find_kernel("foldline", op_type, 1)
        assert kernel is not None
        found = compute(kernel, [np.zeros(shape, np.float32)], **attributes)
        assert found.shape == shape
        assert isinstance(found, np.ndarray)
