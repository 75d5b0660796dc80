"""What generators of random models have in common: every choice is drawn from one generator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, TensorProto, helper, numpy_helper

Array = npt.NDArray[Any]
T = TypeVar("T")


@dataclass
class Drawing:
    """Nodes and constants of one model."""

    AS_NODES: ClassVar = 0.2
    """So many of the constants are nodes."""
    OVERRIDABLE: ClassVar = 0.03
    """So many of the others may be given by callers."""

    rng: np.random.Generator
    nodes: list[NodeProto] = field(default_factory=list[NodeProto])
    tensors: list[TensorProto] = field(default_factory=list[TensorProto])
    overridable: list[str] = field(default_factory=list[str])

    def chance(self, probability: float) -> bool:
        """Whether something of this probability happens."""
        return bool(self.rng.random() < probability)

    def pick(self, options: Sequence[T]) -> T:
        """One of several."""
        return options[int(self.rng.integers(len(options)))]

    def constant(self, array: Array) -> str:
        """An initializer, seldom overridable, or a Constant node."""
        name = f"k{len(self.tensors) + len(self.nodes)}"
        tensor = numpy_helper.from_array(array, name)
        if self.chance(self.AS_NODES):
            self.nodes.append(helper.make_node("Constant", [], [name], value=tensor))
            return name
        self.tensors.append(tensor)
        if self.chance(self.OVERRIDABLE):
            self.overridable.append(name)
        return name

    def ints(self, *values: int) -> str:
        """A constant vector."""
        return self.constant(np.asarray(values, np.int64))

    def defaults(self) -> list[Any]:
        """The inputs that the overridable constants are."""
        held = {tensor.name: tensor for tensor in self.tensors}
        return [
            helper.make_tensor_value_info(name, held[name].data_type, list(held[name].dims))
            for name in self.overridable
        ]
