"""Chains of element-wise calls, run part by part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.kernels.parallel import use_threads
from foldline.lowering import chains, lower
from foldline.session import Session
from foldline.stages.context import PassContext
from foldline.stages.passes.fusion.element_wise_fusion import ElementWiseFusion
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from tests.stages.check import from_onnx


def fused(text: str) -> ModuleOp:
    module = from_onnx(text)
    InferShapes().run(PassContext(module))
    ElementWiseFusion().run(PassContext(module))
    return module


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Lets small data run in parts of one row; the numbers of parts that were made."""
    made: list[int] = []
    monkeypatch.setattr(chains, "LEAST_BYTES", 1)
    monkeypatch.setattr(chains, "PART_BYTES", 1)
    tile = chains.parallel_for

    def counting(count: int, body: Any) -> None:
        made.append(count)
        tile(count, body)

    monkeypatch.setattr(chains, "parallel_for", counting)
    return made


CHAINS = [
    "a = Add(t, c) b = Mul(a, r) e = Neg(b)",
    "a = Exp(t) b = Add(a, t) e = Mul(b, a)",
    "a = Transpose <perm = [1, 0]> (t) b = Neg(t) d = Add(b, a) e = Abs(d)",
    "a = Less(t, c) b = Cast <to = 1> (a) e = Mul(b, t)",
    "a = Elu(t) b = Mish(a) d = Softplus(b) e = PRelu(d, r)",
    "a = Elu(t) b = Cast <to = 11> (a) d = Elu(b) f = Cast <to = 1> (d) e = Softplus(f)",
    "a = Sigmoid(t) b = Mul(a, t) d = Clip(b, , c) e = Sqrt(d)",
]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("chain", CHAINS)
def test_parts_give_the_bits_of_the_whole(chain: str, threads: int, parts: list[int]) -> None:
    text = f"""g (float[6,6] x) => (float[6,6] y)
        <float c = {{0.5}}, float[6] r = {{1, 2, 3, 4, 5, 6}}> {{
        t = MatMul(x, x) {chain} y = MatMul(e, x) }}"""
    x = np.random.default_rng(0).standard_normal((6, 6)).astype(np.float32)
    x[0, 0], x[1, 1] = np.nan, np.inf
    whole = from_onnx(text)
    (expected,) = Session(lower(whole), threads).run(None, {"x": x})
    with use_threads(threads):
        session = Session(lower(fused(text)), threads)
        for _ in range(3):
            (actual,) = session.run(None, {"x": x})
            assert actual.tobytes() == expected.tobytes()
    assert parts
    assert set(parts) == {6}


def test_scratch_of_calls_that_run_part_by_part_is_apart(parts: list[int]) -> None:
    """While one thread is at one call of a part, another is at another call of its own."""
    module = fused("""g (float[6,6] x) => (float[6,6] y) {
        t = MatMul(x, x) a = Elu(t) b = Cast <to = 11> (a) d = Softplus(b) f = Cast <to = 1> (d)
        y = MatMul(f, x) }""")
    session = Session(lower(module), 1)
    for _ in range(3):
        session.run(None, {"x": np.ones((6, 6), np.float32)})
    (pool,) = session.program.plans()
    calls = [call for call in pool.plan.calls if call.span is not None and call.scratch is not None]
    spans = [(call.span.first, call.span.last) for call in calls if call.span is not None]
    buffers = [call.scratch.buffer for call in calls if call.scratch is not None]
    assert len(calls) == 2
    assert [(buffer.start, buffer.end) for buffer in buffers] == spans
    assert parts


def test_small_data_runs_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(count: int, body: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(chains, "parallel_for", never)
    module = fused("""g (float[4,4] x) => (float[4,4] y) {
        t = MatMul(x, x) a = Neg(t) b = Abs(a) y = MatMul(b, x) }""")
    session = Session(lower(module), 1)
    for _ in range(3):
        session.run(None, {"x": np.ones((4, 4), np.float32)})


def test_empty_data(parts: list[int]) -> None:
    module = fused("""g (float[N,4] x) => (float[N,4] y) {
        t = Softmax(x) a = Neg(t) b = Abs(a) y = Softmax(b) }""")
    session = Session(lower(module), 1)
    for _ in range(3):
        (y,) = session.run(None, {"x": np.ones((0, 4), np.float32)})
        assert y.shape == (0, 4)
    assert not parts
