"""Resampling and deformed convolution in exact mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from foldline.kernels.registry import compute, find_kernel


def run(grade: Any, op_type: str, *inputs: Any, since: int = 22, **attributes: Any) -> Any:
    entry = find_kernel("", op_type, since, [grade])
    assert entry is not None
    if "output_count" in attributes and "output_count" not in entry.reserved:
        del attributes["output_count"]
    with np.errstate(all="ignore"):
        return compute(entry, inputs, **attributes)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


RESAMPLED: list[tuple[str, tuple[Any, ...], dict[str, Any], int]] = [
    ("Resize", (None, np.float32([1, 1, 1.5, 2])), {"mode": "linear"}, 19),
    ("Resize", (None, np.float32([1, 1, 0.4, 0.6])), {"mode": "cubic", "antialias": 1}, 19),
    ("Resize", (np.float32([1, 1, 2, 2]),), {"mode": "nearest"}, 10),
    ("Upsample", (np.float32([1, 1, 2, 2]),), {"mode": "linear"}, 9),
    ("Upsample", (), {"mode": "linear", "scales": [1, 1, 2, 2]}, 7),
    ("Upsample", (), {"mode": "bilinear", "height_scale": 2.0, "width_scale": 2.0}, 1),
]


@pytest.mark.parametrize(("op_type", "inputs", "attributes", "since"), RESAMPLED)
def test_resampling(op_type: str, inputs: Any, attributes: Any, since: int) -> None:
    x = numbers(1, 2, 5, 6)
    found = run("exact", op_type, x, *inputs, since=since, **attributes)
    expected = run("reference", op_type, x, *inputs, since=since, **attributes)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    x[0, 0, 2, 2] = -np.float32(np.nan)
    found = run("exact", op_type, x, *inputs, since=since, **attributes)
    assert (found[np.isnan(found)].view(np.uint32) == 0x7FC00000).all()


@pytest.mark.parametrize("groups", [1, 2])
def test_deformed_convolution(groups: int) -> None:
    x, w, b = numbers(1, 4, 5, 5), numbers(2, 4 // groups, 2, 2), numbers(2)
    offset, mask = numbers(1, 8, 4, 4), numbers(1, 4, 4, 4)
    given = (x, w, offset, b, mask)
    found = run("exact", "DeformConv", *given, group=groups)
    np.testing.assert_allclose(
        found, run("reference", "DeformConv", *given, group=groups), atol=1e-5
    )
