"""From what a caller gives to the inputs of a program: checked by name, kind, dtype and shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.ir import Attribute

from foldline.dialects.onnx.types import (
    MapType,
    OptionalType,
    SequenceType,
    SparseTensorType,
    dims_of,
    element_of,
    element_type,
)
from foldline.kernels.registry import Array
from foldline.lowering.plans import Key, key_of
from foldline.lowering.program import Port
from foldline.support.dtypes import BY_NUMPY
from foldline.support.errors import InvalidArgumentError
from foldline.support.suggest import did_you_mean


class Feed:
    """Checks what callers give; made once, as it is asked at every run."""

    def __init__(self, ports: Sequence[Port]):
        self._ports = tuple(ports)
        self._names = tuple(port.name for port in ports)
        self._tensors = [_tensor_type(port.type) for port in ports]
        self._latest: tuple[list[_Signature], Key | None] = [], None
        """Arrays that were as they should be when they were looked at last, and their key."""

    def checked(self, feed: Mapping[str, Any]) -> tuple[list[Any], Key | None]:
        """The inputs in order, defaults filled in, and the key of their plan where it is known.

        Raises InvalidArgumentError for a name the model does not have, an input that is missing,
        or a value of another kind, dtype, rank or size than the model says.
        """
        is_in_order = tuple(feed) == self._names
        values = [*feed.values()] if is_in_order else [feed.get(name) for name in self._names]
        is_full = is_in_order or len(feed) == len(values)
        latest, key = self._latest
        try:
            # What is like the last time needs no further look, which takes as long again.
            if is_full and [*map(_signature, values)] == latest:
                return values, key
        except AttributeError:
            return self._converted(values, feed), None
        if not is_full or not all(map(_is_as_it_should, values, self._tensors)):
            return self._converted(values, feed), None
        key = key_of(values)
        self._latest = [*map(_signature, values)], key
        return values, key

    def _converted(self, values: Sequence[Any], feed: Mapping[str, Any]) -> list[Any]:
        """The long way, for all that are not arrays as they should be."""
        for name in feed:
            if name not in self._names:
                raise InvalidArgumentError(f"no input {name!r}{did_you_mean(name, self._names)}")
        pairs = zip(self._ports, self._tensors, strict=True)
        return [
            value if _is_as_it_should(value, tensor) else _value(port, feed)
            for value, (port, tensor) in zip(values, pairs, strict=True)
        ]


_signature = attrgetter("__class__", "dtype", "shape", "flags.c_contiguous")
"""All that is asked of an array."""
_Signature: TypeAlias = tuple[type, np.dtype[Any], tuple[int, ...], bool]

_TensorType: TypeAlias = tuple[np.dtype[Any], int, tuple[tuple[int, int], ...]]
"""Dtype, rank, and the axes whose size is known with that size."""


def _tensor_type(type_: Attribute | None) -> _TensorType | None:
    """What a tensor must be; None where dtype or rank are not known, or its elements count.

    An array of objects may hold other things than texts.
    """
    element = None if type_ is None else element_type(type_)
    known = None if element is None else element_of(element)
    dims = None if type_ is None else dims_of(type_)
    if known is None or dims is None or known.numpy == np.object_:
        return None
    sizes = tuple((axis, d) for axis, d in enumerate(dims) if isinstance(d, int) and d >= 0)
    return known.numpy, len(dims), sizes


def _is_as_it_should(value: Any, expected: _TensorType | None) -> bool:
    """The short way for arrays that fit; whatever else there is goes the long one."""
    if expected is None or type(value) is not np.ndarray:
        return False
    dtype, rank, sizes = expected
    shape = value.shape
    if value.dtype != dtype or len(shape) != rank or not value.flags.c_contiguous:
        return False
    for axis, size in sizes:
        if shape[axis] != size:
            return False
    return True


def type_text(attribute: Attribute) -> str:
    """A type as ONNX spells it; empty if it is not known."""
    match attribute:
        case SequenceType(element=element):
            return f"seq({type_text(element)})"
        case OptionalType(element=element):
            return f"optional({type_text(element)})"
        case MapType(key=key, value=value):
            known = element_of(key)
            return f"map({known.name if known else ''},{type_text(value)})"
        case SparseTensorType(dense=dense):
            return f"sparse_{type_text(dense)}"
        case _:
            element = element_type(attribute)
            known = None if element is None else element_of(element)
            return "" if known is None else f"tensor({known.name})"


def _value(port: Port, feed: Mapping[str, Any]) -> Any:
    value = feed.get(port.name)
    if value is None:
        if port.default is not None:
            return port.default
        if not (isinstance(port.type, OptionalType) and port.name in feed):
            expected = "" if port.type is None else f", {_described(port.type)}"
            raise InvalidArgumentError(f"input {port.name!r} is missing{expected}")
        return None
    return _fitting(value, port.type, f"input {port.name!r}")


def _fitting(value: Any, type_: Attribute | None, what: str) -> Any:
    match type_:
        case OptionalType(element=element):
            return None if value is None else _fitting(value, element, what)
        case SequenceType(element=element):
            if not isinstance(value, list | tuple):
                raise InvalidArgumentError(
                    f"{what} is {type(value).__name__}, expected a list: {_described(type_)}"
                )
            elements = enumerate(cast("Sequence[Any]", value))
            return [_fitting(item, element, f"{what}, element {i},") for i, item in elements]
        case MapType():
            return _map(value, type_, what)
        case _:
            return _tensor(value, type_, what)


def _map(value: Any, type_: MapType, what: str) -> dict[Any, Any]:
    """A dict whose keys are texts or integers, as the type says; scalars become Python's."""
    if not isinstance(value, Mapping):
        raise InvalidArgumentError(
            f"{what} is {type(value).__name__}, expected a dict: {_described(type_)}"
        )
    known = element_of(type_.key)
    is_text = known is None or known.numpy == np.object_
    fitting: dict[Any, Any] = {}
    for key, item in cast("Mapping[Any, Any]", value).items():
        kinds = (str,) if is_text else (int, np.integer)
        if isinstance(key, bool) or not isinstance(key, kinds):
            raise InvalidArgumentError(
                f"{what} has the key {key!r:.60}, expected {'str' if is_text else 'int'}: "
                f"{_described(type_)}"
            )
        array = _fitting(item, type_.value, f"{what}, key {key!r:.60},")
        is_scalar = isinstance(array, np.ndarray) and array.ndim == 0
        fitting[key if is_text else int(cast(Any, key))] = array.item() if is_scalar else array
    return fitting


def _tensor(value: Any, type_: Attribute | None, what: str) -> Any:
    """An array as it is; a Python number or list converted, if that has one exact meaning."""
    element = None if type_ is None else element_type(type_)
    known = None if element is None else element_of(element)
    if type_ is None or known is None:
        return cast(Any, value) if isinstance(value, list) else np.asarray(value)
    array: Array = _array(value) if _is_numpy(value) else _literal(value, known.numpy, what)
    if known.numpy == np.object_ and array.dtype.kind in "USO":
        array = _texts(array, what)
    if array.dtype != known.numpy:
        actual = BY_NUMPY.get(array.dtype)
        raise InvalidArgumentError(
            f"{what} is {actual.name if actual else array.dtype}, expected {known.name}; "
            f"convert it with astype if that is what you want"
        )
    _check_shape(array, type_, what)
    # Results must not hang on the strides of an input, and the order of sums does.
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def _is_numpy(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic)


def _array(value: Any) -> Array:
    return np.asarray(value)


def _check_shape(array: Array, type_: Attribute, what: str) -> None:
    dims = dims_of(type_)
    if dims is None:
        return
    if array.ndim != len(dims):
        raise InvalidArgumentError(
            f"{what} has rank {array.ndim} (shape {list(array.shape)}), "
            f"expected rank {len(dims)}: {_described(type_)}"
        )
    for axis, (size, dim) in enumerate(zip(array.shape, dims, strict=True)):
        if isinstance(dim, int) and 0 <= dim != size:
            raise InvalidArgumentError(
                f"{what} has size {size} on axis {axis} (shape {list(array.shape)}), "
                f"expected {dim}: {_described(type_)}"
            )


def _literal(value: Any, dtype: np.dtype[Any], what: str) -> Array:
    """A Python number or list as `dtype`.

    Integers and booleans must keep their value. Floats are literals: rounded to a float dtype, as
    in source code, but neither made integers nor infinite.
    """
    if dtype == np.object_:
        return np.asarray(value, np.object_)
    array = np.asarray(value)
    if array.size == 0 and array.dtype == np.float64:
        return array.astype(dtype)
    converted = None
    if _is_kin(array.dtype, dtype):
        with np.errstate(all="ignore"):
            converted = array.astype(dtype)
    if converted is None or not _keeps(array, converted):
        raise InvalidArgumentError(
            f"{what} is {value!r:.60}, which has no exact value as {BY_NUMPY[dtype].name}"
        )
    return converted


def _is_kin(given: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    if given.kind == "b" or wanted.kind == "b":
        return given.kind == wanted.kind
    if given.kind in "iu":
        return True
    is_real = given.kind == "f" and not _is_integer(wanted)
    return is_real or (given.kind == "c" and wanted.kind == "c")


def _is_integer(dtype: np.dtype[Any]) -> bool:
    # Sub-byte integers are user dtypes, whose kind says nothing.
    return "int" in dtype.name


def _keeps(given: Array, converted: Array) -> bool:
    if given.dtype.kind in "iu":
        exact = _is_integer(converted.dtype) or converted.dtype.kind == "c"
        back = converted if exact else converted.astype(np.float64)
        return bool(np.all(back.astype(object) == given.astype(object)))
    if given.dtype.kind in "fc":
        wide = converted.astype(given.dtype)
        return bool(np.all(np.isfinite(given) <= np.isfinite(wide)))
    return True


def _texts(array: Array, what: str) -> Array:
    """An array of `str`; bytes are UTF-8. Raises InvalidArgumentError naming what is no text."""
    if array.dtype == np.object_ and all(type(item) is str for item in array.flat):
        return array
    texts = np.empty(array.shape, np.object_)
    for index, item in np.ndenumerate(array.astype(np.object_)):
        place = f"{what}, element {list(index)}," if index else what
        try:
            text: object = item.decode() if isinstance(item, bytes) else item
        except UnicodeDecodeError as error:
            raise InvalidArgumentError(f"{place} is {item!r:.60}, which is no UTF-8") from error
        if not isinstance(text, str):
            raise InvalidArgumentError(f"{place} is {type(item).__name__}, expected str")
        texts[index] = str(text)
    return texts


def _described(type_: Attribute) -> str:
    dims = dims_of(type_)
    shape = "" if dims is None else f" [{', '.join('?' if d is None else str(d) for d in dims)}]"
    return f"{type_text(type_)}{shape}"
