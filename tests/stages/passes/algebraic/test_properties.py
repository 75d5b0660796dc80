"""Row A106: what is rewritten is valid, alike outside, equal in value, and then settled."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import ModelProto

import foldline
from foldline.dialects.onnx.verifier import verify_model
from foldline.exporter import export_model
from foldline.stages.context import PassContext
from foldline.stages.observers import module_text
from foldline.stages.pass_base import Pass
from foldline.stages.passes.algebraic.conv_add_batch_normalization_folding import (
    ConvAddBatchNormalizationFolding,
)
from foldline.stages.passes.algebraic.conv_channel_affine_folding import ConvChannelAffineFolding
from foldline.stages.passes.algebraic.exp_positive_scale_folding import ExpPositiveScaleFolding
from foldline.stages.passes.algebraic.gather_slice_to_split_fusion import GatherSliceToSplitFusion
from foldline.stages.passes.algebraic.static_split_to_slice import StaticSplitToSlice
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.rewriting import count_nodes
from tests.stages.check import values
from tests.stages.passes.algebraic.graphs import compare, draw, feeds, interface, model, ready
from tests.stages.passes.algebraic.random_graphs import random_model

PASSES: dict[str, tuple[Pass, float]] = {
    "conv": (ConvChannelAffineFolding(), 2e-5),
    "exp": (ExpPositiveScaleFolding(), 1e-5),
    "split": (GatherSliceToSplitFusion(), 0.0),
    "slice": (StaticSplitToSlice(), 0.0),
    "norm": (ConvAddBatchNormalizationFolding(), 2e-5),
}
"""With the error that each allows."""

MANY = pytest.mark.parametrize("count", [8, pytest.param(500, marks=pytest.mark.slow)])


def check(a_pass: Pass, rtol: float, given_model: ModelProto) -> bool:
    """All that must hold of one model; whether the pass did anything."""
    module = ready(given_model)
    before = module.clone()
    context = PassContext(module)
    a_pass.run(context)
    verify_model(module, names=False)
    assert context.rewriter.nodes == count_nodes(module)
    written = export_model(module)
    onnx.checker.check_model(written, full_check=True)
    assert interface(written) == interface(given_model)
    fed = feeds(given_model)
    if context.rewriter.changes:
        compare(values(before, fed), values(module, fed), rtol)
    InferShapes().run(again := PassContext(module))
    assert again.rewriter.changes == 0
    settled = ready(written)
    text = module_text(settled)
    a_pass.run(PassContext(settled))
    assert module_text(settled) == text
    return bool(context.rewriter.changes)


@MANY
@pytest.mark.parametrize("family", ["conv", "exp", "split", "slice"])
def test_row_A106_random_graphs(family: str, count: int) -> None:
    a_pass, rtol = PASSES[family]
    changed = Counter[bool]()

    @settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.integers(0, 2**32 - 1))
    def run(seed: int) -> None:
        changed[check(a_pass, rtol, random_model(seed))] += 1

    run()
    if count > 100:
        assert changed[True] > count // 25, changed


@MANY
def test_row_A106_random_norms(count: int) -> None:
    @settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.integers(0, 2**32 - 1))
    def run(seed: int) -> None:
        check(*PASSES["norm"], random_norm(seed))

    run()


def random_norm(seed: int) -> ModelProto:
    """Conv, Add and BatchNormalization with parameters, sizes and obstacles that are drawn."""
    rng = np.random.default_rng(seed)
    maps, size = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    shape = [(maps, 1, 1), (1, maps, size, size), (1,), (size, size), ()][int(rng.integers(5))]
    constants = {
        "w": draw(maps, 2, 1, 1, seed=seed),
        "b": draw(maps, seed=seed + 1),
        "A": draw(*shape, seed=seed + 2),
        "gamma": draw(maps, seed=seed + 3),
        "beta": draw(maps, seed=seed + 4),
        "mean": draw(maps, seed=seed + 5),
        "var": draw(maps, seed=seed + 6) ** 2 + np.float32(0.1),
    }
    add = "a = Add(c, A)" if rng.random() < 0.5 else "a = Add(A, c)"
    more = "z = Relu(c)" if rng.random() < 0.2 else "z = Relu(x)"
    text = f"""g (float[1,2,{size},{size}] x)
        => (float[1,{maps},{size},{size}] y, float[P,Q,R,S] z) {{
        c = Conv(x, w{", b" if rng.random() < 0.5 else ""}) {add} {more}
        y = BatchNormalization(a, gamma, beta, mean, var) }}"""
    if "w, b" not in text:
        del constants["b"]
    return model(text, **constants)


@MANY
@pytest.mark.parametrize("level", ["O1", "O3"])
def test_row_A106_all_of_them_in_the_pipeline(level: str, count: int) -> None:
    """By the public path, all five on: valid, equal, and settled after one compile."""
    names = [a_pass.name for a_pass, _ in PASSES.values()]
    options: dict[str, object] = {"passes.enable": names, "oo.level": level}

    @settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.integers(0, 2**32 - 1))
    def run(seed: int) -> None:
        drawn = random_model(seed)
        once = foldline.optimize(drawn, options=options)
        onnx.checker.check_model(once, full_check=True)
        assert interface(once) == interface(drawn)
        fed = feeds(drawn)
        compare(values(ready(drawn), fed), values(ready(once), fed), 2e-5)
        assert is_settled(once, options) or not is_settled_alone(drawn, level)

    run()


def is_settled(once: ModelProto, options: dict[str, object]) -> bool:
    """Whether another compile changes nothing."""
    again = foldline.optimize(once, options=options)
    return again.SerializeToString() == once.SerializeToString()


def is_settled_alone(drawn: ModelProto, level: str) -> bool:
    """Whether the other passes, without these five, are done with a model after one compile."""
    plain: dict[str, object] = {"oo.level": level}
    return is_settled(foldline.optimize(drawn, options=plain), plain)
