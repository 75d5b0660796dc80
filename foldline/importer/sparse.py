"""Dense values of sparse tensors (SparseTensorProto)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from foldline.support.errors import InvalidModel, ResourceLimit

Array = npt.NDArray[Any]

MAX_DENSE_BYTES = 1 << 31


def densified(values: Array, indices: Array, shape: tuple[int, ...], where: str) -> Array:
    """The dense array of `values` [NNZ] at `indices` [NNZ] (linear) or [NNZ, rank].

    Raises InvalidModel for indices out of range, not ascending, or of the wrong shape or type.
    """
    if any(d < 0 for d in shape) or values.ndim != 1 or indices.dtype != np.int64:
        raise InvalidModel(
            f"{where}: sparse tensor needs dims >= 0, values of rank 1 and int64 indices, "
            f"found dims {list(shape)}, values {list(values.shape)}, {indices.dtype} indices"
        )
    size = math.prod(shape)
    if size * values.itemsize > MAX_DENSE_BYTES:
        raise ResourceLimit(f"{where}: sparse tensor is {size * values.itemsize} bytes when dense")
    if indices.ndim == 2 and indices.shape == (values.size, len(shape)):
        bounds = np.array(shape, np.int64)
        if np.any((indices < 0) | (indices >= bounds)):
            raise InvalidModel(f"{where}: a sparse index is outside {list(shape)}")
        linear = np.ravel_multi_index(tuple(indices.T), shape) if len(shape) else indices[:, 0]
    elif indices.shape == values.shape:
        linear = indices
        if np.any((linear < 0) | (linear >= size)):
            raise InvalidModel(f"{where}: a sparse index is outside 0..{size - 1}")
    else:
        raise InvalidModel(
            f"{where}: sparse indices have shape {list(indices.shape)} for "
            f"{values.size} values of rank {len(shape)}"
        )
    if np.any(np.diff(linear) <= 0):
        raise InvalidModel(f"{where}: sparse indices are not ascending")
    dense = np.zeros(size, values.dtype)
    dense[linear] = values
    return dense.reshape(shape)
