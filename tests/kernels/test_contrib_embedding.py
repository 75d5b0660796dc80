import numpy as np
import pytest

from tests.kernels.contrib import assert_close, integers, normal, scalar


def embedding_inputs(segments, mask, positions):
    random = np.random.default_rng(0)
    return [
        random.integers(0, 20, (2, 5)).astype(np.int32),
        random.integers(0, 2, (2, 5)).astype(np.int32) if segments else None,
        normal(20, 8),
        normal(9, 8, seed=1),
        normal(2, 8, seed=2) if segments else None,
        normal(8, seed=3),
        normal(8, seed=4),
        np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32) if mask else None,
        random.integers(0, 9, positions).astype(np.int32) if positions else None,
    ]


@pytest.mark.parametrize("segments", [True, False])
@pytest.mark.parametrize("mask", [True, False])
@pytest.mark.parametrize("positions", [None, (2, 5), (1, 5)])
def test_embed_layer_normalization(segments, mask, positions):
    inputs = embedding_inputs(segments, mask, positions)
    assert_close("EmbedLayerNormalization", inputs, outputs=3, tolerance=1e-5)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("segments", [True, False])
@pytest.mark.parametrize("mask", [True, False])
def test_quantised_embed_layer_normalization(dtype, segments, mask):
    ids, kinds, *_, given = embedding_inputs(segments, mask, None)[:8]
    shapes = [(20, 8), (9, 8), (2, 8), (8,), (8,)]
    tables = [integers(*shape, dtype=dtype, seed=i) for i, shape in enumerate(shapes)]
    scales = [scalar(0.01 * (i + 1)) for i in range(5)]
    zeros = [scalar(10 * i, dtype) for i in range(5)]
    if not segments:
        tables[2] = scales[2] = zeros[2] = None
    inputs = [ids, kinds, *tables, given, *scales, *zeros]
    attributes = {"epsilon": 1e-3}
    assert_close("QEmbedLayerNormalization", inputs, attributes, outputs=2, tolerance=1e-5)
