"""Random models around what fusions look for: spellings, sizes, types, near misses, surroundings.

A family is a function that draws one core; `drawn` puts other nodes around it. The number of a
graph seeds everything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorShapeProto, ValueInfoProto, helper

import foldline
from tests.stages.passes.drawing import Array, Drawing

OPSETS = (9, 11, 12, 13, 14, 17, 18, 20, 21, 23, 24)
UNARY = ("Abs", "Identity", "LeakyRelu", "Neg", "Relu", "Tanh")
"""What may stand around a core: none of them enlarges an error."""
BRANCHED = 0.06
"""So many graphs stand in the branches of an If."""
SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40)


@dataclass
class Graph(Drawing):
    """One model in the making. What the core's operators give is read elsewhere now and then."""

    AS_NODES: ClassVar = 0.1
    OVERRIDABLE: ClassVar = 0.01

    opset: int = 17
    dtype: Any = np.float32
    taps: float = 0.0
    """How often an operator of the core is read by something else as well."""
    slips: float = 0.0
    """How often a number is another one than the core wants."""
    inputs: list[ValueInfoProto] = field(default_factory=list[ValueInfoProto])
    feed: dict[str, Array] = field(default_factory=dict[str, Array])
    outputs: list[str] = field(default_factory=list[str])
    options: dict[str, object] = field(default_factory=dict[str, object])
    step: float | None = None
    """What one quantum of a result is worth, where results are quantised."""
    sizes: dict[int, str] = field(default_factory=dict[int, str])
    """Names of dynamic sizes."""
    unnamed: bool = True
    """Whether dynamic sizes may have no name."""
    around: bool = False
    """Whether what is made is none of the core."""

    def normal(self, *shape: int, reach: float = 1.0) -> Array:
        """Numbers of the type of the graph."""
        return np.asarray(self.rng.standard_normal(shape) * reach).astype(self.dtype)

    def positive(self, *shape: int) -> Array:
        """Numbers from 1/4 to 2."""
        return np.asarray(self.rng.uniform(0.25, 2, shape)).astype(self.dtype)

    def size(self, *options: int) -> int:
        """A size of an axis, seldom 0."""
        return 0 if self.chance(0.02) else self.pick(options or (1, 2, 3, 5))

    def shape(self, least: int, most: int) -> tuple[int, ...]:
        """A shape of some rank."""
        return tuple(self.size() for _ in range(int(self.rng.integers(least, most + 1))))

    def number(self, value: float, rank: int = 0, dtype: Any = None) -> str:
        """A constant of one element, of a rank up to `rank`; seldom not quite this one."""
        if self.chance(self.slips):
            value = value * 1.25 + 0.01
        array = np.asarray(value, self.dtype if dtype is None else dtype)
        return self.constant(array.reshape((1,) * self.pick((0, 0, min(rank, 1), rank))))

    def input(self, array: Array, *, fixed: Sequence[int] = (), special: bool = False) -> str:
        """A graph input that is fed with an array. Axes of `fixed` have sizes that are told."""
        name = f"x{len(self.inputs)}"
        if special and array.size and array.dtype.kind == "f" and self.chance(0.3):
            array = array.copy()
            count = int(self.rng.integers(1, 4))
            array.flat[self.rng.integers(array.size, size=count)] = self.rng.choice(SPECIAL, count)
        told = {axis % max(array.ndim, 1) for axis in fixed}
        is_dynamic = self.chance(0.5)
        dims = [
            n if axis in told or not (is_dynamic and self.chance(0.6)) else self._named(n)
            for axis, n in enumerate(array.shape)
        ]
        element = helper.np_dtype_to_tensor_dtype(array.dtype)
        self.inputs.append(helper.make_tensor_value_info(name, element, dims))
        self.feed[name] = array
        return name

    def _named(self, size: int) -> str | None:
        if self.unnamed and self.chance(0.2):
            return None
        return self.sizes.setdefault(size, f"N{size}") if self.chance(0.7) else f"D{len(self.feed)}"

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """The only result of a node."""
        return self.ops(kind, *inputs, results=1, **attributes)[0]

    def ops(self, kind: str, *inputs: str, results: int, **attributes: Any) -> list[str]:
        """The results of a node."""
        names = [f"v{len(self.nodes)}_{place}" for place in range(results)]
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        for name in names:
            if not self.around and self.chance(self.taps):
                self.outputs.append(name)
        return names

    def both(self, kind: str, a: str, b: str) -> str:
        """A node whose operands stand in any order."""
        return self.op(kind, *((a, b) if self.chance(0.5) else (b, a)))

    def chain(self, x: str, most: int = 2) -> str:
        """A few nodes that are none of the core."""
        self.around = True
        for _ in range(int(self.rng.integers(most + 1))):
            x = self.op(self.pick(UNARY), x)
        self.around = False
        return x

    def mean(self, x: str, *axes: int, keepdims: int = 1) -> str:
        """ReduceMean in the form of the operator set."""
        if self.opset >= 18:
            return self.op("ReduceMean", x, self.ints(*axes), keepdims=keepdims)
        return self.op("ReduceMean", x, axes=axes, keepdims=keepdims)

    def clip(self, x: str, low: float, high: float) -> str:
        """Clip, or what is like it."""
        if self.opset < 11:
            return self.op("Clip", x, min=float(low), max=float(high))
        return self.op("Clip", x, *(self.number(bound) for bound in (low, high)))

    def split(self, x: str, *sizes: int, axis: int = -1) -> list[str]:
        """Split into given sizes."""
        if self.opset >= 13:
            return self.ops("Split", x, self.ints(*sizes), results=len(sizes), axis=axis)
        return self.ops("Split", x, results=len(sizes), split=sizes, axis=axis)

    def cut(self, x: str, start: int, end: int, axis: int, step: int = 1) -> str:
        """A Slice along one axis."""
        if self.opset < 10:
            return self.op("Slice", x, starts=[start], ends=[end], axes=[axis])
        bounds = [self.ints(value) for value in (start, end, axis)]
        return self.op("Slice", x, *bounds, *([] if step == 1 else [self.ints(step)]))

    def pad(self, x: str, pads: Sequence[int], value: float = 0.0) -> str:
        """Pad of mode constant."""
        if self.opset < 11:
            return self.op("Pad", x, pads=pads, value=float(value))
        plain = value == 0 and self.chance(0.5)
        return self.op("Pad", x, self.ints(*pads), *([] if plain else [self.number(value)]))

    def reshaped(self, x: str, *shape: int) -> str:
        """Reshape to constant sizes."""
        return self.op("Reshape", x, self.ints(*shape))

    def branch(self, condition: str) -> None:
        """Put all nodes into both branches of an If; constants stay outside."""
        inner = list(dict.fromkeys(self.outputs))
        made = [name for node in self.nodes for name in node.output]
        branches: dict[str, GraphProto] = {}
        for where in ("then", "else"):
            new = {name: f"{where}_{name}" for name in made}
            nodes = [_renamed(node, new) for node in self.nodes]
            held = [helper.make_tensor_value_info(new[name], 0, None) for name in inner]
            branches[f"{where}_branch"] = helper.make_graph(nodes, where, [], held)
        self.nodes = [helper.make_node("If", [condition], inner, **branches)]

    def model(self) -> ModelProto:
        """The model; what it gives is declared with more or less known of its sizes."""
        outputs = list(dict.fromkeys(self.outputs))
        held = [helper.make_tensor_value_info(name, 0, None) for name in outputs]
        inputs = [*self.inputs, *self.defaults()]
        graph = helper.make_graph(self.nodes, "g", inputs, held, self.tensors)
        ir_version = 8 if self.opset < 21 else 10
        opsets = [helper.make_opsetid("", self.opset)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=ir_version)
        model = onnx.shape_inference.infer_shapes(model, data_prop=True)
        del model.graph.value_info[:]
        if not all(output.type.tensor_type.HasField("shape") for output in model.graph.output):
            self._rank(model)
        for output in model.graph.output:
            for axis, dim in enumerate(output.type.tensor_type.shape.dim):
                if self.chance(0.15):
                    dim.dim_param = f"{output.name}_{axis}"
                elif self.chance(0.05):
                    dim.Clear()
        return model

    def _rank(self, model: ModelProto) -> None:
        """Declare the rank of outputs of which ONNX infers nothing: a valid model says so much."""
        for output, result in zip(model.graph.output, plain_values(model, self.feed), strict=True):
            kind = output.type.tensor_type
            if not kind.HasField("shape"):
                kind.shape.CopyFrom(TensorShapeProto())
                kind.shape.dim.extend([TensorShapeProto.Dimension() for _ in result.shape])


def plain_values(model: ModelProto, feed: Mapping[str, Array]) -> list[Array]:
    """What a session computes for a model that is left as it is."""
    return foldline.compile(model, options={"oo.level": "O0"}).session().run(None, dict(feed))


def _renamed(node: NodeProto, new: Mapping[str, str]) -> NodeProto:
    found = NodeProto()
    found.CopyFrom(node)
    found.input[:] = [new.get(name, name) for name in node.input]
    found.output[:] = [new[name] for name in node.output]
    return found


Core = Callable[[Graph], str | None]
"""Draws what a fusion may take; gives its result, or nothing if the core made outputs itself."""


@dataclass(frozen=True)
class Family:
    """A core, and what has to become of it."""

    core: Core
    passes: Sequence[str]
    """Each of them changes some graphs."""
    opsets: Sequence[int] = OPSETS
    dtypes: Sequence[Any] = (np.float32, np.float32, np.float32, np.float64, np.float16)
    limits: Mapping[Any, float] = field(
        default_factory=lambda: {np.float32: 2e-5, np.float64: 1e-12, np.float16: 8e-3}
    )
    """How far results may move, of the largest, by the type of the graph."""
    by_inputs: bool = False
    """Whether that is of the largest input, where it is larger than the results."""
    share: float = 0.3
    """At least so many of the graphs are changed by one of the passes."""


def drawn(family: Family, number: int) -> Graph:
    """A graph of a family."""
    rng = np.random.default_rng(number)
    graph = Graph(rng)
    graph.opset, graph.dtype = graph.pick(family.opsets), graph.pick(family.dtypes)
    miss = graph.pick(("", "", "", "taps", "slips"))
    graph.taps, graph.slips = 0.15 * (miss == "taps"), 0.2 * (miss == "slips")
    result = family.core(graph)
    if result is not None:
        graph.outputs.append(graph.chain(result))
    if graph.opset >= 11 and graph.chance(BRANCHED):
        graph.branch(graph.input(np.asarray(graph.chance(0.5))))
    return graph
