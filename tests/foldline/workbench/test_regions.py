"""Regions: by name scope, else by neighbourhood, and never too much in one."""

from __future__ import annotations

from collections import Counter

import onnx
import pytest

from benchmarks.scale_models import BUILDERS
from foldline.importer import import_model
from foldline.workbench.recorder import History, history, moment
from foldline.workbench.regions import MOST_CHILDREN, NO_REGION, Regions, regions_of


def placed(model: onnx.ModelProto | str) -> tuple[History, Regions]:
    proto = onnx.parser.parse_model(model) if isinstance(model, str) else model
    moments = [moment("import", import_model(proto))]
    past = history(moments, [])
    return past, regions_of(past, moments)


def paths(past: History, regions: Regions) -> dict[str, list[str]]:
    """The labels of the regions of each node, outermost first."""
    found: dict[str, list[str]] = {}
    for entity, node in past.first.items():
        region, path = regions.of.get(entity, NO_REGION), list[str]()
        while region != NO_REGION:
            path.insert(0, regions.labels[region])
            region = regions.parents[region]
        found[node.label] = path
    return found


def chain(names: list[str]) -> str:
    nodes = "\n".join(f"[{name}] v{index + 1} = Relu(v{index})" for index, name in enumerate(names))
    return f"""
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2] v0) => (float[2] v{len(names)}) {{ {nodes} }}
    """


def test_a_small_graph_has_no_region() -> None:
    _, regions = placed(chain([f"n{i}" for i in range(MOST_CHILDREN)]))
    assert regions.parents == []


def test_scopes_are_regions_in_regions() -> None:
    proto = onnx.parser.parse_model(chain([f"n{i}" for i in range(80)]))
    for index, node in enumerate(proto.graph.node):
        layer, part = divmod(index, 40)
        node.name = f"/model/layer.{layer}/{'attention' if part < 20 else 'mlp'}/n{index}"
    found = paths(*placed(proto))
    assert found["/model/layer.0/attention/n0"] == ["layer.0", "attention"]
    assert found["/model/layer.1/mlp/n79"] == ["layer.1", "mlp"]


def test_a_block_ends_where_few_values_cross() -> None:
    """Two clusters of 20 nodes, unequal to the middle by one, joined by one value."""
    nodes = [f"a{i} = Relu({'x' if i == 0 else 'a0'})" for i in range(21)]
    nodes.append(f"j = Sum({', '.join(f'a{i}' for i in range(21))})")
    nodes += [f"b{i} = Relu(j)" for i in range(17)]
    nodes.append(f"y = Sum({', '.join(f'b{i}' for i in range(17))})")
    newline = "\n"
    past, regions = placed(f"""
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2] x) => (float[2] y) {{ {newline.join(nodes)} }}
    """)
    of = {node.label: regions.of[entity] for entity, node in past.first.items()}
    assert {of[f"a{i}"] for i in range(21)} == {of["j"]}
    assert {of[f"b{i}"] for i in range(17)} == {of["y"]}
    assert of["a0"] != of["b0"]


def test_a_constant_is_where_it_is_read_first() -> None:
    text = chain([f"n{i}" for i in range(70)]).replace("Relu(v60)", "Add(v60, c)")
    found = paths(*placed(text.replace("[n0]", "c = Constant <value_float = 1.0> ()\n[n0]")))
    assert found["c"] == found["n60"] != []


def test_a_body_is_a_scope() -> None:
    found = paths(*placed(BUILDERS["control_flow"](1000)))
    assert found["then0_0"][0] == "if0.then_branch"
    assert found["else1_3"][0] == "if1.else_branch"


@pytest.mark.parametrize("builder", BUILDERS)
def test_no_region_holds_too_much(builder: str) -> None:
    past, regions = placed(BUILDERS[builder](2000))
    held = Counter(regions.parents)
    for entity, node in past.first.items():
        held[regions.of.get(entity, NO_REGION)] += not node.is_constant
    assert max(held.values()) <= MOST_CHILDREN
    assert all(parent < region for region, parent in enumerate(regions.parents))
