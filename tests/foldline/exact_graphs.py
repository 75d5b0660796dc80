"""Chains of float arithmetic drawn from a seed: products, sums, functions, layouts, odd numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import helper, numpy_helper

Array = np.ndarray
SPECIAL = (0x7FC00001, 0xFFC00000, 0x7F800000, 0xFF800000, 0x80000000, 0, 1, 0x807FFFFF)
UNARY = ("Relu", "Exp", "Tanh", "Sigmoid", "Abs", "Neg", "Sqrt", "Erf", "Floor", "Softplus", "Sin")
BINARY = ("Add", "Sub", "Mul", "Div", "Max", "Min", "PRelu")
REDUCTIONS = ("Sum", "Mean", "Max", "Min", "L2", "LogSumExp", "Prod")


class _Chain:
    """A value of rank 4 that operators are put behind, and what is kept of it as outputs."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        shape = [int(n) for n in self.random.integers(1, 6, 4)]
        if seed % 4 == 3:  # A quarter has no elements, along each axis in turn.
            shape[seed // 4 % 4] = 0
        self.shape = tuple(shape)
        self.value = "x"
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []
        self.outputs: list[str] = []

    def numbers(self, shape: tuple[int, ...]) -> Array:
        values = self.random.standard_normal(shape).astype(np.float32)
        if self.random.random() < 0.3 and values.size:
            bits = values.reshape(-1).view(np.uint32)
            bits[self.random.integers(0, bits.size)] = self.random.choice(SPECIAL)
        return values

    def constant(self, value: Array) -> str:
        name = f"c{len(self.tensors)}"
        self.tensors.append(numpy_helper.from_array(value, name))
        return name

    def weights(self, *shape: int) -> str:
        """A constant, or one that folds."""
        name = self.constant(self.numbers(shape))
        if self.random.random() < 0.5:
            other = self.constant(self.numbers(shape[-1:]))
            name = self.add(str(self.random.choice(["Mul", "Add"])), [name, other])
        return name

    def add(self, op_type: str, inputs: list[str], **attributes: object) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [name], f"n{name}", **attributes))
        return name

    def then(self, op_type: str, *others: str, **attributes: object) -> None:
        self.value = self.add(op_type, [self.value, *others], **attributes)


def _unary(c: _Chain) -> None:
    c.then(str(c.random.choice(UNARY)))


def _binary(c: _Chain) -> None:
    c.then(str(c.random.choice(BINARY)), c.weights(*c.shape[1:]))


def _clip(c: _Chain) -> None:
    low, high = (c.constant(np.float32(v)) for v in (-0.0, 2))
    c.then("Clip", low, high)


def _matmul(c: _Chain) -> None:
    n = int(c.random.integers(1, 9))
    c.then("MatMul", c.weights(c.shape[-1], n))
    c.shape = (*c.shape[:-1], n)
    if c.random.random() < 0.6:
        c.then("Add", c.constant(c.numbers((n,))))


def _conv(c: _Chain) -> None:
    if 0 in c.shape[1:]:  # No window fits.
        return
    maps = int(c.random.integers(1, 5))
    group = c.shape[1] if c.random.random() < 0.4 else 1
    maps = maps * group if group > 1 else maps
    inputs = [c.weights(maps, c.shape[1] // group, 3, 3)]
    if c.random.random() < 0.5:
        inputs.append(c.constant(c.numbers((maps,))))
    c.then("Conv", *inputs, pads=[1, 1, 1, 1], group=group)
    c.shape = (c.shape[0], maps, *c.shape[2:])
    if c.random.random() < 0.5:
        c.then("BatchNormalization", *(c.constant(abs(c.numbers((maps,)))) for _ in range(4)))


def _pool(c: _Chain) -> None:
    if 0 in c.shape[1:]:
        return
    op_type = str(c.random.choice(["MaxPool", "AveragePool"]))
    c.then(op_type, kernel_shape=[3, 3], pads=[1, 1, 1, 1])


def _softmax(c: _Chain) -> None:
    op_type = str(c.random.choice(["Softmax", "LogSoftmax"]))
    c.then(op_type, axis=int(c.random.integers(-4, 4)))


def _normalise(c: _Chain) -> None:
    c.then("LayerNormalization", c.weights(c.shape[-1]), c.weights(c.shape[-1]))


def _transpose(c: _Chain) -> None:
    order = [int(axis) for axis in c.random.permutation(4)]
    c.then("Transpose", perm=order)
    c.shape = tuple(c.shape[axis] for axis in order)


def _reshape(c: _Chain) -> None:
    c.shape = (c.shape[1], c.shape[0], c.shape[3], c.shape[2])
    keywords = {"allowzero": 1} if 0 in c.shape else {}
    c.then("Reshape", c.constant(np.array(c.shape)), **keywords)


def _reduce(c: _Chain) -> None:
    axes = sorted({int(axis) for axis in c.random.integers(0, 4, 2)})
    reduced = "Reduce" + str(c.random.choice(REDUCTIONS))
    c.outputs.append(c.add(reduced, [c.value, c.constant(np.array(axes))]))


def _branch(c: _Chain) -> None:
    other = c.add(str(c.random.choice(UNARY)), [c.value])
    c.value = c.add(str(c.random.choice(BINARY)), [c.value, other])


_STEPS: tuple[Callable[[_Chain], None], ...] = (
    _unary,
    _binary,
    _clip,
    _matmul,
    _conv,
    _pool,
    _softmax,
    _normalise,
    _transpose,
    _transpose,
    _reshape,
    _reduce,
    _branch,
)


def graph(seed: int) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A model of about a dozen nodes, and an input that it runs on."""
    chain = _Chain(seed)
    shape, x = list(chain.shape), chain.numbers(chain.shape)
    for step in chain.random.integers(0, len(_STEPS), 8):
        _STEPS[step](chain)
    outputs = [*chain.outputs, chain.add("Identity", [chain.value])]
    made = helper.make_graph(
        chain.nodes,
        "chain",
        [helper.make_tensor_value_info("x", 1, shape)],
        [helper.make_tensor_value_info(name, 1, None) for name in outputs],
        chain.tensors,
    )
    imports = [helper.make_opsetid("", 18)]
    return helper.make_model(made, opset_imports=imports, ir_version=8), {"x": x}
