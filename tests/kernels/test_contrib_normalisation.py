import numpy as np
import pytest

from foldline.kernels.registry import compute, find_kernel
from tests.kernels.contrib import (
    assert_close,
    both,
    normal,
    one_node,
    own_results,
)

OUTPUTS = [1, 4, (True, False, False, True), (True, False, True)]


@pytest.mark.parametrize("outputs", OUTPUTS)
@pytest.mark.parametrize(("beta", "bias"), [(True, True), (False, True), (True, False)])
def test_skip_layer_normalization(beta, bias, outputs):
    inputs = [normal(2, 5, 8), normal(2, 5, 8, seed=1), normal(8, seed=2)]
    inputs += [normal(8, seed=3) if beta else None, normal(8, seed=4) if bias else None]
    _compare_asked("SkipLayerNormalization", inputs, {"epsilon": 1e-3}, outputs)


@pytest.mark.parametrize("skip", [(1, 5, 8), (5, 8)])
def test_skip_broadcasts(skip):
    inputs = [normal(2, 5, 8), normal(*skip, seed=1), normal(8, seed=2), normal(8, seed=3)]
    assert_close("SkipLayerNormalization", inputs, tolerance=1e-5)
    assert_close("SkipSimplifiedLayerNormalization", inputs[:3], tolerance=1e-5)


@pytest.mark.parametrize("outputs", [1, (True, False, False, True)])
@pytest.mark.parametrize("bias", [False, True])
def test_skip_simplified_layer_normalization(bias, outputs):
    inputs = [normal(2, 5, 8), normal(2, 5, 8, seed=1), normal(8, seed=2)]
    inputs += [normal(8, seed=4)] if bias else []
    _compare_asked("SkipSimplifiedLayerNormalization", inputs, {"epsilon": 1e-3}, outputs)


def _compare_asked(op_type, inputs, attributes, outputs):
    """ONNX Runtime leaves the statistics unwritten: they are checked by what they mean."""
    expected, actual = both(op_type, inputs, attributes, outputs=outputs)
    asked = (True,) * outputs if isinstance(outputs, int) else outputs
    total = inputs[0] + inputs[1] + (0 if len(inputs) < 4 or inputs[-1] is None else inputs[-1])
    if op_type == "SkipLayerNormalization" and len(inputs) == 5 and inputs[4] is None:
        total = inputs[0] + inputs[1]
    mean = total.mean(axis=-1, keepdims=True)
    statistics = {1: mean, 2: 1 / np.sqrt(total.var(axis=-1, keepdims=True) + np.float32(1e-3))}
    positions = [i for i, wanted in enumerate(asked) if wanted]
    for position, wanted, own in zip(positions, expected, actual, strict=True):
        wanted = statistics.get(position, wanted)
        np.testing.assert_allclose(own, wanted, rtol=1e-5, atol=1e-5)


def test_skip_simplified_statistics():
    inputs = [normal(2, 5, 8), normal(2, 5, 8, seed=1), normal(8, seed=2)]
    op_type = "SkipSimplifiedLayerNormalization"
    model = one_node(op_type, inputs, {}, (True,) * 3, "com.microsoft", ())
    _, mean, inverse = own_results(model, {f"x{i}": x for i, x in enumerate(inputs)})
    assert not mean.any()
    squares = ((inputs[0] + inputs[1]) ** 2).mean(axis=-1, keepdims=True)
    np.testing.assert_allclose(inverse, 1 / np.sqrt(squares), rtol=1e-6)


@pytest.mark.parametrize("op_type", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
def test_float16_is_rounded_once(op_type):
    halves = [normal(2, 3, 16, dtype=np.float16), normal(2, 3, 16, seed=1, dtype=np.float16)]
    halves.append(normal(16, seed=2, dtype=np.float16))
    asked = (True, False, False, True)
    results = []
    for inputs in (halves, [x.astype(np.float32) for x in halves]):
        model = one_node(op_type, inputs, {}, asked, "com.microsoft", ())
        results.append(own_results(model, {f"x{i}": x for i, x in enumerate(inputs)}))
    for narrow, wide in zip(*results, strict=True):
        assert narrow.dtype == np.float16
        np.testing.assert_array_equal(narrow, wide.astype(np.float16))


@pytest.mark.parametrize("outputs", [1, 2])
def test_simplified_layer_normalization_stashed_in_double(outputs):
    # Of which the runtime has no kernel.
    entry = find_kernel("", "SimplifiedLayerNormalization", 1)
    x, scale = np.float32([[1e30, 2e30]]), np.float32([1, 2])  # in float32 their squares overflow
    results = compute(entry, (x, scale), stash_type=11, output_count=outputs)
    y, *inverse = results if outputs == 2 else [results]
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, np.array([[1, 4]]) / np.sqrt(2.5), rtol=1e-6)
    for statistic in inverse:
        assert statistic.dtype == np.float64
        np.testing.assert_allclose(statistic, 1e-30 / np.sqrt(2.5), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("axis", [-1, 1])
def test_simplified_layer_normalization(dtype, outputs, axis):
    x = normal(2, 3, 8, dtype=dtype)
    scale = normal(*x.shape[axis:], seed=1, dtype=dtype)
    tolerance = 2e-3 if dtype == np.float16 else 5e-6
    attributes = {"axis": axis, "epsilon": 1e-3}
    assert_close(
        "SimplifiedLayerNormalization",
        [x, scale],
        attributes,
        outputs=outputs,
        domain="",
        tolerance=tolerance,
    )


@pytest.mark.parametrize("outputs", [1, 3])
def test_layer_normalization_before_it_was_in_onnx(outputs):
    inputs = [normal(2, 3, 8), normal(8, seed=1), normal(8, seed=2)]
    assert_close(
        "LayerNormalization", inputs, {"axis": -1}, outputs=outputs, domain="", tolerance=1e-5
    )
