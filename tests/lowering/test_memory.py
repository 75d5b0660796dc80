"""What is promised of memory: weights are held once, arenas reuse theirs."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper, parser

import foldline
from foldline.kernels import registry
from tests.lowering.models import every_kind, program

SIZE = 512


def _linear(rows: int, weights: Any) -> onnx.ModelProto:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]>'
        f"g (float[{rows}, {SIZE}] x) => (float[{rows}, {SIZE}] y) {{y = MatMul(x, w)}}"
    )
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    return model


def test_memory_says_what_the_arena_saves() -> None:
    ready = program(
        "g (float[1024] x) => (float[1024] y) "
        "{a = Neg(x) b = Concat<axis = 0>(a, a) c = Slice(b, lo, hi) d = Exp(c)"
        "e = Concat<axis = 0>(d, d) f = Slice(e, lo, hi) y = Neg(f)}".replace(
            "{a", "<int64[1] lo = {0}, int64[1] hi = {1024}> {a"
        )
    )
    every_kind(ready, [np.ones(1024, np.float32)])
    memory = ready.memory()
    (plan,) = memory.plans
    assert 0 < plan.arena < plan.without_reuse
    assert plan.arena == ready.plans()[0].plan.arena_bytes
    assert memory.weights == 16
    assert memory.mapped == 0


def test_memory_counts_bodies() -> None:
    ready = program("""g (float[64] x, bool c) => (float[64] y) {
        y = If(c) <
            then_branch = t () => (float[64] p) <float[2] w = {1, 2}> {
                u = Neg(x) v = Exp(u) p = Neg(v) },
            else_branch = e () => (float[64] q) { q = Identity(x) }
        > }""")
    assert not ready.memory().bodies
    for _ in range(6):
        ready.run([np.ones(64, np.float32), np.array(True)])
    (body,) = ready.memory().bodies
    assert body.arena == 256


def test_external_weights_stay_mapped(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).standard_normal((SIZE, SIZE)).astype(np.float32)
    path = tmp_path / "model.onnx"
    onnx.save_model(
        _linear(3, weights), path, save_as_external_data=True, location="w.bin", size_threshold=0
    )
    session = foldline.compile(path).session(threads=1)
    x = np.ones((3, SIZE), np.float32)
    for _ in range(3):
        (y,) = session.run(None, {"x": x})
    np.testing.assert_allclose(y, x @ weights, rtol=1e-4, atol=1e-4)
    memory = session.memory()
    assert memory.mapped == memory.weights == weights.nbytes


def test_a_plan_takes_over_what_was_made_for_the_generic_runs(monkeypatch: Any) -> None:
    # A maker may pack weights; were it asked again, they would be held twice.
    table = registry._TABLE  # pyright: ignore[reportPrivateUsage]
    monkeypatch.delitem(table, ("", "Pow"), raising=False)
    packed: list[Any] = []

    @registry.maker("Pow")
    def packing(x: Any, w: Any, *, out: Any = None) -> Any:
        packed.append(w.value.copy())
        return lambda x, w, out=None: np.power(x, packed[-1], out=out)

    try:
        ready = program("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> {y = Pow(x, w)}")
        every_kind(ready, [np.ones(2, np.float32)])
        assert len(packed) == 1
        every_kind(ready, [np.ones((3, 2), np.float32)])
        assert len(packed) == 2
    finally:
        table.pop(("", "Pow"))


def test_quantised_weights_are_widened_once() -> None:
    codes = np.random.default_rng(0).integers(-128, 128, (1024, 1024)).astype(np.int8)
    nodes = [helper.make_node("MatMulInteger", ["x", "w"], ["y"])]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.INT8, [8, 1024])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.INT32, [8, 1024])],
        [numpy_helper.from_array(codes, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = foldline.compile(model).session(threads=1)
    x = np.ones((8, 1024), np.int8)
    tracemalloc.start()
    try:
        for _ in range(3):
            session.run(None, {"x": x})
        gc.collect()
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    wide = 4 * codes.nbytes
    assert held < 1.3 * wide
    assert peak < 2.6 * wide
