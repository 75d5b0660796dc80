"""skip-normalization: sums before normalisations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import foldline
from foldline.exporter import export_model
from foldline.stages.passes.fusion.rms_normalization import RmsNormalization
from foldline.stages.passes.fusion.skip_normalization import SkipNormalization
from tests.stages.check import check_unchanged, from_onnx, nodes, op_types, run_pass, values
from tests.stages.passes.fusion.fused import session_values, typed
from tests.stages.passes.fusion.test_rms_normalization import model as rms_model
from tests.stages.passes.fusion.test_rms_normalization import parts

RNG = np.random.default_rng(5)
FEED = {name: RNG.normal(size=(2, 3, 8)).astype(np.float32) for name in "xz"}
FEED["x"][0, 0, 0], FEED["x"][1, 1, 2] = np.nan, np.inf
LAYER = "y = LayerNormalization <axis = -1> (s, w, b)"
RMS = "y = RMSNormalization <epsilon = 0.001> (s, w)"


def model(body: str, opset: int = 23, z: str = "M, N, 8", outputs: str = "", kind: str = "float"):
    ones = "{1, 2, 3, 4, 5, 6, 7, 8}"
    return typed(
        from_onnx(
            f"""g ({kind}[M, N, 8] x, {kind}[{z}] z) => ({kind}[M, N, 8] y{outputs})
            <{kind}[8] w = {ones}, {kind}[8] b = {ones}> {{ {body} }}""",
            opset=opset,
        )
    )


def same(found: list[Any], wanted: list[Any]) -> None:
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(a.view(np.uint32), b.view(np.uint32))


@pytest.mark.parametrize("rows", [LAYER, LAYER.replace(", b)", ")"), RMS])
@pytest.mark.parametrize("outputs", ["", ", float[M, N, 8] s", ", float[M, N, 8] t"])
def test_a_sum_goes_in_with_the_bits_it_had(rows: str, outputs: str):
    body = f"s = Add(x, z) {'t = Neg(s) ' if outputs.endswith('t') else ''} {rows}"
    module = model(body, outputs=outputs)
    before = session_values(module.clone(), FEED)
    run_pass(SkipNormalization(), module)
    (node,) = (op for op in nodes(module) if op.op_type.startswith("Skip"))
    assert len(node.results) == 1 + bool(outputs)
    assert "Add" not in op_types(module)
    same(session_values(module, FEED), before)


@pytest.mark.parametrize("outputs", ["", ", float[M, N, 8] s"])
def test_files_get_the_parts(outputs: str):
    module = model(f"s = Add(x, z) {LAYER}", outputs=outputs)
    before = values(module.clone(), FEED)
    run_pass(SkipNormalization(), module)
    file = export_model(module)
    assert [node.op_type for node in file.graph.node] == ["Add", "LayerNormalization"]
    same(values(module, FEED), before)


def test_what_is_added_may_be_broadcast():
    module = model(f"s = Add(z, x) {LAYER}", z="8")
    feed = {"x": FEED["x"], "z": FEED["z"][0, 0]}
    before = session_values(module.clone(), feed)
    run_pass(SkipNormalization(), module)
    assert op_types(module) == ["SkipLayerNormalization"]
    assert module_dims(module) == "tensor<?x?x8xf32"
    same(session_values(module, feed), before)


def module_dims(module: Any) -> str:
    return str(nodes(module)[-1].results[0].type).split(",")[0]


def test_the_fused_normalisation_below_operator_set_23():
    body = parts().replace("(x, two)", "(s, two)").replace("(x, r)", "(s, r)").replace("(x", "(s")
    module = rms_model(f"s = Add(x, z) {body} y = Mul(n, w)", inputs=", float[M, N, 8] z")
    before = session_values(module.clone(), FEED)
    run_pass(RmsNormalization(), module)
    fused = session_values(module.clone(), FEED)
    run_pass(SkipNormalization(), module)
    (node,) = (op for op in nodes(module) if op.op_type == "SkipRMSNormalization")
    assert len(node.results) == 1
    same(session_values(module, FEED), fused)
    made = [node for node in export_model(module).graph.node if node.op_type != "Constant"]
    assert len(made) == len(nodes(rms_file(body)))
    np.testing.assert_allclose(values(module, FEED)[0], before[0], rtol=1e-5, atol=1e-6)


def rms_file(body: str) -> Any:
    return rms_model(f"s = Add(x, z) {body} y = Mul(n, w)", inputs=", float[M, N, 8] z")


def test_statistics_that_are_read_stay():
    body = "s = Add(x, z) y, m = LayerNormalization(s, w, b) n = Neg(m)"
    given = model(body, outputs=", float[M, N, 1] n")
    check_unchanged(SkipNormalization(), given, "mean and deviation are results as well")


def test_types_have_to_be_known():
    given = from_onnx(
        """g (float[M, 8] x, float[M, 8] z) => (float[M, 8] y) <float[8] w = {1,2,3,4,5,6,7,8}>
        { s = Add(x, z) y = RMSNormalization(s, w) }""",
        opset=23,
    )
    check_unchanged(SkipNormalization(), given, "rows of None are scaled and shifted by f32")


@pytest.mark.parametrize("mode", ["fast", "exact"])
@pytest.mark.parametrize("size", [(0, 3, 8), (1, 1, 8), (40, 50, 8)])
def test_bits_in_a_session_of_several_runs(mode: str, size: tuple[int, ...]):
    file = export_model(model(f"s = Add(x, z) {LAYER} t = Neg(s)", outputs=", float[M, N, 8] t"))
    found: list[list[Any]] = []
    for off in ([], ["skip-normalization"]):
        options = {"mode": mode, "passes.disable": off}
        compiled = foldline.compile(file, options=options)
        assert ("SkipLayerNormalization" in op_types(compiled.module)) is not bool(off)
        session = compiled.session(threads=2)
        feed = {"x": np.ones(size, np.float32) / 3, "z": np.full(size, -0.1, np.float32)} | (
            {name: FEED[name][:1, :1] for name in "xz"} if size == (1, 1, 8) else {}
        )
        for _ in range(3):
            last = session.run(None, feed)
        found.append(last)
    same(*found)
