"""Graphs drawn at random, of operators that folding, shape arithmetic and cleanup look at.

While a graph is drawn each node is computed, so that the next one can be given what suits it:
every graph runs on the inputs it is drawn with. Those hold NaN, infinities, -0, no elements, one
element; sizes of inputs are numbers or names. Inputs, constants and results mix freely, so much of
a graph folds, and the rest reads what was folded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from hypothesis import strategies as st
from onnx import helper, numpy_helper

import foldline.kernels
from foldline.kernels.registry import compute, find_kernel

Array = npt.NDArray[Any]
Draw = Callable[[st.SearchStrategy[Any]], Any]

assert foldline.kernels, "importing it registers the kernels"
OPSETS = (18, 21)
MAX_ELEMENTS = 64
FLOATS = (0.0, -0.0, 1.0, -1.5, 3.0, 1e-30, 3e38, np.inf, -np.inf, np.nan)
DTYPES = (np.dtype(np.float32), np.dtype(np.int64), np.dtype(np.bool_))
CAST_TO = {np.dtype(np.float32): 1, np.dtype(np.int64): 7, np.dtype(np.bool_): 9}


@dataclass(frozen=True)
class Drawn:
    """A model, and inputs that it runs on."""

    model: onnx.ModelProto
    feed: dict[str, Array]


@st.composite
def graphs(draw: Draw) -> Drawn:
    """A graph of up to two dozen nodes."""
    graph = _Graph(draw, draw(st.sampled_from(OPSETS)))
    for _ in range(draw(st.integers(1, 3))):
        graph.add_input()
    for _ in range(draw(st.integers(6, 24))):
        draw(st.sampled_from(_STEPS))(graph)
    return graph.finished()


@dataclass
class _Graph:
    draw: Draw
    opset: int
    values: dict[str, Array] = field(default_factory=dict[str, Array])
    """What each name holds on the inputs drawn."""
    inputs: dict[str, Sequence[int | str]] = field(default_factory=dict[str, Any])
    initializers: list[onnx.TensorProto] = field(default_factory=list[onnx.TensorProto])
    nodes: list[onnx.NodeProto] = field(default_factory=list[onnx.NodeProto])
    count: int = 0

    def name(self) -> str:
        """A fresh name."""
        self.count += 1
        return f"v{self.count}"

    def add_input(self) -> None:
        """An input with some sizes unknown."""
        name, array = self.name(), self.array()
        unknown = self.draw(st.integers(0, 7))
        dims = [f"{name}_{i}" if unknown >> i & 1 else n for i, n in enumerate(array.shape)]
        self.inputs[name], self.values[name] = dims, array

    def array(self, dtype: np.dtype[Any] | None = None) -> Array:
        """An array of at most three axes."""
        dtype = dtype or self.draw(st.sampled_from(DTYPES))
        shape = tuple(self.draw(st.lists(st.integers(0, 3), max_size=3)))
        size = int(np.prod(shape))
        of = st.sampled_from(FLOATS) if dtype.kind == "f" else st.integers(-2, 3)
        items = self.draw(st.lists(of, min_size=size, max_size=size))
        return np.array(items, dtype).reshape(shape)

    def constant(self, array: Any, dtype: npt.DTypeLike = np.int64) -> str:
        """An initializer, or at times a Constant node."""
        name, array = self.name(), np.asarray(array, dtype)
        tensor = numpy_helper.from_array(array, name)
        if self.draw(st.booleans()):
            self.nodes.append(helper.make_node("Constant", [], [name], value=tensor))
        else:
            self.initializers.append(tensor)
        self.values[name] = array
        return name

    def pick(self, suits: Callable[[Array], bool], make: np.dtype[Any] | None = None) -> str | None:
        """A value that suits, or now and then a constant of that element type."""
        if make is not None and self.draw(st.integers(0, 3)) == 0:
            array = self.array(make)
            return self.constant(array, make) if suits(array) else None
        found = [name for name, array in self.values.items() if suits(array)]
        return self.draw(st.sampled_from(found)) if found else None

    def add(self, op_type: str, inputs: Iterable[str | None], **attributes: Any) -> str | None:
        """A node, unless an input was not found or the result is large."""
        names = list(inputs)
        if None in names:
            return None
        arrays = [self.values[name] if name else None for name in names if name is not None]
        result = evaluate(op_type, self.opset, arrays, attributes)
        if result.size > MAX_ELEMENTS or result.ndim > 5:
            return None
        name = self.name()
        self.nodes.append(helper.make_node(op_type, names, [name], f"n_{name}", **attributes))
        self.values[name] = result
        return name

    def finished(self) -> Drawn:
        """The model; outputs are the last value and some others, of unknown sizes."""
        results = [output for node in self.nodes for output in node.output]
        some = self.draw(st.lists(st.sampled_from(results), max_size=5)) if results else []
        chosen = list(dict.fromkeys([*some, *results[-1:]])) or list(self.inputs)[:1]
        graph = helper.make_graph(
            self.nodes,
            "drawn",
            [self._declared(name, dims) for name, dims in self.inputs.items()],
            [self._declared(name, [None] * self.values[name].ndim) for name in chosen],
            self.initializers,
        )
        imports = [helper.make_opsetid("", self.opset)]
        model = helper.make_model(graph, opset_imports=imports, ir_version=8)
        return Drawn(model, {name: self.values[name] for name in self.inputs})

    def _declared(self, name: str, dims: Sequence[int | str | None]) -> onnx.ValueInfoProto:
        element = helper.np_dtype_to_tensor_dtype(self.values[name].dtype)
        return helper.make_tensor_value_info(name, element, dims)


def evaluate(op_type: str, opset: int, inputs: Sequence[Any], attributes: dict[str, Any]) -> Array:
    """What the reference kernel of an operator gives."""
    schema = onnx.defs.get_schema(op_type, opset)
    defaults = {
        name: helper.get_attribute_value(row.default_value)
        for name, row in schema.attributes.items()
        if row.default_value.name
    }
    given = {name: tuple(v) if isinstance(v, list) else v for name, v in attributes.items()}
    entry = find_kernel("", op_type, schema.since_version, ["reference"])
    assert entry is not None, op_type
    plain = {k: v.decode() if isinstance(v, bytes) else v for k, v in (defaults | given).items()}
    with np.errstate(all="ignore"):
        return np.asarray(compute(entry, inputs, **plain))


def _is_float(array: Array) -> bool:
    return array.dtype == np.float32


def _is_number(array: Array) -> bool:
    return array.dtype.kind in "fi"


def _is_shape(array: Array) -> bool:
    """A vector of sizes, as shape arithmetic has them."""
    is_vector = array.dtype == np.int64 and array.ndim == 1 and array.size < 5
    return is_vector and bool(((array >= 0) & (array <= MAX_ELEMENTS)).all())


def _any(array: Array) -> bool:
    return True


def _unary(g: _Graph) -> None:
    op_type = g.draw(st.sampled_from(["Neg", "Abs", "Relu", "Identity", "Exp", "Sqrt", "Floor"]))
    suits = _is_float if op_type in ("Exp", "Sqrt", "Floor") else _is_number
    g.add(op_type, [g.pick(suits, np.dtype(np.float32))])


def _fits(first: Array) -> Callable[[Array], bool]:
    def suits(other: Array) -> bool:
        try:
            np.broadcast_shapes(first.shape, other.shape)
        except ValueError:
            return False
        return other.dtype == first.dtype

    return suits


def _binary(g: _Graph) -> None:
    first = g.pick(_is_number, np.dtype(np.float32))
    if first is None:
        return
    a = g.values[first]
    # Which zero the larger of -0 and 0 is hangs on the loop that NumPy takes.
    ops = ["Add", "Sub", "Mul", "Equal", "Less", *(["Div"] if _is_float(a) else ["Max", "Min"])]
    pair = [first, g.pick(_fits(a), a.dtype)]
    if g.draw(st.booleans()):
        pair.reverse()
    g.add(g.draw(st.sampled_from(ops)), pair)


def _where(g: _Graph) -> None:
    condition = g.pick(lambda a: a.dtype == np.bool_, np.dtype(np.bool_))
    first = g.pick(_is_number, np.dtype(np.float32))
    if condition is None or first is None:
        return
    second = g.pick(_fits(g.values[first]), g.values[first].dtype)
    shapes = [g.values[name].shape for name in (condition, first, second) if name]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return
    g.add("Where", [condition, first, second])


def _cast(g: _Graph) -> None:
    to = g.draw(st.sampled_from(DTYPES))

    def suits(a: Array) -> bool:
        # What a float out of range becomes as an integer hangs on the machine.
        return to.kind != "i" or a.dtype.kind != "f" or bool((np.abs(a) < 1e9).all())

    g.add("Cast", [g.pick(suits)], to=CAST_TO[to])


def _shape(g: _Graph) -> None:
    start, end = g.draw(st.integers(-3, 3)), g.draw(st.none() | st.integers(-3, 3))
    attributes = {"start": start} if end is None else {"start": start, "end": end}
    g.add("Shape", [g.pick(_any)], **attributes)


def _size(g: _Graph) -> None:
    g.add("Size", [g.pick(_any)])


def _gather(g: _Graph) -> None:
    data = g.pick(lambda a: a.ndim > 0 and a.shape[0] > 0)
    if data is not None:
        n = g.values[data].shape[0]
        index = g.draw(st.integers(-n, n - 1) | st.lists(st.integers(-n, n - 1), max_size=3))
        g.add("Gather", [data, g.constant(index)], axis=0)


def _unsqueeze(g: _Graph) -> None:
    data = g.pick(lambda a: a.ndim < 3)
    if data is not None:
        g.add("Unsqueeze", [data, g.constant([g.draw(st.integers(-1, 0))])])


def _squeeze(g: _Graph) -> None:
    g.add("Squeeze", [g.pick(lambda a: 1 in a.shape)])


def _concat(g: _Graph) -> None:
    first = g.pick(lambda a: a.ndim > 0)
    if first is None:
        return
    a = g.values[first]
    axis = g.draw(st.integers(0, a.ndim - 1))

    def suits(b: Array) -> bool:
        rest = [s[:axis] + s[axis + 1 :] for s in (a.shape, b.shape)]
        return b.dtype == a.dtype and b.ndim == a.ndim and rest[0] == rest[1]

    count = g.draw(st.integers(0, 2))
    g.add("Concat", [first, *(g.pick(suits, a.dtype) for _ in range(count))], axis=axis)


def _slice(g: _Graph) -> None:
    data = g.pick(lambda a: a.ndim > 0)
    if data is not None:
        axis = g.draw(st.integers(0, g.values[data].ndim - 1))
        bounds = [g.draw(st.integers(-4, 4) | st.just(2**62)) for _ in range(2)]
        step = g.draw(st.sampled_from([1, 1, 2, -1]))
        tail = [g.constant([number]) for number in (*bounds, axis, step)]
        g.add("Slice", [data, *tail])


def _transpose(g: _Graph) -> None:
    data = g.pick(lambda a: a.ndim > 0)
    if data is not None:
        order = g.draw(st.permutations(range(g.values[data].ndim)))
        g.add("Transpose", [data], perm=list(order))


def _reshape(g: _Graph) -> None:
    data = g.pick(_any)
    if data is None:
        return
    array = g.values[data]

    def is_target(a: Array) -> bool:
        return _is_shape(a) and 0 not in a and a.prod() == array.size

    found = g.pick(is_target)
    if found is None or g.draw(st.booleans()):
        shape = list(g.draw(st.permutations(array.shape)))
        if shape and array.size and g.draw(st.booleans()):
            shape[g.draw(st.integers(0, len(shape) - 1))] = -1
        if 0 in shape:
            g.add("Reshape", [data, g.constant(shape)], allowzero=1)
            return
        found = g.constant(shape)
    g.add("Reshape", [data, found])


def _expand(g: _Graph) -> None:
    data = g.pick(_any)
    if data is None:
        return
    array = g.values[data]

    def is_target(a: Array) -> bool:
        return _is_shape(a) and _broadcasts(array, a)

    g.add("Expand", [data, g.pick(is_target, np.dtype(np.int64))])


def _broadcasts(array: Array, sizes: Array) -> bool:
    try:
        shape = np.broadcast_shapes(array.shape, tuple(sizes.tolist()))
    except ValueError:
        return False
    return math.prod(shape) <= MAX_ELEMENTS


def _constant_of_shape(g: _Graph) -> None:
    def suits(a: Array) -> bool:
        return _is_shape(a) and a.prod() <= MAX_ELEMENTS

    value = numpy_helper.from_array(np.array([g.draw(st.sampled_from(FLOATS))], np.float32), "v")
    name = g.pick(suits)
    if name is not None:
        result, shape = g.name(), tuple(g.values[name])
        g.nodes.append(helper.make_node("ConstantOfShape", [name], [result], value=value))
        g.values[result] = np.full(shape, numpy_helper.to_array(value)[0], np.float32)


def _reduce(g: _Graph) -> None:
    # Whether a zero is found first or last may decide a sign: no Max and Min of floats.
    data = g.pick(lambda a: _is_number(a) and a.ndim > 0, np.dtype(np.float32))
    if data is None:
        return
    array = g.values[data]
    ops = ["ReduceSum", "ReduceProd"] + ["ReduceMax", "ReduceMin"] * (array.dtype.kind == "i")
    op_type = g.draw(st.sampled_from(ops))
    keepdims = g.draw(st.integers(0, 1))
    if "M" in op_type and 0 in array.shape:
        return
    axes = g.draw(st.lists(st.integers(0, array.ndim - 1), min_size=1, unique=True))
    g.add(op_type, [data, g.constant(axes)], keepdims=keepdims)


def _if(g: _Graph) -> None:
    condition = g.pick(lambda a: a.dtype == np.bool_ and a.size == 1)
    if condition is None or g.draw(st.booleans()):
        condition = g.add("Cast", [g.add("Size", [g.pick(_any)])], to=CAST_TO[np.dtype(np.bool_)])
    data = g.pick(_is_float, np.dtype(np.float32))
    if condition is None or data is None:
        return
    array = g.values[data]
    branches = [_branch(g, data) for _ in range(2)]
    result = g.name()
    g.nodes.append(
        helper.make_node(
            "If",
            [condition],
            [result],
            f"n_{result}",
            then_branch=branches[0][0],
            else_branch=branches[1][0],
        )
    )
    g.values[result] = branches[0 if bool(g.values[condition].item()) else 1][1]
    assert g.values[result].dtype == array.dtype


def _branch(g: _Graph, data: str) -> tuple[onnx.GraphProto, Array]:
    """A body that negates or doubles an outer value by way of a constant that folds."""
    names = [g.name() for _ in range(3)]
    array = g.values[data]
    factor = np.float32(g.draw(st.sampled_from([2.0, -1.0])))
    nodes = [
        helper.make_node("Neg", [names[0]], [names[1]]),
        helper.make_node("Mul", [data, names[1]], [names[2]]),
    ]
    output = helper.make_tensor_value_info(names[2], 1, [None] * array.ndim)
    tensors = [numpy_helper.from_array(-factor, names[0])]
    with np.errstate(all="ignore"):
        return helper.make_graph(nodes, names[1], [], [output], tensors), array * factor


_STEPS = (
    _unary,
    _binary,
    _binary,
    _where,
    _cast,
    _shape,
    _shape,
    _size,
    _gather,
    _unsqueeze,
    _squeeze,
    _concat,
    _slice,
    _transpose,
    _reshape,
    _reshape,
    _expand,
    _constant_of_shape,
    _reduce,
    _if,
    _if,
)
