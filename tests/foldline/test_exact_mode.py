"""Exact mode: the same bits at every level and for any number of threads, or a refusal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, note, settings
from onnx import parser

import foldline
from foldline.cli import root
from foldline.kernels import registry
from foldline.kernels.registry import all_kernels, find_kernel
from foldline.session import Session
from foldline.stages.folding.engine import HostEngine, installed_engines
from foldline.support.errors import UnsupportedOperator
from foldline.support.passes import PASSES
from tests.foldline import exact_graphs
from tests.golden.models import MODELS
from tests.properties.graphs import Drawn, graphs

LEVELS = ("O0", "O1", "O2", "O3")


def session(model: Any, level: str = "O3", threads: int = 1) -> Session:
    options = {"mode": "exact", "oo.level": level}
    return foldline.compile(model, options=options).session(threads=threads)


def bits(values: list[Any]) -> list[tuple[Any, ...]]:
    return [(v.dtype.name, v.shape, np.ascontiguousarray(v).tobytes()) for v in values]


def model(text: str, opset: int = 17) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{text}')


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(graphs())
def test_t1_levels_agree_on_shape_arithmetic(drawn: Drawn) -> None:
    note(onnx.printer.to_text(drawn.model))
    expected = bits(session(drawn.model, "O0").run(None, drawn.feed))
    for level in LEVELS[1:]:
        assert bits(session(drawn.model, level).run(None, drawn.feed)) == expected, level


@pytest.mark.parametrize("seed", range(80))
def test_t1_t3_levels_and_threads_agree_on_arithmetic(seed: int) -> None:
    drawn, feed = exact_graphs.graph(seed)
    expected = bits(session(drawn, "O0").run(None, feed))
    for level in LEVELS[1:]:
        assert bits(session(drawn, level).run(None, feed)) == expected, level
    planned = session(drawn, "O3", threads=2 + seed % 3)
    for _ in range(3):
        assert bits(planned.run(None, feed)) == expected


def test_a_layout_moved_by_a_pass_does_not_matter() -> None:
    source = model(
        """g (float[2, 3, 5, 7] x) => (float[A, B] y, float[C, D] z) {
            t = Transpose <perm = [0, 1, 3, 2]> (x)
            y = ReduceMean <axes = [2, 3], keepdims = 0> (t)
            u = Transpose <perm = [3, 0, 2, 1]> (x)
            z = ReduceSum <keepdims = 0> (u, axes)
        }"""
    )
    source.graph.initializer.append(onnx.numpy_helper.from_array(np.array([0, 3]), "axes"))
    x = np.random.default_rng(0).standard_normal((2, 3, 5, 7)).astype(np.float32)
    expected = bits(session(source, "O0").run(None, {"x": x}))
    for level in LEVELS[1:]:
        assert bits(session(source, level).run(None, {"x": x})) == expected


def test_nan_of_arithmetic_is_the_one_nan_and_copies_keep_theirs() -> None:
    source = model(
        """g (float[4] x) => (float[4] s, float[4] d, float[4] c, float[4] p, float[1, 4] m) {
            s = Add (x, x)
            d = Sub (x, x)
            c = Concat <axis = 0> (x)
            p = Relu (x)
            row = Unsqueeze (x, axes)
            e = Mul (row, w)
            m = MatMul (e, eye)
        }"""
    )
    tensors = {"axes": np.array([0]), "w": np.float32([[0, 1, 1, 1]]), "eye": np.eye(4, dtype="f4")}
    for name, value in tensors.items():
        source.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    x = np.array([0x7F800000, 0xFFC00001, 0x7FC01234, 0x80000000], np.uint32).view(np.float32)
    for level in LEVELS:
        s, d, c, p, m = session(source, level).run(None, {"x": x})
        assert s.view(np.uint32).tolist() == [0x7F800000, 0x7FC00000, 0x7FC00000, 0x80000000]
        assert d.view(np.uint32).tolist() == [0x7FC00000, 0x7FC00000, 0x7FC00000, 0]
        assert c.tobytes() == x.tobytes()
        assert p.view(np.uint32).tolist() == [0x7F800000, 0x7FC00000, 0x7FC00000, 0]
        assert set(m.view(np.uint32).reshape(-1).tolist()) == {0x7FC00000}


def test_row_3_3_folding_computes_with_exact_kernels() -> None:
    source = model("g () => (float[3] y) { e = Exp (c) y = Mul (e, one) }")
    c = np.float32([0.3, 1.7, -2.9])
    for name, value in {"c": c, "one": np.ones(3, np.float32)}.items():
        source.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    options = {"mode": "exact", "fold.graphOutputs": True}
    compiled = foldline.compile(source, options=options)
    assert [node.op_type for node in compiled.to_proto().graph.node] == ["Constant"]
    exact = find_kernel("", "Exp", 13, ["exact"])
    assert exact is not None
    assert compiled.session().run(None, {})[0].tobytes() == exact.function(c).tobytes()
    (engine,) = installed_engines("exact")
    assert isinstance(engine, HostEngine)


REFUSED = ["ImageDecoder"]
"""Decoders of compressed images are not made of arithmetic that is defined."""


def test_what_is_refused() -> None:
    """No other grade is fallen back to; what is left out here runs as a function."""
    domains = ("", "ai.onnx.ml", "com.microsoft")
    known = {(k.domain, k.op_type) for k in all_kernels() if k.domain in domains}
    exact = {(k.domain, k.op_type) for k in all_kernels() if k.grade == "exact"}
    functions = {
        (schema.domain, schema.name)
        for schema in onnx.defs.get_all_schemas_with_history()
        if schema.has_function or schema.has_context_dependent_function
    }
    refused = sorted(known - exact - functions)
    assert [op_type for _, op_type in refused] == REFUSED
    assert all(find_kernel(domain, op_type, 20, ["exact"]) is None for domain, op_type in refused)
    page = (Path(__file__).parents[2] / "docs" / "numerics.md").read_text()
    assert all(op_type in page for op_type in REFUSED)


def test_every_version_of_an_operator_is_served() -> None:
    exact = {(k.domain, k.op_type) for k in all_kernels() if k.grade == "exact"}
    for schema in onnx.defs.get_all_schemas_with_history():
        key, since = (schema.domain, schema.name), schema.since_version
        if key in exact and find_kernel(*key, since) is not None:
            assert find_kernel(*key, since, ["exact"]) is not None, (key, since)


DECODER = """g (uint8[9] b) => (uint8[H, W, 3] z) { z = ImageDecoder (b) }"""


def test_an_image_decoder_is_refused_with_a_way_out() -> None:
    compiled = foldline.compile(model(DECODER, 20), options={"mode": "exact"})
    with pytest.raises(UnsupportedOperator) as caught:
        compiled.session()
    first, named, advice = str(caught.value).splitlines()
    assert first == "1 operator has no exact kernel:"
    assert "ImageDecoder, version 20, 1 node" in named
    assert advice.startswith("run the model in mode fast, ")
    foldline.compile(model(DECODER, 20)).session()


def _without_an_exact_kernel(monkeypatch: pytest.MonkeyPatch, op_type: str) -> None:
    """As if the operator had none: all have by now."""
    table = {
        key: [k for k in kernels if key != ("", op_type) or k.grade != "exact"]
        for key, kernels in registry._TABLE.items()
    }
    monkeypatch.setattr(registry, "_TABLE", table)


def test_all_operators_without_exact_kernel_are_named_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _without_an_exact_kernel(monkeypatch, "RandomNormalLike")
    source = model(
        """g (float[2, 2] x, uint8[9] b) => (float[2, 2] y, uint8[H, W, 3] z) {
            n = RandomNormalLike (x)
            a = Add (x, n)
            y = Relu (a)
            z = ImageDecoder (b)
        }""",
        20,
    )
    compiled = foldline.compile(source, options={"mode": "exact"})
    with pytest.raises(UnsupportedOperator) as caught:
        compiled.session()
    lines = str(caught.value).splitlines()
    assert lines[0] == "2 operators have no exact kernel:"
    assert "ImageDecoder, version 20, 1 node" in lines[1]
    assert "RandomNormalLike, version 1, 1 node" in lines[2]
    assert lines[3].startswith("run the model in mode fast, ")
    foldline.compile(source).session()


def test_operators_in_bodies_are_refused_too() -> None:
    source = model(
        """g (uint8[9] x, bool b) => (uint8[H, W, C] y) {
            y = If (b) <
                then_branch = yes () => (uint8[A, B, D] p) { p = ImageDecoder (x) },
                else_branch = no () => (uint8[E, F, G] n) { n = Unsqueeze (x, axes) }>
        }""",
        20,
    )
    source.graph.initializer.append(onnx.numpy_helper.from_array(np.array([0, 1]), "axes"))
    with pytest.raises(UnsupportedOperator, match="ImageDecoder"):
        session(source)


def test_r2_only_passes_that_preserve_bits_run() -> None:
    compiled = foldline.compile(MODELS["transformer"]().model, options={"mode": "exact"})
    ran = {row.name for row in compiled.report.rows}
    assert "constant-folding" in ran
    assert all(PASSES[name].preserves_bits for name in ran & set(PASSES))
    fast = foldline.compile(MODELS["transformer"]().model)
    assert {row.name for row in fast.report.rows} - ran


def test_the_command_line(tmp_path: Path) -> None:
    golden = MODELS["perceptron"]()
    file = tmp_path / "m.onnx"
    onnx.save(golden.model, file)
    np.save(tmp_path / "x.npy", golden.feed["x"])
    given = ["--input", f"x={tmp_path / 'x.npy'}", "--mode", "exact"]
    for level in ("O0", "O3"):
        out = tmp_path / f"{level}.npz"
        arguments = ["run", str(file), *given, "--oo.level", level, "-o", str(out)]
        result = CliRunner().invoke(root, arguments)
        assert result.exit_code == 0, result.output
    first, last = (np.load(tmp_path / f"{level}.npz") for level in ("O0", "O3"))
    expected = session(golden.model).run(None, golden.feed)
    for name, value in zip(("y", "z"), expected, strict=True):
        assert first[name].tobytes() == last[name].tobytes() == value.tobytes()


def test_the_export_runs_alike() -> None:
    golden = MODELS["convolutions"]()
    compiled = foldline.compile(golden.model, options={"mode": "exact"})
    again = session(compiled.to_bytes(), "O0").run(None, golden.feed)
    assert bits(again) == bits(compiled.session().run(None, golden.feed))
