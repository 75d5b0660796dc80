"""External tensor data, memory-mapped; nothing outside the model's folder is ever opened.

Source: ONNX `docs/ExternalData.md` and its security notes.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
import numpy.typing as npt
from onnx import TensorProto

from foldline.dialects.onnx.tensor import Tensor
from foldline.dialects.onnx.tensor_proto import (
    TYPED_FIELDS,
    from_raw,
    header,
    stored_size,
)
from foldline.support.errors import InvalidModel

KEYS = frozenset({"location", "offset", "length", "checksum", "basepath"})


@dataclass(frozen=True)
class Location:
    """Where the bytes of one tensor stand."""

    path: str
    offset: int
    length: int


class ExternalData:
    """The data files of one model: each is opened once and mapped read-only."""

    def __init__(self, folder: Path | None):
        self.folder = folder
        self._maps: dict[str, npt.NDArray[np.uint8]] = {}

    def read(self, proto: TensorProto, where: str) -> Tensor:
        """The tensor that a message keeps in a file. Raises InvalidModel naming file and reason."""
        element, shape = header(proto, where)
        held = [name for name in (*TYPED_FIELDS, "raw_data") if _has(proto, name)]
        if held:
            raise InvalidModel(f"{where}: external tensor also holds {held[0]}")
        size = stored_size(element, int(np.prod(shape, dtype=object)))
        place = _location(proto, size, where)
        if place.length != size:
            raise InvalidModel(
                f"{where}: external data of {element.name}{list(shape)} needs {size} bytes, "
                f"its entry says {place.length}"
            )
        data = self._map(place.path, where)
        end = place.offset + place.length
        if end > len(data):
            raise InvalidModel(
                f"{where}: external data ends at byte {end} of '{place.path}', "
                f"which has {len(data)}"
            )
        view = data[place.offset : end]
        if place.offset % max(element.numpy.alignment, 1):
            view = view.copy()
        return Tensor(from_raw(view, element, shape, where), "external")

    def _map(self, location: str, where: str) -> npt.NDArray[np.uint8]:
        if location not in self._maps:
            path = self._checked(location, where)
            empty = np.empty(0, np.uint8)
            size = path.stat().st_size
            self._maps[location] = np.memmap(path, np.uint8, "r") if size else empty
        return self._maps[location]

    def _checked(self, location: str, where: str) -> Path:
        """The file of a location; refuses what leads out of the folder."""
        if self.folder is None:
            raise InvalidModel(
                f"{where}: data is in the external file '{location}', but the model did not come "
                "from a file: give its path"
            )
        relative = PurePosixPath(location)
        outside = not location or "\\" in location or "\0" in location
        if outside or relative.is_absolute() or ".." in relative.parts:
            raise InvalidModel(
                f"{where}: external data '{location}' is not a path inside the model's folder"
            )
        path = self.folder
        for part in relative.parts:
            path = path / part
            if path.is_symlink():
                raise InvalidModel(f"{where}: external data '{location}' goes through a link")
        try:
            status = os.stat(path, follow_symlinks=False)
        except OSError as error:
            raise InvalidModel(
                f"{where}: external data file '{location}' cannot be read: {error.strerror}"
            ) from error
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            raise InvalidModel(
                f"{where}: external data '{location}' is not a regular file with one name"
            )
        return path


def _has(proto: TensorProto, name: str) -> bool:
    return proto.HasField("raw_data") if name == "raw_data" else len(getattr(proto, name)) > 0


def _location(proto: TensorProto, size: int, where: str) -> Location:
    entries = {entry.key: entry.value for entry in proto.external_data}
    if unknown := set(entries) - KEYS:
        raise InvalidModel(f"{where}: external data has unknown key '{min(unknown)}'")
    numbers: list[int] = []
    for key, default in (("offset", 0), ("length", size)):
        text = entries.get(key, str(default))
        if not text.isascii() or not text.isdigit():
            raise InvalidModel(f"{where}: external data {key} is '{text}', expected a number >= 0")
        numbers.append(int(text))
    return Location(entries.get("location", ""), numbers[0], numbers[1])
