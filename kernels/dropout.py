"""Dropout 1/6/7/10/12/13/22. At inference the output is the input itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from foldline.kernels.exact_bits import canonical
from foldline.kernels.precision import working_dtype
from foldline.kernels.registry import Array, kernel


@kernel("Dropout", until=7, view=True, exact=True)
def dropout_6(
    x: Array,
    *,
    consumed_inputs: tuple[int, ...] | None = None,
    is_test: int = 0,
    ratio: float = 0.5,
    output_count: int = 2,
) -> Array | tuple[Array, Array]:
    """Dropout 1/6: drops unless `is_test` is set; the mask has the type of the data."""
    if is_test:
        return _kept(x, x.dtype, output_count)
    output, mask = _drop(x, ratio, None)
    return output, mask.astype(x.dtype)


@kernel("Dropout", since=7, until=10, view=True, exact=True)
def dropout_7(
    x: Array, *, ratio: float = 0.5, output_count: int = 2
) -> Array | tuple[Array, Array]:
    """Dropout 7: the input, and a mask of ones of its type."""
    return _kept(x, x.dtype, output_count)


@kernel("Dropout", since=10, until=12, view=True, exact=True)
def dropout_10(
    x: Array, *, ratio: float = 0.5, output_count: int = 2
) -> Array | tuple[Array, Array]:
    """Dropout 10: the input, and a mask that is true."""
    return _kept(x, np.dtype(np.bool_), output_count)


@kernel("Dropout", since=12, view=True, exact=True)
def dropout(
    x: Array,
    ratio: Array | None = None,
    training_mode: Array | None = None,
    *,
    seed: int | None = None,
    output_count: int = 2,
) -> Array | tuple[Array, Array]:
    """Dropout 12/13/22: drops in training mode only; one seed gives one mask.

    The mask is a draw per element in C order from `numpy.random.RandomState(seed)`, whose stream
    NumPy guarantees for good and ONNX's own tests expect.
    """
    share = 0.5 if ratio is None else float(ratio)
    if training_mode is None or not bool(training_mode) or share == 0:
        return _kept(x, np.dtype(np.bool_), output_count)
    return _drop(x, share, seed)


def _kept(x: Array, mask: np.dtype[Any], output_count: int) -> Array | tuple[Array, Array]:
    return x if output_count == 1 else (x, np.ones(x.shape, mask))


def _drop(x: Array, ratio: float, seed: Any) -> tuple[Array, Array]:
    """Zero a share `ratio` of the elements and scale the others so that the mean stays."""
    # ONNX seeds are any int64; RandomState takes 32 bits.
    generator = np.random.RandomState(None if seed is None else seed % (1 << 32))
    mask = generator.uniform(0.0, 1.0, x.shape) >= ratio
    wide = working_dtype(x.dtype).type
    kept = np.where(mask, x.astype(wide), wide(0))
    scale = wide(1 / (1 - ratio)) if ratio < 1 else wide(0)
    return canonical(np.asarray((kept * scale).astype(x.dtype))), np.asarray(mask)
