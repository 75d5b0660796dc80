"""A model is made small around the place that breaks it, and keeps the values it had there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest

import foldline
from foldline.importer import import_model
from foldline.workbench.reduce import Reduced, reduce

CHAIN = """
<ir_version: 10, opset_import: ["" : 20]>
g (float[4] v0) => (float[4] v30) {{ {} }}
"""


def chain(operators: Mapping[int, str] | None = None) -> onnx.ModelProto:
    given = operators or {}
    lines = (f"[n{i}] v{i + 1} = {given.get(i, 'Sin')}(v{i})" for i in range(30))
    return onnx.parser.parse_model(CHAIN.format(" ".join(lines)))


def reduced(model: onnx.ModelProto, names: Sequence[str], breaks: Any) -> Reduced | None:
    session = foldline.compile(model, options={"oo.level": "O0"}).session()
    feed = {
        a.name: np.full(a.shape, 0.5, np.float32) if "float" in a.type else np.array(True)
        for a in session.get_inputs()
    }
    values = {**feed, **session.values(feed, session.program.value_names)}
    return reduce(model, names, values, breaks)


def holding(*names: str) -> Any:
    """Breaks what holds all of these nodes, and is a model."""

    def breaks(model: onnx.ModelProto, inputs: Mapping[str, Any]) -> bool:
        import_model(model)
        onnx.checker.check_model(model)
        assert {value.name for value in model.graph.input} == set(inputs)
        return set(names) <= {node.name for node in model.graph.node}

    return breaks


@pytest.mark.parametrize(
    ("around", "needed"),
    [
        (["n9"], ["n9"]),
        (["v10"], ["n9"]),
        (["n9"], ["n7", "n10"]),
        (["n9"], ["n0", "n29"]),
        ([], ["n12", "n13"]),
        (["no such name"], ["n3"]),
    ],
)
def test_what_is_needed_is_left(around: list[str], needed: list[str]) -> None:
    found = reduced(chain(), around, holding(*needed))
    assert found is not None
    assert [node.name for node in found.model.graph.node] == needed
    assert found.nodes == len(needed)


def test_none_where_the_model_does_not_break() -> None:
    assert reduced(chain(), ["n9"], holding("no such node")) is None


def test_inputs_are_the_values_of_the_run() -> None:
    found = reduced(chain(), ["n1"], holding("n1"))
    assert found is not None
    assert list(found.inputs) == ["v1"]
    np.testing.assert_array_equal(found.inputs["v1"], np.sin(np.full(4, 0.5, np.float32)))
    assert [value.name for value in found.model.graph.output] == ["v2"]


def test_many_nodes_are_given_up_at_once() -> None:
    tries: list[int] = []

    def breaks(model: onnx.ModelProto, inputs: Mapping[str, Any]) -> bool:
        tries.append(len(model.graph.node))
        return holding("n15")(model, inputs)

    reduced(chain(), [], breaks)
    assert len(tries) < 15


def test_weights_come_along_and_a_body_counts_as_its_node() -> None:
    model = onnx.parser.parse_model("""
    <ir_version: 10, opset_import: ["" : 20]>
    g (bool c, float[4] x) => (float[4] y)
    <float[4] b = {1, 2, 3, 4}, float[4] unread = {1, 2, 3, 4}>
    {
        k = Constant <value_float = 2.0> ()
        [before] a = Neg(x)
        [choice] z = If (c) <
            then_branch = t () => (float[4] p) { [inner] p = Add(a, b) },
            else_branch = e () => (float[4] q) { [other] q = Mul(a, k) }>
        [after] y = Exp(z)
    }""")
    found = reduced(model, ["inner"], holding("choice"))
    assert found is not None
    graph = found.model.graph
    assert [node.op_type for node in graph.node] == ["Constant", "If"]
    assert found.nodes == 1
    assert [tensor.name for tensor in graph.initializer] == ["b"]
    assert set(found.inputs) == {"c", "a"}
