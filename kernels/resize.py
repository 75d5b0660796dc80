"""Resize and Upsample: interpolation along every axis, one after the other.

    attributes and inputs -> `Line` of every axis that changes -> `Taps` -> resample

Floats of 32 bits and less, and integers up to 16 bits, are interpolated in float32, others in
float64; mode nearest copies elements of any dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from foldline.kernels.arguments import ints
from foldline.kernels.interpolation import Line, Taps, nearest_taps, resample, weighted_taps
from foldline.kernels.registry import Array, kernel


@dataclass(frozen=True)
class Filter:
    """How to interpolate: the attributes of Resize of the same names."""

    mode: str
    coordinate_transformation_mode: str = "asymmetric"
    nearest_mode: str | None = None
    """None: floor where the axis grows, ceil where it shrinks, as Resize 10 and Upsample."""
    cubic_coeff_a: float = -0.75
    antialias: bool = False
    exclude_outside: bool = False
    extrapolation_value: float = 0.0


@kernel("Upsample", until=7)
def upsample_1(
    x: Array, *, height_scale: float, width_scale: float, mode: str = "nearest"
) -> Array:
    """Upsample 1: N, C, H, W with the scales of H and W as attributes; nearest or bilinear."""
    return _resize_10(x, np.array([1, 1, height_scale, width_scale], np.float32), mode)


@kernel("Upsample", since=7, until=9)
def upsample_by_attribute(x: Array, *, scales: Sequence[float], mode: str = "nearest") -> Array:
    """Upsample 7: one scale of every axis, an attribute; nearest or linear."""
    return _resize_10(x, np.array(scales, np.float32), mode)


@kernel("Upsample", since=9)
@kernel("Resize", until=11)
def resize_10(x: Array, scales: Array, *, mode: str = "nearest") -> Array:
    """Upsample 9, Resize 10: one scale of every axis; nearest or linear, asymmetric."""
    return _resize_10(x, scales, mode)


@kernel("Resize", since=11)
def resize(
    x: Array,
    roi: Array | None = None,
    scales: Array | None = None,
    sizes: Array | None = None,
    *,
    antialias: int = 0,
    axes: Sequence[int] | None = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Array:
    """Resize 11+: to `sizes`, or to floor(size * scale); an empty tensor counts as absent.

    `roi`, `scales` and `sizes` have an entry for each of `axes` (18+, default all); `roi` the
    starts first, then the ends. Integers are rounded half to even and saturate. Raises
    ValueError unless exactly one of `scales` and `sizes` is given.
    """
    chosen = Filter(
        mode,
        coordinate_transformation_mode,
        nearest_mode,
        cubic_coeff_a,
        bool(antialias),
        bool(exclude_outside),
        extrapolation_value,
    )
    lines = lines_of(x.shape, roi, scales, sizes, axes, chosen, keep_aspect_ratio_policy)
    return resample_all(x, taps_of(lines, chosen), chosen)


def _resize_10(x: Array, scales: Array, mode: str) -> Array:
    lines = dict(enumerate(_lines_of_scales(x.shape, scales)))
    chosen = Filter("nearest" if mode == "nearest" else "linear")
    return resample_all(x, taps_of(lines, chosen), chosen)


def lines_of(
    shape: Sequence[int],
    roi: Array | None,
    scales: Array | None,
    sizes: Array | None,
    axes: Sequence[int] | None,
    chosen: Filter,
    policy: str,
) -> dict[int, Line]:
    """The axes Resize 11+ may change, by their number, from its inputs."""
    rank = len(shape)
    where = [normalize_axis_index(axis, rank) for axis in axes or range(rank)]
    before = [shape[axis] for axis in where]
    has_scales, has_sizes = (given is not None and given.size for given in (scales, sizes))
    if scales is not None and has_scales and not has_sizes:
        lines = _lines_of_scales(before, scales)
    elif sizes is not None and has_sizes and not has_scales:
        lines = _lines_of_sizes(before, ints(sizes), policy)
    else:
        raise ValueError("Resize needs exactly one of scales and sizes")
    if chosen.coordinate_transformation_mode == "tf_crop_and_resize":
        lines = _with_roi(lines, roi)
    return dict(zip(where, lines, strict=True))


def taps_of(lines: dict[int, Line], chosen: Filter) -> dict[int, Taps]:
    """The taps of the axes that change, in the order to resample them.

    Axes that shrink come first, the outermost before the others, then axes that grow, the
    innermost first: so the copies of single elements are made while there are few.
    """
    changing = [axis for axis, line in lines.items() if not _is_identity(line)]
    shrinking = sorted(axis for axis in changing if lines[axis].count < lines[axis].size)
    growing = sorted(set(changing).difference(shrinking), reverse=True)
    return {axis: _taps(lines[axis], chosen) for axis in (*shrinking, *growing)}


def resample_all(
    x: Array,
    taps: dict[int, Taps],
    chosen: Filter,
    along: Callable[[Array, int, Taps], Array] = resample,
) -> Array:
    """`x` resampled by `along` on every axis of `taps`, in its own dtype; never `x` itself."""
    if chosen.mode == "nearest":
        result = x
    else:
        # Widened as NumPy promotes with float32: float64 only where float32 is too narrow.
        result = x.astype(np.result_type(x.dtype, np.float32), copy=False)
    for axis, tap in taps.items():
        result = along(result, axis, tap)
    fill_outside(result, taps, chosen)
    if result is x:
        return x.copy()
    if x.dtype.kind in "iu" and chosen.mode != "nearest":
        limits = np.iinfo(x.dtype)
        result = np.clip(np.rint(result), limits.min, limits.max)
    return result.astype(x.dtype, copy=False)


def fill_outside(result: Array, taps: dict[int, Taps], chosen: Filter) -> None:
    """Set what is made of nothing inside."""
    for axis, tap in taps.items():
        if tap.outside is not None:
            result[(*(slice(None),) * axis, tap.outside)] = chosen.extrapolation_value


def _lines_of_scales(before: Sequence[int], scales: Array) -> list[Line]:
    lines: list[Line] = []
    for size, scale in zip(before, scales.astype(np.float32), strict=True):
        # In float32, as shape inference does: 10 * 2.6 is 26, not 25.999999.
        width = float(np.float32(size) * scale)
        lines.append(Line(size, int(width), float(scale), width))
    return lines


def _lines_of_sizes(before: Sequence[int], sizes: tuple[int, ...], policy: str) -> list[Line]:
    scales = [new / old if old else 1.0 for new, old in zip(sizes, before, strict=True)]
    if policy == "stretch":
        rows = zip(before, sizes, scales, strict=True)
        return [Line(old, new, scale, float(new)) for old, new, scale in rows]
    common = {"not_larger": min, "not_smaller": max}[policy](scales)
    return [Line(old, int(common * old + 0.5), common, common * old) for old in before]


def _with_roi(lines: list[Line], roi: Array | None) -> list[Line]:
    if roi is None or roi.size != 2 * len(lines):
        raise ValueError(f"tf_crop_and_resize needs a roi of {2 * len(lines)} numbers")
    ends = roi.astype(np.float64).reshape(2, -1).T.tolist()
    return [replace(line, roi=(start, end)) for line, (start, end) in zip(lines, ends, strict=True)]


def _is_identity(line: Line) -> bool:
    return line.count == line.size and line.scale == 1 and line.roi == (0.0, 1.0)


def _taps(line: Line, chosen: Filter) -> Taps:
    transformation = chosen.coordinate_transformation_mode
    if chosen.mode == "nearest":
        simple = "floor" if line.scale >= 1 else "ceil"
        return nearest_taps(line, transformation, chosen.nearest_mode or simple)
    return weighted_taps(
        line,
        transformation,
        chosen.mode,
        chosen.cubic_coeff_a,
        chosen.antialias,
        chosen.exclude_outside,
    )
