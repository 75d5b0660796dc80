"""What tests of rules share: graphs from text, small rules, runs over them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from foldline.graph import ModelGraph
from foldline.stages.observers import module_text
from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.match import Match, name_of
from foldline.stages.rewrite.options import OptimizeOptions
from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.tracing import traced
from foldline.stages.rewrite.transform import Condition, Replacement, Transform, rewrite
from foldline.support.rewrite_report import OptimizeReport
from tests.stages.check import onnx_model, op_types, values

Array = npt.NDArray[Any]
FEED = {"x": np.array([[-1.5, 0.0, 2.0], [np.nan, np.inf, -0.0]], np.float32)}


def graph(body: str, outputs: str = "float[2,3] y", opset: int = 21, **options: Any) -> ModelGraph:
    """A graph of one input x with two rows of three."""
    return ModelGraph(
        onnx_model(f"g (float[2,3] x) => ({outputs}) {{ {body} }}", 10, opset), **options
    )


def run(on: ModelGraph, *transforms: Transform, **options: Any) -> OptimizeReport:
    """Optimise with exactly these transforms, verified."""
    return on.optimize(OptimizeOptions(list(transforms), verify=True, **options))


def ops(on: ModelGraph) -> list[str]:
    return op_types(on.module)


def outputs_of(on: ModelGraph) -> list[Array]:
    """What ONNX Runtime computes for `FEED`."""
    return values(on.module, FEED)


def chain(*op_types: str) -> Pattern:
    """Operators, each of which reads the one before it."""
    pattern = Pattern()
    nodes = [pattern.node(op_type) for op_type in op_types]
    for before, after in itertools.pairwise(nodes):
        pattern.edge(before, after)
    return pattern


TWO_RELUS = traced(lambda op, x: op.Relu(op.Relu(x)))


def one_relu(build: RuleBuilder, match: Match) -> Any:
    return build.op("Relu", match.value("x"))


def merge_relus(name: str = "merge-relus", condition: Condition | None = None) -> Transform:
    """Relu(Relu(x)) -> Relu(x)."""
    return rewrite(name, TWO_RELUS, one_relu, condition)


def to(op_type: str) -> Replacement:
    """A replacement by one operator on the first input."""
    return lambda build, match: build.op(op_type, match.inputs[0])


def swap(name: str, before: str, after: str) -> Transform:
    """One unary operator by another."""
    return rewrite(name, chain(before), to(after))


class Seen:
    """A condition that remembers the first nodes that it was shown."""

    def __init__(self, answer: Callable[[Match], bool] = lambda match: True):
        self.names: list[str] = []
        self.answer = answer

    def __call__(self, match: Match) -> bool:
        self.names.append(name_of(match.nodes[0]))
        return self.answer(match)


def text(on: ModelGraph) -> str:
    return module_text(on.module)
