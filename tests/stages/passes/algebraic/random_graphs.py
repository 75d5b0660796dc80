"""Random models of the operators that the algebraic rewrites look at, with random obstacles."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from onnx import ModelProto, helper

from tests.stages.passes.drawing import Drawing

Shape = tuple[int, ...]


@dataclass
class Graphs(Drawing):
    """Builds one model; every choice is drawn from one generator."""

    shapes: dict[str, Shape] = field(default_factory=dict[str, Shape])

    def node(self, op: str, inputs: list[str], *shapes: Shape, **attributes: object) -> list[str]:
        names = [f"v{len(self.nodes)}_{number}" for number in range(len(shapes))]
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        self.shapes.update(zip(names, shapes, strict=True))
        return names

    def conv(self, x: str) -> str:
        batch, channels, *space = self.shapes[x]
        groups = 2 if channels % 2 == 0 and self.chance(0.3) else 1
        maps = groups * int(self.rng.integers(1, 4))
        w = self.rng.standard_normal((maps, channels // groups, *[1] * len(space)))
        inputs = [x, self.constant(w.astype(np.float32))]
        if self.chance(0.5):
            inputs.append(self.constant(self.rng.standard_normal(maps).astype(np.float32)))
        return self.node("Conv", inputs, (batch, maps, *space), group=groups)[0]

    def scale(self, x: str, op: str) -> str:
        """Mul or Add of a constant of some shape that broadcasts; seldom one that enlarges."""
        shape = self.shapes[x]
        aligned = [
            n if self.chance(0.3 if axis != 1 else 0.7) else 1 for axis, n in enumerate(shape)
        ]
        if self.chance(0.5):
            aligned = [n if axis == 1 else 1 for axis, n in enumerate(shape)]
        while aligned and aligned[0] == 1 and self.chance(0.5):
            aligned = aligned[1:]
        if self.chance(0.05):
            aligned = [1] * (len(shape) + 1)
        array = self.rng.uniform(0.25, 2, aligned) * (1 if self.chance(0.8) else -1)
        rank = max(len(shape), len(aligned))
        out = tuple(np.broadcast_shapes(shape, tuple(aligned)))
        assert len(out) == rank
        pair = [x, self.constant(array.astype(np.float32))]
        return self.node(op, pair if self.chance(0.7) else pair[::-1], out)[0]

    def cut(self, x: str) -> list[str]:
        """A Split, or Slices or Gathers that tile an axis, or nearly."""
        shape = self.shapes[x]
        axis = 1 if len(shape) > 1 and self.chance(0.8) else int(self.rng.integers(len(shape)))
        size = shape[axis]
        if size < 2:
            return [x]
        first = int(self.rng.integers(1, size))
        parts = [
            tuple(n if i != axis else each for i, n in enumerate(shape))
            for each in (first, size - first)
        ]
        if self.chance(0.5):
            return self.node("Split", [x, self.ints(first, size - first)], *parts, axis=axis)
        stop = 2**63 - 1 if self.chance(0.5) else size
        start = first if self.chance(0.9) else max(first - 1, 0)
        parts[1] = tuple(n if i != axis else size - start for i, n in enumerate(shape))
        bounds = ((0, first), (start, stop))
        given = [
            [self.ints(a), self.ints(b), self.ints(axis - (len(shape) if self.chance(0.3) else 0))]
            for a, b in bounds
        ]
        found = [
            self.node("Slice", [x, *names], part)[0]
            for names, part in zip(given, parts, strict=True)
        ]
        if first == 1 and self.chance(0.5):
            dropped = tuple(n for i, n in enumerate(shape) if i != axis)
            index = self.constant(np.asarray(0, np.int64))
            found[0] = self.node("Gather", [x, index], dropped, axis=axis)[0]
        return found

    def view(self, x: str) -> str:
        shape = self.shapes[x]
        kind = str(self.rng.choice(["Identity", "Reshape", "Unsqueeze", "Flatten", "mix"]))
        if kind == "Identity" or not shape:
            return self.node("Identity", [x], shape)[0]
        if kind == "Unsqueeze" and len(shape) < 5:
            axis = int(self.rng.integers(len(shape) + 1))
            return self.node("Unsqueeze", [x, self.ints(axis)], (*shape[:axis], 1, *shape[axis:]))[
                0
            ]
        if kind == "Flatten":
            axis = int(self.rng.integers(len(shape) + 1))
            flat = (int(np.prod(shape[:axis])), int(np.prod(shape[axis:])))
            return self.node("Flatten", [x], flat, axis=axis)[0]
        count = int(np.prod(shape))
        target = (*shape[:2], count // int(np.prod(shape[:2]))) if kind == "Reshape" else (count,)
        return self.node("Reshape", [x, self.ints(*target)], target)[0]

    def model(self, steps: int) -> ModelProto:
        """Random steps from one input; what nothing reads is an output, and some more."""
        channels = int(self.rng.integers(1, 4))
        self.shapes["x"] = (1 if self.chance(0.7) else 2, channels, 2, 2)
        live = ["x"]
        for _ in range(steps):
            x = str(self.rng.choice(live[-4:]))
            action = str(
                self.rng.choice(["conv", "mul", "mul", "add", "exp", "cut", "view", "relu"])
            )
            if action == "conv" and len(self.shapes[x]) >= 3:
                live.append(self.conv(x))
            elif action == "cut" and self.shapes[x]:
                live += [name for name in self.cut(x) if name not in live]
            elif action == "view":
                live.append(self.view(x))
            elif action == "exp":
                bounded = self.node("Tanh", [x], self.shapes[x])[0]
                live.append(self.node("Exp", [bounded], self.shapes[x])[0])
            elif action == "relu":
                live.append(self.node("Relu", [x], self.shapes[x])[0])
            else:
                live.append(self.scale(x, "Mul" if action == "mul" else "Add"))
        return self._finished([name for name in live if name != "x"])

    def _finished(self, live: list[str]) -> ModelProto:
        read = {name for node in self.nodes for name in node.input}  # pyright: ignore
        outputs = [name for name in live if name not in read or self.chance(0.05)] or ["x"]
        if outputs == ["x"]:
            outputs = self.node("Relu", ["x"], self.shapes["x"])
        infos = [helper.make_tensor_value_info(n, 1, self.shapes[n]) for n in ["x", *outputs]]
        if self.chance(0.3) and self.shapes["x"][0] == 1:
            infos[0].type.tensor_type.shape.dim[0].dim_value = 1
        graph = helper.make_graph(
            self.nodes, "g", [infos[0], *self.defaults()], infos[1:], self.tensors
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def random_model(seed: int, steps: int = 9) -> ModelProto:
    """The model of a seed."""
    return Graphs(np.random.default_rng(seed)).model(steps)
