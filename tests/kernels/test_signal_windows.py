import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.signal_windows import (
    blackman_window,
    hamming_window,
    hann_window,
    mel_weight_matrix,
)
from tests.kernels.one_node import assert_as_onnxruntime


def test_four_steps():
    size = np.array(4, np.int32)
    assert hann_window(size).tolist() == pytest.approx([0, 0.5, 1, 0.5])
    assert hamming_window(size).tolist() == pytest.approx([4 / 46, 25 / 46, 1, 25 / 46])
    assert blackman_window(size).tolist() == pytest.approx([0, 0.34, 1, 0.34], abs=1e-7)


def test_a_symmetric_window_ends_as_it_begins():
    window = hann_window(np.array(5), periodic=0)
    assert window.tolist() == pytest.approx([0, 0.5, 1, 0.5, 0])
    assert np.array_equal(window[:4], hann_window(np.array(4)))


def test_sizes_zero_and_one():
    assert hann_window(np.array(0)).shape == (0,)
    assert hann_window(np.array(0), periodic=0).shape == (0,)
    assert hann_window(np.array(1)).tolist() == [0]
    assert np.isnan(hann_window(np.array(1), periodic=0)).tolist() == [True]


@pytest.mark.parametrize(
    ("code", "dtype"),
    [(1, np.float32), (10, np.float16), (11, np.float64), (16, ml_dtypes.bfloat16)],
)
def test_output_types(code, dtype):
    result = hann_window(np.array(4), output_datatype=code)
    assert result.dtype == dtype
    assert result.astype(np.float64).tolist() == pytest.approx([0, 0.5, 1, 0.5])
    cut = hann_window(np.array(6), output_datatype=6)
    assert cut.dtype == np.int32
    assert cut.tolist() == [0, 0, 0, 1, 0, 0]


@pytest.mark.parametrize("name", ["HannWindow", "HammingWindow", "BlackmanWindow"])
@pytest.mark.parametrize("periodic", [0, 1])
@pytest.mark.parametrize("code", [1, 11])
def test_as_onnxruntime(name, periodic, code):
    options = {"periodic": periodic, "output_datatype": code}
    assert_as_onnxruntime(name, 17, [np.array(10)], options)


def mel(*values, code=1):
    bins, length, rate, low, high = values
    edges = np.array(low, np.float32), np.array(high, np.float32)
    return mel_weight_matrix(
        np.array(bins), np.array(length), np.array(rate), *edges, output_datatype=code
    )


def test_mel_triangles_have_peak_one_and_touch():
    weights = mel(8, 64, 16000, 0, 8000)
    assert weights.dtype == np.float32
    assert weights.shape == (33, 8)
    assert weights.max(axis=0).tolist() == [1] * 8
    assert weights.min() == 0
    peaks = weights.argmax(axis=0)
    assert (np.diff(peaks) > 0).all()
    # Between two peaks, one triangle falls as the next one rises.
    assert np.allclose(weights[peaks[0] : peaks[-1]].sum(axis=1), 1)


def test_mel_frequencies_beyond_the_spectrum_are_cut_off():
    weights = mel(4, 16, 8000, 0, 16000)
    assert weights.max(axis=0).tolist() == pytest.approx([1, 1, 1, 0.6])
    assert weights[-1, -1] == weights.max(axis=0)[-1]  # it is still rising there
    assert mel(2, 16, 8000, 8000, 16000).tolist() == [[0, 0]] * 9
    assert mel(2, 8, 16000, 0, 8000, code=11).dtype == np.float64


@pytest.mark.parametrize(
    ("bins", "length", "low", "high"), [(8, 32, 0, 8000), (20, 256, 60, 7000), (5, 9, 10, 900)]
)
def test_mel_as_onnxruntime(bins, length, low, high):
    edges = [np.array(low, np.float32), np.array(high, np.float32)]
    inputs = [np.array(bins), np.array(length), np.array(16000), *edges]
    assert_as_onnxruntime("MelWeightMatrix", 17, inputs, {})
