"""Tiles of the fast Attention: sizes that need several, and threads. Values: test_attention."""

import numpy as np
import pytest

from foldline.kernels import attention_fast
from foldline.kernels.attention import attention_reference
from foldline.kernels.parallel import use_threads
from foldline.kernels.registry import Operand, aligned_bytes, compute, find_kernel

FAST = find_kernel("", "Attention", 25, ("fast",))


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


CASES = [{}, {"is_causal": 1}, {"left_window_size": 9}, {"left_window_size": 3, "is_causal": 1}]


@pytest.mark.parametrize("tile_bytes", [1, 20_000, 1 << 20])
@pytest.mark.parametrize("attributes", CASES)
def test_tiles_agree_with_the_reference(tile_bytes, attributes, monkeypatch):
    monkeypatch.setattr(attention_fast, "TILE_BYTES", tile_bytes)
    q, k, v = normal(2, 4, 70, 8), normal(2, 2, 90, 8, seed=1), normal(2, 2, 90, 5, seed=2)
    expected = attention_reference(q, k, v, **attributes)
    result = compute(FAST, [q, k, v], **attributes)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
    with use_threads(2):
        threaded = compute(FAST, [q, k, v], **attributes)
    assert threaded.tobytes() == result.tobytes()


def test_hidden_keys_are_not_read(monkeypatch):
    monkeypatch.setattr(attention_fast, "TILE_BYTES", 1)
    q, k, v = normal(1, 1, 64, 4), normal(1, 1, 64, 4, seed=1), normal(1, 1, 64, 4, seed=2)
    k[:, :, 32:] = np.nan
    result = compute(FAST, [q, k, v], is_causal=1)
    assert np.isfinite(result[:, :, :32]).all()
    assert np.isnan(result[:, :, 32:]).all()


def test_a_plan_runs_again_with_other_masks():
    q, k, v = normal(1, 2, 3, 4), normal(1, 2, 6, 4, seed=1), normal(1, 2, 6, 4, seed=2)
    operands = [Operand(x.shape, x.dtype) for x in (q, k, v)]
    step = FAST.function(*operands, Operand((3, 6), np.dtype(np.bool_)))
    scratch = aligned_bytes(step.scratch_bytes)
    for seed in (3, 4):
        mask = normal(3, 6, seed=seed) > -0.5
        result = step.run(q, k, v, mask, scratch=scratch)
        np.testing.assert_allclose(result, attention_reference(q, k, v, mask), rtol=1e-5, atol=1e-6)
