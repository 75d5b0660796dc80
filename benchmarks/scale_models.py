"""Five generated models of any size: each stresses what is often quadratic in a compiler.

A builder takes about how many nodes to make. Everything grows with that number: at 100,000 nodes
they are a chain; a value with 50,000 readers and Concats of 10,000 inputs; 1,000 chains of 20
nested shape computations; 200 If with 500 nodes each; and 30 operator types with names everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle, islice

import numpy as np
from onnx import (
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)

UNARY = ("Relu", "Neg", "Abs", "Sigmoid", "Tanh", "Exp", "Sqrt", "Floor", "Ceil", "Identity")
BINARY = ("Add", "Sub", "Mul", "Div", "Max", "Min")
MIXED_UNARY = (
    *UNARY,
    *("Erf", "Softplus", "Softsign", "Elu", "Selu", "LeakyRelu", "HardSigmoid", "HardSwish"),
    *("Reciprocal", "Sign", "Round", "Softmax", "Transpose", "Celu"),
)
WIDTH = 4


def chain(nodes: int) -> ModelProto:
    """x -> op -> op -> …, every other one with a constant made by an operator that folds."""
    graph = _graph("chain")
    graph.initializer.append(numpy_helper.from_array(np.ones(WIDTH, np.float32), "one"))
    value = "x"
    for index, (unary, binary) in enumerate(islice(cycle(_pairs()), nodes // 3)):
        graph.node.append(helper.make_node("Neg", ["one"], [f"c{index}"]))
        graph.node.append(helper.make_node(binary, [value, f"c{index}"], [f"b{index}"]))
        graph.node.append(helper.make_node(unary, [f"b{index}"], [f"u{index}"]))
        value = f"u{index}"
    graph.output.append(_float(value, [WIDTH]))
    return _model(graph)


def wide(nodes: int) -> ModelProto:
    """One value with half of the nodes as readers; the rest reads those and ends in Concats."""
    graph = _graph("wide")
    readers = nodes // 2
    for index, unary in enumerate(islice(cycle(UNARY[:9]), readers)):
        graph.node.append(helper.make_node(unary, ["x"], [f"r{index}"]))
        graph.node.append(helper.make_node("Neg", [f"r{index}"], [f"a{index}"]))
    step = nodes // 10
    for start in range(0, readers, step):
        names = [f"a{index}" for index in range(start, min(start + step, readers))]
        graph.node.append(helper.make_node("Concat", names, [f"y{start}"], axis=0))
        graph.output.append(_float(f"y{start}", [len(names) * WIDTH]))
    return _model(graph)


def shape_chains(nodes: int) -> ModelProto:
    """Chains in which each Reshape takes its target from the shape of the Reshape before it."""
    graph = _graph("shape_chains")
    graph.input[0].CopyFrom(_float("x", ["batch", WIDTH]))
    for name, value in (("zero", [0]), ("rest", [-1])):
        graph.initializer.append(numpy_helper.from_array(np.array(value, np.int64), name))
    for number in range(nodes // 100):
        value = "x"
        for depth in range(20):
            tag = f"{number}_{depth}"
            graph.node.append(helper.make_node("Shape", [value], [f"s{tag}"]))
            graph.node.append(helper.make_node("Gather", [f"s{tag}", "zero"], [f"g{tag}"]))
            graph.node.append(helper.make_node("Concat", [f"g{tag}", "rest"], [f"t{tag}"], axis=0))
            graph.node.append(helper.make_node("Reshape", [value, f"t{tag}"], [f"r{tag}"]))
            graph.node.append(helper.make_node(UNARY[depth % 9], [f"r{tag}"], [f"v{tag}"]))
            value = f"v{tag}"
        graph.output.append(_float(value, ["batch", WIDTH]))
    return _model(graph)


def control_flow(nodes: int) -> ModelProto:
    """If after If, with 250 nodes in each branch that read an outer value."""
    graph = _graph("control_flow")
    graph.input.append(helper.make_tensor_value_info("flag", TensorProto.BOOL, []))
    value = "x"
    for number in range(nodes // 500):
        branches = {
            f"{side}_branch": _branch(f"{side}{number}", value, 250) for side in ("then", "else")
        }
        graph.node.append(helper.make_node("If", ["flag"], [f"if{number}"], **branches))
        value = f"if{number}"
    graph.output.append(_float(value, [WIDTH]))
    return _model(graph)


def mixed(nodes: int) -> ModelProto:
    """Thirty operator types in chains of 100; each node and value has a name and a type."""
    graph = _graph("mixed")
    graph.input[0].CopyFrom(_float("x", [WIDTH, WIDTH]))
    graph.initializer.append(
        numpy_helper.from_array(np.full((WIDTH, WIDTH), 0.5, np.float32), "weights/half:0")
    )
    operators = cycle((*MIXED_UNARY, *BINARY))
    for number in range(nodes // 100):
        value = "x"
        for depth, operator in enumerate(islice(operators, 100)):
            extra = ["weights/half:0"] if operator in BINARY else []
            name = f"block{number}/layer{depth}/{operator}"
            output = f"{name}:0"
            graph.node.append(helper.make_node(operator, [value, *extra], [output], name=name))
            graph.value_info.append(_float(output, [WIDTH, WIDTH]))
            value = output
        graph.output.append(graph.value_info.pop())
    return _model(graph)


BUILDERS: dict[str, Callable[[int], ModelProto]] = {
    builder.__name__: builder for builder in (chain, wide, shape_chains, control_flow, mixed)
}


def _pairs() -> list[tuple[str, str]]:
    return [(UNARY[index % 9], BINARY[index % 6]) for index in range(18)]


def _branch(tag: str, outer: str, nodes: int) -> GraphProto:
    body: list[NodeProto] = []
    value = outer
    for index, unary in enumerate(islice(cycle(UNARY[:9]), nodes)):
        body.append(helper.make_node(unary, [value], [f"{tag}_{index}"]))
        value = f"{tag}_{index}"
    return helper.make_graph(body, tag, [], [_float(value, [WIDTH])])


def _graph(name: str) -> GraphProto:
    return GraphProto(name=name, input=[_float("x", [WIDTH])])


def _float(name: str, shape: list[int | str]) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def _model(graph: GraphProto) -> ModelProto:
    return ModelProto(
        ir_version=8, graph=graph, opset_import=[helper.make_opsetid("", 17)], producer_name="scale"
    )
