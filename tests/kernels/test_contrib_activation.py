import numpy as np
import pytest

from tests.kernels.contrib import assert_close, normal, one_node, own_results

EXTREME = np.array([-np.inf, -100, -20, -3, -1e-3, -0.0, 0.0, 1e-3, 3, 20, 100, np.inf], np.float32)


@pytest.mark.parametrize("op_type", ["Gelu", "FastGelu", "QuickGelu"])
def test_of_one_input(op_type):
    assert_close(op_type, [10 * normal(3, 50)])


@pytest.mark.parametrize("op_type", ["Gelu", "FastGelu", "QuickGelu"])
def test_extremes(op_type):
    (y,) = own_results(
        one_node(op_type, [EXTREME], {}, (True,), "com.microsoft", ()), {"x0": EXTREME}
    )
    assert y[-1] == np.inf
    assert np.isnan(y[0])
    assert y[5:7].tolist() == [0, 0]
    assert y[9:11].tolist() == [20, 100]
    assert y[1] == 0


@pytest.mark.parametrize("alpha", [1.0, 1.702, -0.5])
def test_quick_gelu_alpha(alpha):
    assert_close("QuickGelu", [normal(4, 5)], {"alpha": alpha})


@pytest.mark.parametrize("op_type", ["BiasGelu", "FastGelu"])
def test_bias(op_type):
    assert_close(op_type, [normal(2, 3, 8), normal(8, seed=1)])


@pytest.mark.parametrize("op_type", ["Gelu", "FastGelu", "QuickGelu", "BiasGelu"])
def test_float16_is_rounded_once(op_type):
    x = normal(4, 16, dtype=np.float16)
    inputs = [x, np.zeros(16, np.float16)] if op_type == "BiasGelu" else [x]
    wide = [a.astype(np.float32) for a in inputs]
    narrow, expected = (
        own_results(
            one_node(op_type, given, {}, (True,), "com.microsoft", ()),
            {f"x{i}": a for i, a in enumerate(given)},
        )[0]
        for given in (inputs, wide)
    )
    np.testing.assert_array_equal(narrow, expected.astype(np.float16))
