"""Discrete Fourier transforms: DFT 17/20 and STFT 17.

Complex numbers are the last axis, of size 1 (real) or 2 (real and imaginary part). Float32 is
transformed in float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from foldline.kernels.precision import widening
from foldline.kernels.registry import Array, kernel


@kernel("DFT", until=20)
def dft_17(
    x: Array,
    dft_length: Array | None = None,
    *,
    axis: int = 1,
    inverse: int = 0,
    onesided: int = 0,
) -> Array:
    """DFT 17: as DFT 20 with `axis` an attribute, by default the first after the batch."""
    return dft_20(x, dft_length, np.array(axis), inverse=inverse, onesided=onesided)


@kernel("DFT", since=20)
@widening
def dft_20(
    x: Array,
    dft_length: Array | None = None,
    axis: Array | None = None,
    *,
    inverse: int = 0,
    onesided: int = 0,
) -> Array:
    """DFT 20: the transform of X `(..., 1 or 2)` along `axis`, by default the last signal axis.

    The axis is cut or filled with zeros to `dft_length`. With `onesided` the forward transform
    returns the first `dft_length // 2 + 1` values, and the inverse takes such values and returns
    `dft_length` real numbers, by default twice one less than there are.

    Raises ValueError when `axis` is the last axis or does not exist.
    """
    wanted = -2 if axis is None else int(axis.item())
    along = wanted + x.ndim if wanted < 0 else wanted
    if not 0 <= along < x.ndim - 1:
        raise ValueError(f"DFT: axis is {wanted}, expected a signal axis of shape {x.shape}")
    signal = _signal(x)
    to_real = bool(inverse and onesided)
    size = x.shape[along]
    if dft_length is not None:
        size = int(dft_length.item())
    elif to_real:
        size = 2 * (size - 1)
    if to_real:
        return np.fft.irfft(signal, size, along)[..., np.newaxis]
    if inverse:
        return _pairs(np.fft.ifft(signal, size, along))
    return _pairs(_forward(signal, size, along, bool(onesided)))


@kernel("STFT")
@widening
def stft(
    signal: Array,
    frame_step: Array,
    window: Array | None = None,
    frame_length: Array | None = None,
    *,
    onesided: int = 1,
) -> Array:
    """STFT 17: the transforms of frames of the signal `(batch, length, 1 or 2)`.

    The result is `(batch, frames, frequencies, 2)`. Frames begin every `frame_step` elements; their
    length is `frame_length`, else that of the window, else that of the signal. With `onesided`
    there are `frame_length // 2 + 1` frequencies.

    Raises ValueError when the window or the signal does not fit the frame length.
    """
    values = _signal(signal)
    if frame_length is not None:
        size = int(frame_length.item())
    else:
        size = values.shape[1] if window is None else len(window)
    if window is not None and len(window) != size:
        raise ValueError(f"STFT: a window of {len(window)} for frames of {size}")
    if size > values.shape[1]:
        raise ValueError(f"STFT: frames of {size} for a signal of {values.shape[1]}")
    step = int(frame_step.item())
    frames = np.lib.stride_tricks.sliding_window_view(values, size, axis=1)[:, ::step]
    if window is not None:
        frames = frames * window
    return _pairs(_forward(frames, size, 2, bool(onesided)))


def _forward(signal: Array, size: int, axis: int, onesided: bool) -> Array:
    if not onesided:
        return np.fft.fft(signal, size, axis)
    if signal.dtype.kind != "c":
        return np.fft.rfft(signal, size, axis)
    return np.fft.fft(signal, size, axis).take(range(size // 2 + 1), axis)


def _signal(x: Array) -> npt.NDArray[Any]:
    if x.shape[-1] == 1:
        return x[..., 0]
    if x.shape[-1] != 2:
        raise ValueError(f"the last axis of {x.shape} must be 1 (real) or 2 (complex)")
    return x[..., 0] + 1j * x[..., 1]


def _pairs(values: Array) -> Array:
    return np.stack([np.real(values), np.imag(values)], axis=-1)
