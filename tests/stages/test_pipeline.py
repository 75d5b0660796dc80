"""The pipeline as data: names, order, reasons."""

from __future__ import annotations

from foldline.stages.pass_base import GraphPass, NodePass
from foldline.stages.passes import ALL_PASSES
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.pipeline import PIPELINE
from foldline.support.passes import PASSES, STAGES


def test_stages_are_those_that_options_know() -> None:
    assert tuple(stage.name for stage in PIPELINE) == STAGES


def test_every_pass_of_the_table_has_a_class_and_a_place() -> None:
    assert {cls.name for cls in ALL_PASSES} == PASSES.keys()
    placed = {p.run.name for stage in PIPELINE for step in stage.steps for p in step.placed}
    assert placed == PASSES.keys()


def test_every_place_has_a_reason_and_every_stage_a_promise() -> None:
    for stage in PIPELINE:
        assert stage.promise
        assert set(stage.rests_on) <= PASSES.keys()
        for step in stage.steps:
            kind = NodePass if step.kind == "traversal" else GraphPass
            assert step.placed
            assert all(placed.reason and isinstance(placed.run, kind) for placed in step.placed)


def test_passes_come_after_what_they_build_on() -> None:
    names: list[str] = []
    for stage in PIPELINE:
        for step in stage.steps:
            for placed in step.placed:
                for need in PASSES[placed.run.name].runs_after:
                    assert need in names, f"{stage.name}/{placed.run.name}"
                names.append(placed.run.name)


def test_only_the_first_stage_doubts_types() -> None:
    trusts = [
        placed.run.trusted
        for stage in PIPELINE
        for step in stage.steps
        for placed in step.placed
        if isinstance(placed.run, InferShapes)
    ]
    assert trusts == [False, True, True, True]
