from __future__ import annotations

import json

import numpy as np
import pytest
from onnx import parser

import foldline
from foldline.lowering.flops import flops_of
from foldline.session import Session
from foldline.support.errors import InvalidArgumentError

MODEL = """<ir_version: 8, opset_import: ["" : 17]>
g (float[4, 8] x, bool c, float[8, 16] w) => (float[4, 16] y) {
    a = MatMul(x, w)
    b = Sigmoid(a)
    y = If(c) <
        then_branch = t () => (float[4, 16] p) { u = Neg(b) p = Exp(u) },
        else_branch = e () => (float[4, 16] q) { q = Identity(a) }
    > }"""
FEED = {
    "x": np.ones((4, 8), np.float32),
    "c": np.array(True),
    "w": np.ones((8, 16), np.float32),
}


def _session() -> Session:
    model = parser.parse_model(MODEL)
    return foldline.compile(model, options={"oo.level": "O0"}).session(threads=1)


def test_the_steps_of_the_plan_and_of_bodies_are_timed() -> None:
    profile = _session().profile(FEED, repeat=4)
    steps = {step.operator: step for step in profile.steps}
    assert set(steps) == {"MatMul", "Sigmoid", "If", "Neg", "Exp"}
    assert all(step.calls == 1 for step in profile.steps)
    assert all(step.seconds > 0 for step in profile.steps)
    assert profile.runs == 4
    times = [step.seconds for step in profile.steps]
    assert times == sorted(times, reverse=True)


def test_bytes_and_operations_are_those_of_the_tensors() -> None:
    steps = {step.operator: step for step in _session().profile(FEED, repeat=1).steps}
    product = steps["MatMul"]
    assert product.flops == 2 * 4 * 8 * 16
    assert product.bytes == 4 * (4 * 8 + 8 * 16 + 4 * 16)
    assert product.gflops == pytest.approx(product.flops / product.seconds / 1e9)
    assert steps["Exp"].bytes == 2 * 4 * 4 * 16
    assert steps["Exp"].flops is steps["Exp"].gflops is None


def test_kernels_are_totals_of_steps() -> None:
    profile = _session().profile(FEED, repeat=2)
    totals = profile.by_kernel()
    assert sum(row[2] for row in totals) == pytest.approx(sum(s.seconds for s in profile.steps))
    assert {row[0] for row in totals} == {step.kernel for step in profile.steps}


def test_the_trace_nests_bodies_in_their_step() -> None:
    trace = json.loads(json.dumps(_session().profile(FEED, repeat=2).trace()))
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    found = {event["name"].split()[0]: event for event in events}
    outer, inner = found["onnx.If"], found["onnx.Exp"]
    assert outer["ts"] <= inner["ts"]
    assert inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"]
    assert min(event["ts"] for event in events) == 0
    assert [e["args"]["name"] for e in trace["traceEvents"] if e["ph"] == "M"] == ["run"]


def test_tiles_have_the_tracks_of_their_threads() -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]>'
        "g (float[512, 512] x) => (float[512, 512] y) {y = MatMul(x, x)}"
    )
    session = foldline.compile(model).session(threads=2)
    profile = session.profile({"x": np.ones((512, 512), np.float32)}, repeat=3)
    tiles = [each for each in profile.slices if each.kind == "tile"]
    assert len(tiles) > 1
    (step,) = (each for each in profile.slices if each.name.startswith("onnx.MatMul"))
    for tile in tiles:
        assert step.start <= tile.start <= tile.start + tile.seconds <= step.start + step.seconds


def test_profiling_leaves_no_trace_in_later_runs() -> None:
    session = _session()
    profile = session.profile(FEED, repeat=1)
    before = len(profile.slices)
    session.run(None, FEED)
    assert len(profile.slices) == before
    with pytest.raises(InvalidArgumentError, match="repeat"):
        session.profile(FEED, repeat=0)


@pytest.mark.parametrize(
    ("operator", "inputs", "results", "attributes", "expected"),
    [
        (("", "MatMul"), [(2, 3, 4), (4, 5)], [(2, 3, 5)], {}, 2 * 2 * 3 * 4 * 5),
        (("", "MatMul"), [(4,), (4, 5)], [(5,)], {}, 2 * 4 * 5),
        (("", "Gemm"), [(4, 3), (4, 5), None], [(3, 5)], {"transA": 1}, 2 * 3 * 4 * 5),
        (("foldline", "Linear"), [(3, 4), (5, 4)], [(3, 5)], {"transB": 1}, 2 * 3 * 4 * 5),
        (("", "Conv"), [(1, 8, 9, 9), (6, 4, 3, 3)], [(1, 6, 7, 7)], {"group": 2}, 2 * 294 * 36),
        (
            ("", "ConvTranspose"),
            [(1, 8, 5, 5), (8, 6, 3, 3)],
            [(1, 6, 7, 7)],
            {},
            2 * 200 * 54,
        ),
        (("", "LSTM"), [(7, 2, 3), (1, 16, 3), (1, 16, 4)], [(7, 1, 2, 4)], {}, 28 * (48 + 64)),
        (
            ("", "Attention"),
            [(1, 2, 5, 8), (1, 2, 6, 8), (1, 2, 6, 4)],
            [(1, 2, 5, 4)],
            {},
            2 * 2 * 5 * 6 * (8 + 4),
        ),
        (("", "Relu"), [(3,)], [(3,)], {}, None),
        (("", "MatMul"), [None, (4, 5)], [(3, 5)], {}, None),
    ],
)
def test_operations_by_operator(operator, inputs, results, attributes, expected) -> None:
    assert flops_of(operator, inputs, results, attributes) == expected
