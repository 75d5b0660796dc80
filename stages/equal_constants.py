"""A table of constants by their bits, linear in what they begin with."""

from __future__ import annotations

from collections import ChainMap
from typing import Any, Generic, TypeVar

from foldline.dialects.onnx.tensor import Tensor, data_bytes

HEAD = 16
"""So many elements tell most constants of one shape apart."""

Item = TypeVar("Item")
_Key = tuple[Any, ...]


class TensorTable(Generic[Item]):
    """One item for each tensor of a type, a shape and bits."""

    def __init__(self) -> None:
        self._known: ChainMap[_Key, tuple[Tensor, Item]] = ChainMap()

    def inner(self) -> TensorTable[Item]:
        """A table that knows what this one does; what is added to it is not added here."""
        table: TensorTable[Item] = TensorTable()
        table._known = self._known.new_child()
        return table

    def find_or_add(self, tensor: Tensor, item: Item) -> Item:
        """The item that is known for these bits; where there is none, `item` is from now on.

        Digests are taken only of tensors that begin alike.
        """
        key = _key(tensor)
        if (first := self._known.get(key)) is not None:
            if first[0] == tensor:
                return first[1]
            key = (*key, tensor.digest)
        return self._known.setdefault(key, (tensor, item))[1]


def _key(tensor: Tensor) -> _Key:
    """What equal tensors have in common, read from their first elements."""
    array = tensor.array
    return array.dtype.str, array.dtype.name, array.shape, data_bytes(array.flat[:HEAD])
