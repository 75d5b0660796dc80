import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.dropout import dropout, dropout_6, dropout_7, dropout_10
from foldline.kernels.registry import find_kernel

FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64, ml_dtypes.float8_e4m3fn]


@pytest.mark.parametrize("dtype", FLOATS)
def test_inference_is_a_view(dtype):
    x = np.arange(6).reshape(2, 3).astype(dtype)
    for function, keywords, mask_dtype in (
        (dropout_6, {"is_test": 1}, dtype),
        (dropout_7, {}, dtype),
        (dropout_10, {}, np.bool_),
        (dropout, {}, np.bool_),
    ):
        result, mask = function(x, **keywords)
        assert result is x
        assert mask.dtype == mask_dtype
        assert (mask == 1).all()
        assert function(x, output_count=1, **keywords) is x
    for version in (6, 7, 10, 12, 13, 22):
        assert find_kernel("", "Dropout", version).view


def test_training_mode_must_be_true_and_the_ratio_not_zero():
    x = np.ones(100)
    assert dropout(x, np.float32(0.5), np.bool_(False))[0] is x
    assert dropout(x, np.float32(0), np.bool_(True))[0] is x
    assert dropout(x, None, None, seed=1)[0] is x
    assert not dropout(x, None, np.bool_(True))[1].all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_training(dtype):
    x = np.ones((100, 100), dtype)
    result, mask = dropout(x, np.float32(0.75), np.bool_(True), seed=3)
    assert result.dtype == dtype
    assert mask.dtype == np.bool_
    assert 0.22 < mask.mean() < 0.28
    np.testing.assert_array_equal(result.astype(float), np.where(mask, 4.0, 0.0))


def test_a_seed_fixes_the_mask():
    x = np.ones(50)
    first, again, other = (
        dropout(x, None, np.bool_(True), seed=seed)[1].tolist() for seed in (7, 7, 8)
    )
    assert first == again != other
    assert dropout(x, None, np.bool_(True), seed=-1)[1].any()
    state = np.random.get_state()[1].tolist()
    dropout(x, None, np.bool_(True), seed=7)
    assert np.random.get_state()[1].tolist() == state


def test_dropped_values_are_zero_whatever_they_were():
    x = np.full(64, np.inf, np.float32)
    result, mask = dropout(x, np.float32(0.5), np.bool_(True), seed=0)
    assert (result[~mask] == 0).all()
    assert np.isposinf(result[mask]).all()
    everything, none = dropout(x, np.float32(1), np.bool_(True), seed=0)
    assert (everything == 0).all()
    assert not none.any()


def test_old_versions_train_by_default():
    x = np.ones(1000, np.float32)
    result, mask = dropout_6(x)
    assert mask.dtype == np.float32
    np.testing.assert_array_equal(result, 2 * mask)
    assert 400 < mask.sum() < 600
    result, mask = dropout_6(x, ratio=0.75)
    np.testing.assert_array_equal(result, 4 * mask)
    assert 200 < mask.sum() < 300
