"""What stages leave, which nodes are one and the same in all of them, and what became of others."""

from __future__ import annotations

from itertools import pairwise

import onnx
import pytest

from foldline.support.passes import STAGES
from foldline.workbench.nodes import Node
from foldline.workbench.recorder import Change, Moment, StageRecorder, change, history
from tests.foldline.workbench.reported import TEXT, reported


@pytest.fixture(scope="module")
def recorder() -> StageRecorder:
    return reported()[1]


def changes(recorder: StageRecorder) -> dict[str, Change]:
    return {after.stage: change(before, after) for before, after in pairwise(recorder.moments)}


def judged(recorder: StageRecorder, label: str, side: str) -> list[tuple[str, str, str]]:
    """Stage, status and text of what happened to a node by its label."""
    found: list[tuple[str, str, str]] = []
    for (before, after), changed in zip(
        pairwise(recorder.moments), changes(recorder).values(), strict=True
    ):
        nodes = before.nodes if side == "before" else after.nodes
        for position, judgement in getattr(changed, side).items():
            if nodes[position].label == label:
                found.append((after.stage, judgement.status, judgement.text))
    return found


def test_there_is_a_moment_before_and_after_each_stage(recorder: StageRecorder) -> None:
    assert [moment.stage for moment in recorder.moments] == ["import", *STAGES]
    labels = [node.label for node in recorder.moments[0].nodes if not node.is_constant]
    assert labels == ["twice", "conv", "same", "relu", "scale"]
    assert recorder.moments[0].inputs == (("x", "float[N,3,8,8]"),)
    assert recorder.moments[-1].outputs == (("y", "float[N,4,8,8]"),)


def test_constants_say_how_much_they_hold(recorder: StageRecorder) -> None:
    moment = recorder.moments[0]
    held = dict(zip((node.outputs[0] for node in moment.nodes), moment.stored, strict=True))
    assert (held["w"], held["b"], held["one"], held["c"]) == (48, 16, 4, 0)


def test_a_folded_node_and_its_constant_are_folded(recorder: StageRecorder) -> None:
    ((stage, status, text),) = judged(recorder, "twice", "before")
    assert (status, text) == ("folded", "folded into 'two'")
    made = [row for row in judged(recorder, "two", "after") if row[0] == stage]
    assert made == [(stage, "folded", "folded from twice")]


def test_a_bypassed_node_is_removed(recorder: StageRecorder) -> None:
    _, status, text = judged(recorder, "same", "before")[-1]
    assert status == "removed"
    assert text.startswith("bypassed")


def test_fused_nodes_and_what_stands_for_them_are_fused(recorder: StageRecorder) -> None:
    gone = judged(recorder, "conv", "before") + judged(recorder, "relu", "before")
    fused = [row for row in gone if row[:2] == ("fusion", "fused")]
    assert fused
    (changed,) = [found for stage, found in changes(recorder).items() if stage == "fusion"]
    texts = [j.text for j in changed.after.values() if j.status == "fused"]
    assert any(text.startswith("in place of") for text in texts)


def test_a_type_that_becomes_known_is_told_apart() -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[2] x) => (float[2] y) { [a] m = Neg(x) [b] y = Floor(m) }
    """
    recorder = reported(text, **{"oo.level": "O1"})[1]
    statuses = {status for _, status, _ in judged(recorder, "a", "after")}
    assert statuses == {"typed"}


def test_a_node_is_one_entity_through_all_stages(recorder: StageRecorder) -> None:
    past = history(recorder.moments, list(changes(recorder).values()))
    places: dict[str, set[int]] = {}
    for entities, moment in zip(past.entities, recorder.moments, strict=True):
        assert len(set(entities)) == len(moment.nodes)
        for entity, node in zip(entities, moment.nodes, strict=True):
            places.setdefault(node.outputs[0], set()).add(entity)
    assert len(places["w"]) == 1
    assert sorted(past.order) == sorted(past.first)


def moment_of(*outputs: str) -> Moment:
    """Nodes by their outputs; those that begin with a C are constants."""
    nodes = tuple(
        Node("", "Constant" if name[0] == "C" else "Relu", "", (), (name,), (), ("",), value)
        for name in outputs
        for value in ["1" if name[0] == "C" else ""]
    )
    return Moment("any", nodes, (0,) * len(nodes), (), ())


def test_what_a_stage_makes_stands_behind_its_neighbour() -> None:
    """And a constant, which has moved, is none."""
    moments = [moment_of("C", "a", "b", "c"), moment_of("n", "a", "b", "C", "m", "k", "c")]
    past = history(moments, [change(*moments)])
    assert [past.first[entity].label for entity in past.order] == list("nCabmkc")


def test_the_text_is_a_model() -> None:
    onnx.checker.check_model(onnx.parser.parse_model(TEXT))
