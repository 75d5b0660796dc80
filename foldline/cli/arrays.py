"""Arrays in `.npy` and `.npz` files: the types that NumPy's format lacks are carried over."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast
from zipfile import BadZipFile, ZipFile

import numpy as np
import numpy.typing as npt

from foldline.support.errors import InvalidArgumentError

Array = npt.NDArray[Any]


def load_npy(path: str) -> Array:
    """One array; text becomes an array of `str` objects. Pickles are refused."""
    with _refusing(path, ".npy"):
        with open(path, "rb") as file:
            return _held(np.lib.format.read_array(file, allow_pickle=False))


def load_npz(path: str) -> dict[str, Array]:
    """The arrays of an `.npz` file by name."""
    with _refusing(path, ".npz"), ZipFile(path) as archive:
        found: dict[str, Array] = {}
        for member in archive.namelist():
            with archive.open(member) as file:
                array = np.lib.format.read_array(file, allow_pickle=False)
            found[member.removesuffix(".npy")] = _held(array)
        return found


def save_npz(path: str, values: Mapping[str, Any]) -> None:
    """Write results by name; the elements of a sequence as `NAME.0`, `NAME.1` …"""
    with ZipFile(path, "w") as archive:
        for name, value in values.items():
            for key, array in _flat(name, value):
                with archive.open(f"{key}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)


def retyped(array: Array, dtype: np.dtype[Any]) -> Array:
    """Bytes that NumPy's format stored without their type, as the type the model wants."""
    unknown = array.dtype.kind == "V" and array.dtype != dtype
    return array.view(dtype) if unknown and array.dtype.itemsize == dtype.itemsize else array


@contextmanager
def _refusing(path: str, suffix: str) -> Generator[None]:
    try:
        yield
    except (ValueError, EOFError, BadZipFile) as error:
        message = f"{path}: is not an {suffix} file of numbers or text"
        raise InvalidArgumentError(message) from error


def _held(array: Array) -> Array:
    return array.astype(np.object_) if array.dtype.kind == "U" else array


def _flat(name: str, value: Any) -> Iterator[tuple[str, Array]]:
    if isinstance(value, list):
        for index, item in enumerate(cast("list[Any]", value)):
            yield from _flat(f"{name}.{index}", item)
    elif value is not None:
        array = np.asarray(value)
        yield name, array.astype(np.str_) if array.dtype == np.object_ else array
