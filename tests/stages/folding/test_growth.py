"""What new constants may weigh."""

from __future__ import annotations

import numpy as np
import pytest

from foldline.dialects.onnx.tensor import TensorAttr, splat
from foldline.stages.folding.growth import MAX_BYTES, growth

LARGE = TensorAttr.of(np.zeros(MAX_BYTES, np.uint8))


@pytest.mark.parametrize(
    ("size", "given", "limit", "fits"),
    [
        (MAX_BYTES, [], MAX_BYTES, True),
        (MAX_BYTES + 1, [], MAX_BYTES, False),
        (MAX_BYTES + 1, [], None, True),
        (2 * MAX_BYTES, [LARGE, TensorAttr.of(np.ones(MAX_BYTES, np.uint8))], MAX_BYTES, True),
        (2 * MAX_BYTES, [LARGE, LARGE], MAX_BYTES, False),
        (2 * MAX_BYTES, [TensorAttr.of(splat(1, (1 << 30,), np.uint8))], MAX_BYTES, False),
    ],
)
def test_large_results_are_no_larger_than_what_they_are_made_of(
    size: int, given: list[TensorAttr], limit: int | None, fits: bool
) -> None:
    assert (growth(size, given, limit) is None) == fits
