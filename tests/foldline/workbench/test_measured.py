"""The run for the report: its plan and its steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from foldline.workbench.measured import measured
from tests.foldline.workbench.reported import TEXT, reported

FEED = {"x": np.ones((2, 3, 8, 8), np.float32)}


def found(text: str = TEXT, feed: dict[str, Any] = FEED, *, profile: bool = True) -> dict[str, Any]:
    compiled, _, _ = reported(text, **{"oo.level": "O1"})
    return measured(compiled.session(threads=1), feed, profile=profile)


def test_the_plan_has_steps_and_buffers_that_do_not_overlap() -> None:
    plan = found()["plan"]
    operators = [where.partition(" ")[0] for where, _ in plan["steps"]]
    assert [op for op in operators if op.startswith("onnx.")] == [
        "onnx.Conv",
        "onnx.Relu",
        "onnx.Mul",
    ]
    assert plan["buffers"]
    for index, one in enumerate(plan["buffers"]):
        assert 0 <= one["start"] <= one["end"] < len(plan["steps"])
        assert one["offset"] + one["size"] <= plan["arena_bytes"]
        for other in plan["buffers"][index + 1 :]:
            together = one["start"] <= other["end"] and other["start"] <= one["end"]
            apart = (
                one["offset"] + one["size"] <= other["offset"]
                or other["offset"] + other["size"] <= one["offset"]
            )
            assert not together or apart
    assert sum(buffer["size"] for buffer in plan["buffers"]) == plan["buffer_bytes"]


def test_buffers_name_the_steps_that_write_them() -> None:
    plan = found()["plan"]
    kinds = [kind for _, kind in plan["steps"]]
    written = {step for buffer in plan["buffers"] for step in buffer["writers"]}
    assert {step for step, kind in enumerate(kinds) if kind == "out"} <= written


def test_each_step_is_timed_when_asked() -> None:
    run = found()
    assert run["inputs"] == {"x": ["float32", 2, 3, 8, 8]}
    assert all(seconds > 0 for _, seconds in run["profile"]["steps"])
    assert [where for where, _ in run["profile"]["steps"]] == [
        where for where, _ in run["plan"]["steps"]
    ]
    assert run["profile"]["planned"] > 0
    assert found(profile=False)["profile"] is None


def test_inputs_that_are_no_tensors_have_no_plan() -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 20]>
    g (seq(float[2]) s) => (int64 n) { n = SequenceLength(s) }
    """
    onnx.parser.parse_model(text)
    run = found(text, {"s": [np.ones(2, np.float32)]})
    assert run["plan"] is None
    assert run["profile"]["steps"] == []
    assert run["profile"]["planned"] > 0
