"""DFT and STFT in exact mode.

    all prime factors small     passes of radix 4, 2 and odd ones, in that order (Stockham), with
                                the butterflies of pocketfft
    else                        (re, im) @ [[cos, sin], [-sin, cos]], k over the real parts first

Cosines and sines are rounded from float64, of angles reduced to one turn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from foldline.kernels.exact_bits import canonicalised
from foldline.kernels.exact_functions import COS, SIN
from foldline.kernels.exact_products import product
from foldline.kernels.precision import widening
from foldline.kernels.registry import Array, kernel
from foldline.kernels.ufuncs import constant

LARGEST_RADIX = 13
"""Of a length with a greater prime factor the transform is a product with a table."""

Parts = tuple[Array, Array]
"""Real and imaginary parts."""


@kernel("DFT", until=20, grade="exact")
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


@kernel("DFT", since=20, grade="exact")
@canonicalised
@widening
def dft_20(
    x: Array,
    dft_length: Array | None = None,
    axis: Array | None = None,
    *,
    inverse: int = 0,
    onesided: int = 0,
) -> Array:
    """DFT 20: the transform of X `(..., 1 or 2)` along `axis`, by default the last signal axis."""
    wanted = -2 if axis is None else int(axis.item())
    along = wanted + x.ndim if wanted < 0 else wanted
    if not 0 <= along < x.ndim - 1:
        raise ValueError(f"DFT: axis is {wanted}, expected a signal axis of shape {x.shape}")
    to_real = bool(inverse and onesided)
    size = x.shape[along] if dft_length is None else int(dft_length.item())
    if to_real and dft_length is None:
        size = 2 * (size - 1)
    rows = np.moveaxis(x, along, -2)
    if to_real:
        result = _inverse(_mirrored(_parts(rows, size // 2 + 1), size))[..., :1]
    elif inverse:
        result = _inverse(_parts(rows, size))
    else:
        result = _forward(rows, size, bool(onesided))
    return np.ascontiguousarray(np.moveaxis(result, -2, along))


@kernel("STFT", grade="exact")
@canonicalised
@widening
def stft(
    signal: Array,
    frame_step: Array,
    window: Array | None = None,
    frame_length: Array | None = None,
    *,
    onesided: int = 1,
) -> Array:
    """STFT 17: the transforms of frames of the signal `(batch, length, 1 or 2)`."""
    length = signal.shape[1]
    if frame_length is not None:
        size = int(frame_length.item())
    else:
        size = length if window is None else len(window)
    if window is not None and len(window) != size:
        raise ValueError(f"STFT: a window of {len(window)} for frames of {size}")
    if size > length:
        raise ValueError(f"STFT: frames of {size} for a signal of {length}")
    starts = np.arange(0, length - size + 1, int(frame_step.item()), dtype=np.int64)
    frames = signal[:, starts[:, None] + np.arange(size, dtype=np.int64)]
    if window is not None:
        frames = frames * window[:, None]
    return _forward(frames, size, bool(onesided))


def _forward(x: Array, size: int, onesided: bool) -> Array:
    """The transform; that of a real signal is its own mirror image to the last bit."""
    re, im = _transformed(*_parts(x, size), -1)
    if x.shape[-1] == 1:
        re, im = _mirrored((re, im), size)
    count = re.shape[-1] // 2 + 1 if onesided else re.shape[-1]
    return np.stack([re[..., :count], im[..., :count]], axis=-1)


def _inverse(parts: Parts) -> Array:
    share = parts[0].dtype.type(1 / max(parts[0].shape[-1], 1))
    return np.stack([part * share for part in _transformed(*parts, 1)], axis=-1)


def _parts(x: Array, size: int) -> Parts:
    """Real and imaginary parts of X `(..., n, 1 or 2)`, n cut or filled to `size`."""
    if x.shape[-1] not in (1, 2):
        raise ValueError(f"the last axis of {x.shape} must be 1 (real) or 2 (complex)")
    filled = np.zeros((2, *x.shape[:-2], size), x.dtype)
    kept = min(size, x.shape[-2])
    for part in range(x.shape[-1]):
        filled[part, ..., :kept] = x[..., :kept, part]
    return filled[0], filled[1]


def _mirrored(parts: Parts, size: int) -> Parts:
    """The `size` values of a real signal from the first half of them."""
    re, im = parts
    places = np.arange(size, dtype=np.int64)
    is_mirrored = places > size // 2
    places = np.where(is_mirrored, size - places, places)
    im = np.where(is_mirrored, np.negative(im[..., places]), im[..., places])
    return re[..., places], np.where((2 * places) % max(size, 1) == 0, im.dtype.type(0), im)


def _transformed(re: Array, im: Array, sign: int) -> Parts:
    """The sum over j of `x[j] exp(sign i j k)`, in parts of a turn, for every k."""
    size = re.shape[-1]
    factors = _factors(size)
    if factors is None:
        return _by_product(re, im, sign)
    shape, done = re.shape, 1
    re, im = re.reshape(-1, size), im.reshape(-1, size)
    for factor in factors:
        inner = size // (done * factor)
        split = (len(re), done, factor, inner)
        columns = [
            (a[:, :, j], b[:, :, j])
            for a, b in ((re.reshape(split), im.reshape(split)),)
            for j in range(factor)
        ]
        results = _butterfly(columns, sign)
        cosine, sine = _turns(
            size,
            np.arange(factor, dtype=np.int64)[:, None] * (done * np.arange(inner, dtype=np.int64)),
            re.dtype,
        )
        turned = [
            _times(a, b, cosine[j], sine[j] if sign > 0 else np.negative(sine[j]))
            for j, (a, b) in enumerate(results)
        ]
        re, im = (np.stack([pair[part] for pair in turned], axis=1) for part in (0, 1))
        done *= factor
    return re.reshape(shape), im.reshape(shape)


def _factors(size: int) -> list[int] | None:
    """Radices whose product is `size`; None where one would be large, or there is nothing."""
    if size < 1:
        return None
    found: list[int] = []
    for radix in (4, 2, *range(3, LARGEST_RADIX + 1, 2)):
        while size % radix == 0:
            found.insert(0 if radix == 2 else len(found), radix)
            size //= radix
    return found if size == 1 else None


def _butterfly(x: Sequence[Parts], sign: int) -> list[Parts]:
    """The transform of as many values as the radix has."""
    if len(x) == 2:
        return [_plus(x[0], x[1]), _minus(x[0], x[1])]
    if len(x) == 4:
        t2, t1 = _plus(x[0], x[2]), _minus(x[0], x[2])
        t3, (a, b) = _plus(x[1], x[3]), _minus(x[1], x[3])
        t4 = (np.negative(b), a) if sign > 0 else (b, np.negative(a))
        return [_plus(t2, t3), _plus(t1, t4), _minus(t2, t3), _minus(t1, t4)]
    radix, half = len(x), (len(x) - 1) // 2
    sums = [_plus(x[j], x[radix - j]) for j in range(1, half + 1)]
    differences = [_minus(x[j], x[radix - j]) for j in range(1, half + 1)]
    cosine, sine = _turns(radix, np.arange(radix, dtype=np.int64), x[0][0].dtype)
    results = [x[0]] * radix
    for term in sums:
        results[0] = _plus(results[0], term)
    for u in range(1, half + 1):
        even, odd = x[0], None
        for j, (term, other) in enumerate(zip(sums, differences, strict=True), 1):
            c, s = cosine[u * j % radix], sine[u * j % radix]
            even = _plus(even, (term[0] * c, term[1] * c))
            rotated = (other[0] * s, other[1] * s)
            odd = rotated if odd is None else _plus(odd, rotated)
        assert odd is not None, "an odd radix is 3 or more"
        turned = (np.negative(odd[1]), odd[0])
        high, low = _plus(even, turned), _minus(even, turned)
        results[u], results[radix - u] = (high, low) if sign > 0 else (low, high)
    return results


def _plus(a: Parts, b: Parts) -> Parts:
    return a[0] + b[0], a[1] + b[1]


def _minus(a: Parts, b: Parts) -> Parts:
    return a[0] - b[0], a[1] - b[1]


def _times(re: Array, im: Array, cosine: Array, sine: Array) -> Parts:
    """The product with `cosine + i sine`; not computed where that is 1."""
    is_one = (cosine == 1) & (sine == 0)
    return (
        np.where(is_one, re, re * cosine - im * sine),
        np.where(is_one, im, re * sine + im * cosine),
    )


def _by_product(re: Array, im: Array, sign: int) -> Parts:
    size = re.shape[-1]
    places = np.arange(size, dtype=np.int64)
    cosine, sine = _turns(max(size, 1), places[:, None] * places, re.dtype)
    sine = sine if sign > 0 else np.negative(sine)
    table = np.concatenate(
        [
            np.concatenate([cosine, sine], axis=1),
            np.concatenate([np.negative(sine), cosine], axis=1),
        ]
    )
    result = product(np.concatenate([re, im], axis=-1), table)
    return result[..., :size], result[..., size:]


def _turns(size: int, places: Array, dtype: np.dtype[np.generic]) -> Parts:
    """Cosine and sine of `places` parts of a turn of `size`, exact at quarters of a turn."""
    eighth = (8 * (places % size)) // size
    # Folded into the first eighth of a turn, where both functions are at their best.
    folded = np.where(eighth % 2 == 0, places % size - eighth * size / 8, 0)
    rest = np.where(eighth % 2 == 0, folded, (eighth + 1) * size / 8 - places % size)
    angle = np.asarray(rest, np.float64) * (2 * math.pi / size)
    c, s = COS(angle), SIN(angle)
    quarter = ((eighth + 1) // 2) % 4
    s = np.where(eighth % 2 == 0, s, np.negative(s))
    cosine = np.where(quarter == 0, c, np.where(quarter == 1, -s, np.where(quarter == 2, -c, s)))
    sine = np.where(quarter == 0, s, np.where(quarter == 1, c, np.where(quarter == 2, -s, -c)))
    zero = constant(0, dtype)  # makes +0 of a -0
    return np.add(cosine.astype(dtype), zero), np.add(sine.astype(dtype), zero)
