"""Operators on boxes in images: NonMaxSuppression and RoiAlign."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from foldline.kernels.exact_sums import tree_mean
from foldline.kernels.precision import widening
from foldline.kernels.registry import Array, kernel

Floats = npt.NDArray[np.floating[Any]]
Indices = npt.NDArray[np.int64]


@kernel("NonMaxSuppression", exact=True)
def non_max_suppression(
    boxes: Array,
    scores: Array,
    max_output_boxes_per_class: Array | None = None,
    iou_threshold: Array | None = None,
    score_threshold: Array | None = None,
    *,
    center_point_box: int = 0,
) -> Array:
    """NonMaxSuppression 10/11: rows `(batch, class, box)` of the boxes kept, best score first.

    Boxes `(batch, n, 4)` are two corners y, x, y, x in any order, or with `center_point_box` the
    centre x, y, width and height; scores `(batch, classes, n)`. A box is dropped when its score is
    not above `score_threshold` or when intersection over union with a kept box of its class is
    above `iou_threshold` (default 0). Without `max_output_boxes_per_class` nothing is kept.
    """
    limit = max(int(_scalar(max_output_boxes_per_class, 0)), 0)
    overlap = _scalar(iou_threshold, 0.0)
    least = None if score_threshold is None else _scalar(score_threshold, -math.inf)
    rows: list[Indices] = []
    for batch, all_scores in enumerate(scores):
        corners = _corners(boxes[batch], center_point_box)
        for label, class_scores in enumerate(all_scores):
            order = np.arange(len(class_scores), dtype=np.intp)
            if least is not None:
                order = np.flatnonzero(class_scores > least)
            order = order[np.argsort(-class_scores[order], kind="stable")]
            kept = _greedy(corners, order, overlap, limit)
            rows.append(np.array([(batch, label, box) for box in kept], np.int64).reshape(-1, 3))
    return np.concatenate(rows) if rows else np.empty((0, 3), np.int64)


def _scalar(given: Array | None, default: float) -> Any:
    return default if given is None or not given.size else given.reshape(-1)[0]


def _corners(boxes: Array, center_point_box: int) -> Floats:
    """`(n, 4)`: least y, least x, greatest y, greatest x (or x and y the other way round)."""
    if center_point_box:
        half = boxes[:, 2:] / 2
        return np.concatenate([boxes[:, :2] - half, boxes[:, :2] + half], axis=1)
    pairs = boxes.reshape(-1, 2, 2)
    return np.concatenate([pairs.min(axis=1), pairs.max(axis=1)], axis=1)


def _greedy(corners: Floats, order: npt.NDArray[np.intp], overlap: Any, limit: int) -> list[int]:
    kept: list[int] = []
    while order.size and len(kept) < limit:
        best, order = order[0], order[1:]
        kept.append(int(best))
        order = order[~(_overlap(corners[best], corners[order]) > overlap)]
    return kept


def _overlap(box: Floats, others: Floats) -> Floats:
    """Intersection over union; -1 where there is none or an area is not positive."""
    sides = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    common = sides[:, 0] * sides[:, 1]
    area = (box[2] - box[0]) * (box[3] - box[1])
    areas = (others[:, 2] - others[:, 0]) * (others[:, 3] - others[:, 1])
    union = area + areas - common
    valid = (sides > 0).all(axis=1) & (common > 0) & (area > 0) & (areas > 0) & (union > 0)
    return np.where(valid, common / np.where(valid, union, 1), -1)


@kernel("RoiAlign", until=16)
def roi_align_10(
    x: Array,
    rois: Array,
    batch_indices: Array,
    *,
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Array:
    """RoiAlign 10: as RoiAlign 16 with `output_half_pixel`."""
    return roi_align(
        x,
        rois,
        batch_indices,
        coordinate_transformation_mode="output_half_pixel",
        mode=mode,
        output_height=output_height,
        output_width=output_width,
        sampling_ratio=sampling_ratio,
        spatial_scale=spatial_scale,
    )


@kernel("RoiAlign", since=16)
@widening
def roi_align(
    x: Array,
    rois: Array,
    batch_indices: Array,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Array:
    """RoiAlign 16/22: X `(N, C, H, W)` pooled over rois `(count, 4)` of x1, y1, x2, y2.

    Each bin is sampled at `sampling_ratio` places a side (0: as many as it has elements), each
    the bilinear mix of four elements. Mode avg takes the mean of the samples; mode max the
    greatest weighted element, as the operator's reference does. With `half_pixel` places are
    shifted by -0.5; with `output_half_pixel` a region is at least one element a side.

    Raises ValueError for an unknown mode and IndexError for an image that does not exist.
    """
    if mode not in ("avg", "max"):
        raise ValueError(f"RoiAlign: mode is {mode!r}, expected 'avg' or 'max'")
    half_pixel = coordinate_transformation_mode == "half_pixel"
    corners = rois * x.dtype.type(spatial_scale) - x.dtype.type(0.5 if half_pixel else 0)
    result = np.zeros((len(rois), x.shape[1], output_height, output_width), x.dtype)
    for roi, image, into in zip(corners, batch_indices, result, strict=True):
        extents = roi[2:] - roi[:2]
        if not half_pixel:
            extents = np.maximum(extents, 1)
        down = _samples(roi[1], extents[1], output_height, sampling_ratio, x.shape[2])
        across = _samples(roi[0], extents[0], output_width, sampling_ratio, x.shape[3])
        if down.per_bin > 0 and across.per_bin > 0:
            into[...] = _pool(x[image], down, across, mode)
    return result


@dataclass(frozen=True)
class _Samples:
    """Where one side of a region is sampled, all bins one after the other."""

    per_bin: int
    taps: tuple[tuple[Indices, Floats], tuple[Indices, Floats]]
    """Index and weight of the element before and of the element after each sample."""


def _samples(start: Any, extent: Any, bins: int, sampling_ratio: int, length: int) -> _Samples:
    size = extent / start.dtype.type(bins)
    per_bin = sampling_ratio if sampling_ratio > 0 else max(math.ceil(size), 0)
    steps = (np.arange(per_bin) + 0.5).astype(start.dtype) * size / max(per_bin, 1)
    at = (start + np.arange(bins).astype(start.dtype)[:, None] * size + steps).reshape(-1)
    valid = (at >= -1) & (at <= length)
    at = np.clip(np.where(valid, at, 0), 0, length - 1)
    low = at.astype(np.int64)
    part = at - low.astype(at.dtype)
    before, after = (np.where(valid, weight, 0).astype(at.dtype) for weight in (1 - part, part))
    return _Samples(per_bin, ((low, before), (np.minimum(low + 1, length - 1), after)))


def _pool(image: Array, down: _Samples, across: _Samples, mode: str) -> Array:
    parts = [
        image[:, y[:, None], x] * (y_weight[:, None] * x_weight)
        for y, y_weight in down.taps
        for x, x_weight in across.taps
    ]
    bins = (len(image), -1, down.per_bin, parts[0].shape[2] // across.per_bin, across.per_bin)
    if mode == "max":
        return np.maximum.reduce(parts).reshape(bins).max(axis=(2, 4))
    total = (parts[0] + parts[1] + parts[2] + parts[3]).reshape(bins)
    return tree_mean(total, (2, 4))
