"""How tensors are written: into the message, or into a data file beside the model."""

from __future__ import annotations

from typing import IO, Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto

from foldline.dialects.onnx.tensor import Tensor
from foldline.dialects.onnx.tensor_proto import fill_tensor, set_header, to_raw

ALIGNMENT = 4096
"""Data files are mapped by pages: ONNX `docs/ExternalData.md` advises this offset."""
EXTERNAL_BYTES = 1024
"""Tensors below this size stay in the message even when a data file is written."""


class TensorWriter:
    """Writes tensors into their messages."""

    def fill(self, proto: TensorProto, tensor: Tensor) -> None:
        """Type, shape and data of a tensor."""
        if proto.external_data:
            # The leftovers say that the data stays in the file it came from.
            set_header(proto, tensor)
        else:
            fill_tensor(proto, tensor)


class ExternalWriter(TensorWriter):
    """Streams large tensors to a data file; the messages name it."""

    def __init__(self, file: IO[bytes], location: str):
        self._file = file
        self._location = location
        self._position = 0
        self._written: dict[int, tuple[int, int]] = {}

    def fill(self, proto: TensorProto, tensor: Tensor) -> None:
        """Type and shape into the message, data into the file."""
        del proto.external_data[:]
        proto.ClearField("data_location")
        if tensor.array.dtype == np.object_ or tensor.array.nbytes < EXTERNAL_BYTES:
            fill_tensor(proto, tensor)
            return
        set_header(proto, tensor)
        offset, length = self._stored(tensor)
        proto.data_location = TensorProto.EXTERNAL
        for key, value in (
            ("location", self._location),
            ("offset", str(offset)),
            ("length", str(length)),
        ):
            entry = proto.external_data.add()
            entry.key, entry.value = key, value

    def _stored(self, tensor: Tensor) -> tuple[int, int]:
        known = self._written.get(id(tensor))
        if known is None:
            padding = -self._position % ALIGNMENT
            self._file.write(b"\0" * padding)
            offset = self._position + padding
            length = _write_raw(self._file, tensor.array)
            self._position = offset + length
            known = self._written[id(tensor)] = (offset, length)
        return known


def _write_raw(file: IO[bytes], array: npt.NDArray[Any], chunk: int = 1 << 24) -> int:
    """Write the elements piecewise, so that a memory map is never read whole."""
    per_chunk = max(chunk // max(array.itemsize, 1), 1) & ~7 or 8
    if array.flags.c_contiguous:
        flat = array.reshape(-1)
    else:
        flat = np.ascontiguousarray(array).reshape(-1)
    written = 0
    for start in range(0, flat.size, per_chunk):
        written += file.write(to_raw(flat[start : start + per_chunk]))
    return written
