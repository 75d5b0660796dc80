import ml_dtypes
import numpy as np
import pytest

from foldline.kernels.signal import dft_17, dft_20, stft
from tests.kernels.one_node import assert_as_onnxruntime


def f32(value):
    return np.array(value, np.float32)


PULSE = f32([1, 0, 0, 0]).reshape(1, 4, 1)
RAMP = f32([0, 1, 2, 3]).reshape(1, 4, 1)


def scalar(value):
    return np.array(value, np.int64)


def test_forward_of_real_signals():
    assert dft_20(PULSE)[0].tolist() == [[1, 0]] * 4
    assert dft_20(RAMP)[0].tolist() == [[6, 0], [-2, 2], [-2, 0], [-2, -2]]
    assert dft_20(RAMP, onesided=1)[0].tolist() == [[6, 0], [-2, 2], [-2, 0]]


def test_length_cuts_or_fills_up():
    assert dft_20(RAMP, scalar(2))[0].tolist() == [[1, 0], [-1, 0]]
    assert dft_20(PULSE, scalar(6), onesided=1)[0].tolist() == [[1, 0]] * 4


def test_complex_signals():
    turning = np.stack([RAMP[..., 0], -RAMP[..., 0]], axis=-1)  # (1 - i) times the ramp
    expected = [[6, -6], [0, 4], [-2, 2], [-4, 0]]
    assert dft_20(turning)[0].tolist() == expected
    assert dft_20(turning, onesided=1)[0].tolist() == expected[:3]


def test_inverse():
    spectrum = dft_20(RAMP)
    assert dft_20(spectrum, inverse=1)[0].tolist() == [[n, 0] for n in range(4)]
    half = dft_20(RAMP, onesided=1)
    assert dft_20(half, inverse=1, onesided=1)[0].tolist() == [[0], [1], [2], [3]]
    odd = f32([1, 2, 4]).reshape(1, 3, 1)
    again = dft_20(dft_20(odd, onesided=1), scalar(3), inverse=1, onesided=1)
    assert again.ravel().tolist() == pytest.approx([1, 2, 4])


def test_axes():
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 1)).astype(np.float32)
    assert np.array_equal(dft_20(x), dft_20(x, None, scalar(2)))
    assert np.array_equal(dft_17(x), dft_20(x, None, scalar(1)))
    assert np.array_equal(dft_17(x, axis=-4), dft_20(x, None, scalar(0)))
    for wrong in (3, -1, -5):
        with pytest.raises(ValueError, match=f"axis is {wrong}"):
            dft_20(x, None, scalar(wrong))
    with pytest.raises(ValueError, match="real"):
        dft_20(x[..., 0])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize("inverse", [0, 1])
def test_dtypes(dtype, inverse):
    result = dft_20(RAMP.astype(dtype), inverse=inverse)
    assert result.dtype == dtype
    assert abs(float(result[0, 1, 0])) == (0.5 if inverse else 2)
    assert stft(RAMP.astype(dtype), scalar(1), None, scalar(2)).dtype == dtype


@pytest.mark.parametrize("opset", [17, 20])
@pytest.mark.parametrize("length", [None, 3, 8])
@pytest.mark.parametrize("inverse", [0, 1])
@pytest.mark.parametrize("parts", [1, 2])
def test_as_onnxruntime(opset, length, inverse, parts):
    x = np.random.default_rng(parts).normal(size=(2, 5, 4, parts)).astype(np.float32)
    inputs = [x, None if length is None else scalar(length)]
    options = {"inverse": inverse}
    if opset == 17:
        options["axis"] = 1
    else:
        inputs.append(scalar(1))
    assert_as_onnxruntime("DFT", opset, inputs, options)


def test_frames():
    frames = stft(RAMP, scalar(1), None, scalar(2))
    assert frames[0, :, :, 0].tolist() == [[1, -1], [3, -1], [5, -1]]
    weighted = stft(RAMP, scalar(2), f32([0, 1]))
    assert weighted[0, :, :, 0].tolist() == [[1, -1], [3, -3]]
    assert stft(RAMP, scalar(1)).shape == (1, 1, 3, 2)
    assert stft(RAMP, scalar(1), onesided=0).shape == (1, 1, 4, 2)
    with pytest.raises(ValueError, match="a window of 3 for frames of 2"):
        stft(RAMP, scalar(1), f32([1, 1, 1]), scalar(2))
    with pytest.raises(ValueError, match="frames of 5 for a signal of 4"):
        stft(RAMP, scalar(1), None, scalar(5))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("given", ["window", "length", "both"])
@pytest.mark.parametrize(("onesided", "parts"), [(0, 1), (1, 1), (0, 2)])
def test_frames_as_onnxruntime(dtype, given, onesided, parts):
    rng = np.random.default_rng(2)
    signal = rng.normal(size=(2, 20, parts)).astype(dtype)
    window = None if given == "length" else rng.random(8).astype(dtype)
    length = None if given == "window" else scalar(8)
    inputs = [signal, scalar(3), window, length]
    assert_as_onnxruntime("STFT", 17, inputs, {"onesided": onesided})
