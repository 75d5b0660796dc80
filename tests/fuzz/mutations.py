"""Mutants by number: a seed, and what was done to it. The same number is the same mutant."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import onnx
from google.protobuf.message import EncodeError
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper

from tests.fuzz.fields import EXTREMES, FLOATS, TEXTS, messages, mutate_bytes, mutate_field
from tests.fuzz.seeds import seeds

BYTES = 0.2
"""So much of the mutants are mutated as bytes, the others as graphs."""
DIMS = (0, 1, 2, 3, 5, -1, -2, 1 << 20, 1 << 31, 1 << 40, (1 << 63) - 1, -(1 << 63))


def mutant(number: int) -> tuple[str, bytes]:
    """The name of the seed and of what was done, and the model."""
    rng = random.Random(f"foldline {number}")
    name, data = rng.choice(seeds())
    changes = 1 + min(int(rng.expovariate(0.7)), 6)
    if rng.random() < BYTES:
        for _ in range(changes):
            data = mutate_bytes(rng, data)
        return f"{name}: bytes", data
    model = ModelProto.FromString(data)
    done: list[str] = []
    for _ in range(changes):
        mutate = rng.choice(MUTATIONS)
        mutate(rng, model)
        done.append(mutate.__name__)
    try:
        return f"{name}: {', '.join(done)}", model.SerializePartialToString()
    except EncodeError:
        return name, data


def drop_node(rng: random.Random, model: ModelProto) -> None:
    graph = _graph(rng, model)
    if graph.node:
        del graph.node[rng.randrange(len(graph.node))]


def repeat_node(rng: random.Random, model: ModelProto) -> None:
    graph = _graph(rng, model)
    if graph.node:
        graph.node.add().CopyFrom(rng.choice(graph.node))


def swap_nodes(rng: random.Random, model: ModelProto) -> None:
    graph = _graph(rng, model)
    nodes = list(graph.node)
    rng.shuffle(nodes)
    copies = [NodeProto.FromString(node.SerializePartialToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)


def rewire(rng: random.Random, model: ModelProto) -> None:
    """Let a node read or write another value: one there is, none, or one there is not."""
    names = _names(model)
    if (node := _node(rng, model)) is None:
        return
    ends = node.output if rng.random() < 0.2 else node.input
    name = rng.choice([*names, *names, "", "nowhere"])
    if ends and rng.random() < 0.8:
        ends[rng.randrange(len(ends))] = name
    else:
        ends.append(name)


def other_operator(rng: random.Random, model: ModelProto) -> None:
    if (node := _node(rng, model)) is not None:
        schema = rng.choice(onnx.defs.get_all_schemas())
        node.op_type, node.domain = schema.name, schema.domain


def move_attributes(rng: random.Random, model: ModelProto) -> None:
    """Give a node the attributes of another."""
    nodes = [part for part in messages(model) if isinstance(part, NodeProto)]
    if nodes:
        source = list(rng.choice(nodes).attribute)
        rng.choice(nodes).attribute.extend(
            [AttributeProto.FromString(a.SerializePartialToString()) for a in source]
        )


def change_attribute(rng: random.Random, model: ModelProto) -> None:
    found = [part for part in messages(model) if isinstance(part, AttributeProto)]
    if not found:
        return
    attribute = rng.choice(found)
    kind = (
        attribute.type if rng.random() < 0.85 else rng.choice(AttributeProto.AttributeType.values())
    )
    attribute.type = kind
    match kind:
        case AttributeProto.INT:
            attribute.i = rng.choice(EXTREMES)
        case AttributeProto.FLOAT:
            attribute.f = rng.choice(FLOATS)
        case AttributeProto.STRING:
            attribute.s = rng.choice(TEXTS).encode()
        case AttributeProto.INTS:
            values = list(attribute.ints) or [0]
            values[rng.randrange(len(values))] = rng.choice(EXTREMES)
            del attribute.ints[:]
            attribute.ints.extend(values[: rng.choice((len(values), len(values) - 1))])
        case _:
            mutate_field(rng, attribute)


def add_attribute(rng: random.Random, model: ModelProto) -> None:
    """An attribute that the operator has, with a value that may not suit it."""
    if (node := _node(rng, model)) is None or not onnx.defs.has(node.op_type, node.domain):
        return
    names = list(onnx.defs.get_schema(node.op_type, node.domain).attributes)
    if names:
        value = rng.choice(
            (rng.choice(EXTREMES), rng.choice(FLOATS), list(rng.choices(EXTREMES, k=3)), "x")
        )
        node.attribute.append(helper.make_attribute(rng.choice(names), value))


def change_tensor(rng: random.Random, model: ModelProto) -> None:
    """Other dimensions, another type, cut data, or other numbers."""
    found = [part for part in messages(model) if isinstance(part, TensorProto)]
    if not found:
        return
    tensor = rng.choice(found)
    match rng.choice(("dims", "type", "cut", "outside", "numbers", "numbers", "numbers")):
        case "dims":
            dims = list(tensor.dims)
            dims.insert(rng.randrange(len(dims) + 1), rng.choice(DIMS))
            del tensor.dims[:]
            tensor.dims.extend(dims[rng.randrange(2) :])
        case "type":
            tensor.data_type = rng.choice(TensorProto.DataType.values())
        case "cut":
            tensor.raw_data = tensor.raw_data[: rng.randrange(len(tensor.raw_data) + 1)]
        case "outside":
            tensor.data_location = TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value=rng.choice(TEXTS))
        case _:
            _change_numbers(rng, tensor)


def _change_numbers(rng: random.Random, tensor: TensorProto) -> None:
    """Some of the numbers become extreme; sizes and indices are numbers too."""
    try:
        array = onnx.numpy_helper.to_array(tensor).copy()
    except Exception:  # of the onnx package, for a tensor mutated before
        return
    if not array.size or array.dtype.kind not in "iuf" or array.dtype.itemsize < 2:
        return
    at = rng.randrange(array.size)
    if array.dtype.kind == "f":
        array.reshape(-1)[at] = rng.choice(FLOATS[:5])
    else:
        info = np.iinfo(array.dtype)
        array.reshape(-1)[at] = min(max(rng.choice(EXTREMES), info.min), info.max)
    tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))


def change_type(rng: random.Random, model: ModelProto) -> None:
    """Other dimensions or another element type of a declared value, or a type in itself."""
    found = [part for part in messages(model) if isinstance(part, onnx.ValueInfoProto)]
    if not found:
        return
    info = rng.choice(found)
    tensor = info.type.tensor_type
    match rng.choice(("element", "dims", "dims", "rank", "none", "nested")):
        case "element":
            tensor.elem_type = rng.choice(TensorProto.DataType.values())
        case "dims" if tensor.shape.dim:
            dim = rng.choice(tensor.shape.dim)
            if rng.random() < 0.3:
                dim.dim_param = rng.choice(TEXTS)
            else:
                dim.dim_value = rng.choice(DIMS)
        case "none":
            info.ClearField("type")
        case "nested":
            part = info.type
            for _ in range(rng.choice((1, 2, 20, 45))):
                part = part.sequence_type.elem_type
            part.tensor_type.elem_type = 1
        case _:
            tensor.shape.dim.add().dim_value = rng.choice(DIMS)


def drop_value(rng: random.Random, model: ModelProto) -> None:
    graph = _graph(rng, model)
    rows = rng.choice((graph.initializer, graph.input, graph.output, graph.value_info))
    if rows:
        del rows[rng.randrange(len(rows))]


def constant_input(rng: random.Random, model: ModelProto) -> None:
    """An input gets a value, of a type and shape that may not be its own."""
    graph = _graph(rng, model)
    if graph.input:
        shape = [rng.choice((0, 1, 1, 2, 3)) for _ in range(rng.randrange(5))]
        dtype = rng.choice((np.float32, np.int64, np.float32, np.bool_, np.uint8, np.float16))
        array = np.resize(np.arange(-1, 3), shape).astype(dtype)
        graph.initializer.append(onnx.numpy_helper.from_array(array, rng.choice(graph.input).name))


def rename(rng: random.Random, model: ModelProto) -> None:
    """A value gets an odd name everywhere."""
    if not (names := _names(model)):
        return
    old, new = rng.choice(names), rng.choice(TEXTS)
    for part in messages(model):
        if isinstance(part, NodeProto):
            for ends in (part.input, part.output):
                for index, name in enumerate(ends):
                    if name == old:
                        ends[index] = new
        elif isinstance(part, onnx.ValueInfoProto | TensorProto) and part.name == old:
            part.name = new


def other_opset(rng: random.Random, model: ModelProto) -> None:
    if model.opset_import:
        row = rng.choice(model.opset_import)
        row.version = rng.choice((*range(1, 27), *range(1, 27), 0, -1, 99))


def nest(rng: random.Random, model: ModelProto) -> None:
    """All nodes go into the branches of an If, that into those of another, and so on."""
    graph = model.graph
    if not graph.output:
        return
    output = graph.output[0].name
    for depth in range(rng.choice((1, 2, 5, 25, 60))):
        body = helper.make_graph(
            list(graph.node), "b", [], [helper.make_empty_tensor_value_info(output)]
        )
        node = helper.make_node(
            "If", ["condition"], [output], f"nested{depth}", then_branch=body, else_branch=body
        )
        del graph.node[:]
        graph.node.append(node)
        if model.ByteSize() > 200_000:
            break
    graph.initializer.append(
        helper.make_tensor("condition", TensorProto.BOOL, [], [rng.random() < 0.5])
    )


def recurse(rng: random.Random, model: ModelProto) -> None:
    """A function that calls itself, or another that calls it."""
    if (node := _node(rng, model)) is None:
        return
    function = model.functions.add(name=node.op_type, domain=node.domain)
    function.opset_import.add(version=18)
    function.input.extend(node.input[:2])
    function.output.extend(node.output)
    function.node.add().CopyFrom(node)


def _graph(rng: random.Random, model: ModelProto) -> GraphProto:
    return rng.choice(
        [part for part in messages(model) if isinstance(part, GraphProto)] or [model.graph]
    )


def _node(rng: random.Random, model: ModelProto) -> NodeProto | None:
    found = [part for part in messages(model) if isinstance(part, NodeProto)]
    return rng.choice(found) if found else None


def _names(model: ModelProto) -> list[str]:
    parts = [part for part in messages(model) if isinstance(part, NodeProto)]
    names = [name for part in parts for name in (*part.input, *part.output)]
    return list(dict.fromkeys(names))


MUTATIONS: tuple[Callable[[random.Random, ModelProto], None], ...] = (
    drop_node,
    repeat_node,
    swap_nodes,
    rewire,
    rewire,
    other_operator,
    move_attributes,
    change_attribute,
    change_attribute,
    add_attribute,
    change_tensor,
    change_tensor,
    change_tensor,
    change_type,
    change_type,
    drop_value,
    constant_input,
    constant_input,
    rename,
    other_opset,
    nest,
    recurse,
    mutate_field,
    mutate_field,
    mutate_field,
)
