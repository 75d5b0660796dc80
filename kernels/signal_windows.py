"""Tables for signal processing: the Blackman, Hamming and Hann windows and MelWeightMatrix.

They are computed in float64 from integers and rounded, or cut, once to the output type.
"""

from __future__ import annotations

import math

import numpy as np

from foldline.kernels.cast import convert
from foldline.kernels.exact_functions import COS, EXP, LOG
from foldline.kernels.registry import Array, kernel
from foldline.support.dtypes import BY_CODE

LN10 = 2.302585092994046


@kernel("BlackmanWindow", exact=True)
def blackman_window(size: Array, *, output_datatype: int = 1, periodic: int = 1) -> Array:
    """BlackmanWindow 17: `0.42 - 0.5 cos(t) + 0.08 cos(2 t)` at `size` angles of one turn."""
    return _window(size, output_datatype, periodic, 0.42, 0.5, 0.08)


@kernel("HammingWindow", exact=True)
def hamming_window(size: Array, *, output_datatype: int = 1, periodic: int = 1) -> Array:
    """HammingWindow 17: `25/46 - 21/46 cos(t)` at `size` angles of one turn."""
    return _window(size, output_datatype, periodic, 25 / 46, 21 / 46, 0)


@kernel("HannWindow", exact=True)
def hann_window(size: Array, *, output_datatype: int = 1, periodic: int = 1) -> Array:
    """HannWindow 17: `0.5 - 0.5 cos(t)` at `size` angles of one turn."""
    return _window(size, output_datatype, periodic, 0.5, 0.5, 0)


def _window(size: Array, code: int, periodic: int, a: float, b: float, c: float) -> Array:
    """A turn is `size` steps when periodic, else `size - 1`.

    A symmetric window of size 1 has no angle: it is NaN, as the operator's function body has it.
    """
    count = int(size.item())
    steps = count if periodic else count - 1
    angle = np.arange(count, dtype=np.float64) * (2 * math.pi / steps if steps > 0 else math.nan)
    return convert(a - b * COS(angle) + c * COS(2 * angle), BY_CODE[code].numpy)


@kernel("MelWeightMatrix", exact=True)
def mel_weight_matrix(
    num_mel_bins: Array,
    dft_length: Array,
    sample_rate: Array,
    lower_edge_hertz: Array,
    upper_edge_hertz: Array,
    *,
    output_datatype: int = 1,
) -> Array:
    """MelWeightMatrix 17: `(dft_length // 2 + 1, num_mel_bins)` triangles with peak 1.

    Their corners are evenly spaced on the scale `2595 log10(1 + f / 700)`, each at the DFT
    frequency below; frequencies beyond the last row are cut off.
    """
    bins, length = int(num_mel_bins.item()), int(dft_length.item())
    low, high = (
        2595 / LN10 * LOG(np.asarray(1 + edge.reshape(()).astype(np.float64) / 700))
        for edge in (lower_edge_hertz, upper_edge_hertz)
    )
    # The operator divides by the number of corners, not of gaps: the upper edge is not reached.
    mel = low + np.arange(bins + 2) * ((high - low) / (bins + 2))
    hertz = 700 * (EXP(mel * (LN10 / 2595)) - 1)
    corners = np.floor((length + 1) * hertz / float(sample_rate.item()))
    left, centre, right = corners[:-2], corners[1:-1], corners[2:]
    row = np.arange(length // 2 + 1)[:, np.newaxis]
    rising = (row - left) / np.maximum(centre - left, 1)
    falling = (right - row) / np.maximum(right - centre, 1)
    inside = [row == centre, (left <= row) & (row < centre), (centre < row) & (row < right)]
    weights = np.select(inside, [np.ones_like(rising), rising, falling], 0.0)
    return convert(weights, BY_CODE[output_datatype].numpy)
