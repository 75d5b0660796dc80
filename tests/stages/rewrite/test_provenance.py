"""What a replacement passes on of the nodes that it removes."""

from __future__ import annotations

import onnx

import foldline
from foldline.dialects.fold.flags import replaced_nodes
from foldline.graph import ModelGraph
from foldline.stages.rewrite.transform import rewrite
from tests.stages.check import onnx_model
from tests.stages.rewrite.rules import chain, merge_relus, run, swap

BODY = "g (float[2,3] x) => (float[2,3] y) { [a] t = Relu(x) [b] u = Relu(t) y = Neg(u) }"


def noted(**notes: dict[str, str]) -> onnx.ModelProto:
    """The model with metadata, and `doc` as doc string, of nodes by name."""
    made = onnx_model(BODY, 10)
    for node in made.graph.node:
        for key, value in notes.get(node.name, {}).items():
            if key == "doc":
                node.doc_string = value
            else:
                node.metadata_props.add(key=key, value=value)
    return made


def metadata(node: onnx.NodeProto) -> dict[str, str]:
    return {pair.key: pair.value for pair in node.metadata_props}


def first(on: ModelGraph) -> onnx.NodeProto:
    return on.to_proto().graph.node[0]


def test_names_of_all_that_is_replaced_are_kept() -> None:
    on = ModelGraph(noted())
    run(on, merge_relus())
    relu, neg = on.nodes
    assert replaced_nodes(relu) == ("a", "b")
    assert replaced_nodes(neg) == ()
    run(on, swap("rule", "Relu", "Abs"))
    assert replaced_nodes(on.nodes[0]) == ("a", "b"), "and those of what stood for them"


def test_a_node_without_name_is_that_of_its_output() -> None:
    on = ModelGraph(noted())
    run(on, swap("rule", "Neg", "Abs"))
    assert replaced_nodes(on.nodes[-1]) == ("y",)


def test_at_most_sixteen_names_are_kept() -> None:
    names = [f"v{place}" for place in range(20)]
    nodes = "".join(f"{b} = Relu({a}) " for a, b in zip(["x", *names], [*names, "y"], strict=True))
    on = ModelGraph(onnx_model(f"g (float[2] x) => (float[2] y) {{ {nodes} }}", 10))
    run(on, merge_relus(), max_iterations=30)
    assert len(on.nodes) == 1
    assert len(replaced_nodes(on.nodes[0])) == 16


def test_notes_are_merged_in_order() -> None:
    on = ModelGraph(
        noted(a={"doc": "one", "k": "1", "m": "5"}, b={"doc": "two", "k": "11", "m": "", "n": ""})
    )
    run(on, merge_relus())
    assert first(on).doc_string == "one\ntwo"
    assert metadata(first(on)) == {"k": "1\n11", "m": "5", "n": ""}


def test_equal_notes_are_kept_once() -> None:
    on = ModelGraph(noted(a={"doc": "one\ntwo", "k": "1"}, b={"doc": "two", "k": "1"}))
    run(on, merge_relus())
    assert first(on).doc_string == "one\ntwo"
    assert metadata(first(on)) == {"k": "1"}


def test_only_what_makes_the_new_value_is_told() -> None:
    on = ModelGraph(noted(a={"k": "1"}))
    rule = rewrite(
        "rule", chain("Relu", "Relu"), lambda build, match: build.Abs(build.Exp(match.inputs[0]))
    )
    run(on, rule, max_iterations=1)
    assert [metadata(n) for n in on.to_proto().graph.node] == [{}, {"k": "1"}, {}]


def test_an_existing_value_is_told_nothing() -> None:
    on = ModelGraph(noted(b={"k": "2"}))
    rule = rewrite(
        "rule", chain("Relu", "Neg"), lambda build, match: match.inputs[0], lambda match: True
    )
    run(on, rule, max_iterations=1)
    assert all(not metadata(n) for n in on.to_proto().graph.node)


def test_notes_of_fused_operators_reach_files_and_stay_as_they_are() -> None:
    made = onnx_model(
        "g (float[2,3] x) => (float[2,3] y) { [s] t = Sigmoid(x) [m] u = Mul(x, t) y = Neg(u) }",
        10,
        opset=17,
    )
    for node in made.graph.node[:2]:
        node.metadata_props.add(key="k", value=node.name)
    for fused in ("standard", "functions"):
        once = foldline.optimize(made, options={"export.fused": fused})
        bearing = [metadata(n) for n in once.graph.node if n.metadata_props]
        assert bearing == [{"k": "s\nm"}]
        assert foldline.optimize(once, options={"export.fused": fused}) == once
