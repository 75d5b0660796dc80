"""What is said of a model that ONNX Runtime optimised."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import parser

from benchmarks.common import ort_session
from benchmarks.model_sets import Feed, ModelSet
from benchmarks.run_optimised import check_model, contrib_operators, left_inputs, worst

HEAD = '<ir_version: 8, opset_import: ["" : 16, "com.microsoft" : 1]>'
CONV = f"""{HEAD} g (float[N, 1, 4] x) => (float[N, 1, 2] y)
    <float[1, 1, 3] w = {{1, 2, 3}}> {{ c = Conv(x, w) y = Relu(c) }}"""
SHARED = """<ir_version: 3, opset_import: ["" : 16]>
    g (float[6] x, int64[2] k = {2, 3}, int64[2] l = {2, 3}) => (float[2, 3] y, float[2, 3] z)
    { y = Reshape(x, k) z = Reshape(x, l) }"""
HASH = f"{HEAD} g (int32[N, 1, 4] x) => (uint32[N, 1, 4] y) {{ y = com.microsoft.MurmurHash3(x) }}"
BRANCHES = f"""{HEAD} g (bool c, float[2] x) => (float[2] y) {{
    y = If (c) <
        then_branch = a () => (float[2] u) {{ u = com.microsoft.Gelu(x) }},
        else_branch = b () => (float[2] v) {{ h = com.microsoft.Gelu(x) v = Relu(h) }}> }}"""


def one_model(folder: Path, text: str, feeds: list[Feed]) -> ModelSet:
    onnx.save(parser.parse_model(text), folder / "m.onnx")
    return ModelSet(
        ("m",), lambda name: folder / f"{name}.onnx", lambda _: feeds, lambda _: "float32"
    )


def test_a_model_that_runs(tmp_path: Path) -> None:
    feeds = [{"x": np.ones(shape, np.float32)} for shape in ((1, 1, 4), (1, 2, 4), (3, 1, 4))]
    row = check_model(one_model(tmp_path, CONV, feeds), "m", "extended")
    assert row["operators"] == {"FusedConv": 1}
    first, refused, last = row["errors"]
    assert refused is None
    assert max(first, last) == worst(row) <= row["limit"]


def test_at_basic_the_file_has_operators_of_onnx_alone(tmp_path: Path) -> None:
    row = check_model(one_model(tmp_path, CONV, []), "m", "basic")
    assert row["operators"] == {}
    assert worst(row) == 0


def test_a_model_that_does_not_run_names_the_operator(tmp_path: Path) -> None:
    models = one_model(tmp_path, HASH, [{"x": np.ones((1, 1, 4), np.int32)}])
    row = check_model(models, "m", "basic")
    assert row["operators"] == {"MurmurHash3": 1}
    assert "com.microsoft MurmurHash3" in row["failure"]


def test_operators_of_inner_graphs_count() -> None:
    assert contrib_operators(parser.parse_model(BRANCHES).graph) == {"Gelu": 2}


def test_inputs_that_lost_their_initializers(tmp_path: Path) -> None:
    """ONNX Runtime drops one of two equal initializers, but not the input that it was of."""
    model = parser.parse_model(SHARED)
    written = tmp_path / "written.onnx"
    ort_session(model.SerializeToString(), "basic", written=written)
    left = left_inputs(model.graph, ort_session(written, "off"))
    assert {name: value.tolist() for name, value in left.items()} == {"k": [2, 3]}
