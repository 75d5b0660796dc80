"""ONNX's backend interface, so that whatever drives an ONNX backend can drive Foldline.

`prepare(model).run(inputs)`, `run_model` and `run_node`, on the CPU only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import helper, shape_inference
from onnx.backend.base import Backend, BackendRep, Device, DeviceType

import foldline
from foldline.support.errors import InvalidArgumentError

Inputs: TypeAlias = Sequence[Any] | Mapping[str, Any]
"""Values in the order of the graph inputs, or by name: tensors, lists, or None if absent."""


class FoldlineModel(BackendRep):
    """A compiled model that takes inputs by position."""

    def __init__(self, model: onnx.ModelProto, options: Mapping[str, Any]) -> None:
        initializers = {tensor.name for tensor in model.graph.initializer}
        initializers.update(tensor.values.name for tensor in model.graph.sparse_initializer)
        self._names = [value.name for value in model.graph.input]
        self._required = [name for name in self._names if name not in initializers]
        self._session = foldline.compile(model, options=dict(options)).session()

    def run(self, inputs: Inputs, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs in the order of the graph.

        By position come either the inputs without initializer, or all of them. Raises
        InvalidArgumentError when their number is neither.
        """
        return tuple(self._session.run(None, self._feed(inputs)))

    def _feed(self, inputs: Inputs) -> dict[str, Any]:
        if isinstance(inputs, Mapping):
            return dict(inputs)
        for names in (self._required, self._names):
            if len(inputs) == len(names):
                return dict(zip(names, inputs, strict=True))
        counts = " or ".join(map(str, sorted({len(self._required), len(self._names)})))
        raise InvalidArgumentError(f"the model takes {counts} inputs, got {len(inputs)}")


class FoldlineBackend(Backend):
    """Foldline as an ONNX backend."""

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether `device` is the CPU."""
        return Device(device).type == DeviceType.CPU

    @classmethod
    def prepare(
        cls,
        model: onnx.ModelProto,
        device: str = "CPU",
        *,
        options: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> FoldlineModel:
        """Compile a model; `options` are those of `foldline.compile`, other keywords are ignored.

        Raises InvalidArgumentError for a device that is not the CPU.
        """
        if not cls.supports_device(device):
            raise InvalidArgumentError(f"device {device!r} is not supported, only CPU is")
        return FoldlineModel(model, options or {})

    @classmethod
    def run_model(
        cls, model: onnx.ModelProto, inputs: Inputs, device: str = "CPU", **kwargs: Any
    ) -> tuple[Any, ...]:
        """Compile and run once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Inputs,
        device: str = "CPU",
        outputs_info: Sequence[tuple[np.dtype[Any], tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Run one node on tensors, at `opset_version` or the newest of its domain.

        Types of outputs are inferred, so `outputs_info` is not needed.
        """
        version = kwargs.pop("opset_version", None) or _newest_version(node.domain)
        names = dict.fromkeys(name for name in node.input if name)
        values = inputs if isinstance(inputs, Mapping) else dict(zip(names, inputs, strict=True))
        model = _single_node_model(node, values, version)
        return cls.run_model(model, values, device, **kwargs)


def _newest_version(domain: str) -> int:
    schemas = onnx.defs.get_all_schemas()
    return max((schema.since_version for schema in schemas if schema.domain == domain), default=1)


def _single_node_model(
    node: onnx.NodeProto, values: Mapping[str, Any], version: int
) -> onnx.ModelProto:
    arrays = {name: np.asarray(value) for name, value in values.items()}
    graph = helper.make_graph(
        [node],
        "node",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for name, array in arrays.items()
        ],
        [onnx.ValueInfoProto(name=name) for name in node.output if name],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(node.domain, version)])
    return shape_inference.infer_shapes(model, strict_mode=True)


is_compatible = FoldlineBackend.is_compatible
prepare = FoldlineBackend.prepare
run_model = FoldlineBackend.run_model
run_node = FoldlineBackend.run_node
supports_device = FoldlineBackend.supports_device
