"""Options by what they do to a model, in each spelling, source and scope."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper, numpy_helper

import foldline
from foldline.cli import root
from foldline.config import load_config
from tests.stages.check import onnx_model

AS_IMPORTED = ["Cast", "Add", "Add", "Identity", "Mul"]
FOLDED = ["Mul"]
X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)


def model() -> onnx.ModelProto:
    """y = x * (1 + 2 + 3), all but the product of constants."""
    made = onnx_model("""g (float[2, 3] x) => (float[2, 3] y)
        <float one = {1}, float two = {2}, int64[1] three = {3}> {
        [cast] w = Cast <to = 1> (three)
        [sum] t = Add (one, two)
        [total] u = Add (t, w)
        [hand_on] v = Identity (u)
        [mul] y = Mul (x, v)
    }""")
    by_name = {node.name: node for node in made.graph.node}
    by_name["sum"].metadata_props.add(key="owner", value="tests")
    return made


def operators(proto: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in proto.graph.node if node.op_type != "Constant"]


def optimised(**options: Any) -> list[str]:
    return operators(foldline.optimize(model(), options=options))


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    onnx.save(model(), "m.onnx")
    with contextlib.chdir(tmp_path):
        yield


@pytest.mark.parametrize("spelling", ["oo.level", "ge.oo.level", "oo_level", "ge.oo_level"])
@pytest.mark.parametrize(("value", "left"), [("O0", AS_IMPORTED), ("O1", FOLDED), ("All", FOLDED)])
def test_spellings_of_the_level(spelling: str, value: str, left: list[str]) -> None:
    assert optimised(**{spelling: value}) == left
    flags = ["compile", "m.onnx", "-o", "cli.onnx", "--set", f"{spelling}={value}"]
    assert CliRunner().invoke(root, flags).exit_code == 0
    assert operators(onnx.load("cli.onnx")) == left
    Path("c.yaml").write_text(f"model: m.onnx\noptions: {{{spelling}: {value}}}")
    assert operators(_configured("c.yaml")) == left


@pytest.mark.parametrize("flag", ["--oo.level", "--ge.oo.level", "--oo_level"])
def test_flags_of_the_level(flag: str) -> None:
    for value, left in (("O0", AS_IMPORTED), ("O2", FOLDED)):
        arguments = ["optimize", "m.onnx", "out.onnx", "--force", flag, value]
        result = CliRunner().invoke(root, arguments)
        assert result.exit_code == 0, result.output
        assert operators(onnx.load("out.onnx")) == left


def _configured(path: str) -> onnx.ModelProto:
    configuration = load_config(path)
    (entry,) = configuration.entries
    compiler = foldline.Compiler(configuration.options)
    return compiler.compile(entry.model, options=entry.options).to_proto()


def test_the_narrower_scope_wins() -> None:
    def compiled(session: Any, graph: Any) -> list[str]:
        return operators(foldline.Compiler(session).compile(model(), options=graph).to_proto())

    assert compiled({}, {}) == FOLDED
    foldline.set_options({"oo.level": "O0"})
    assert compiled({}, {}) == AS_IMPORTED
    assert compiled({"oo.level": "O2"}, {}) == FOLDED
    assert compiled({"oo.level": "O2"}, {"oo.level": "O0"}) == AS_IMPORTED
    assert compiled({"oo.level": "O0"}, {"oo.level": "O2"}) == FOLDED
    foldline.set_options({})
    assert compiled({}, {}) == FOLDED


def test_with_folding_off_shapes_stay_and_run() -> None:
    made = onnx_model("""g (float[2, 3] x) => (float[3, 2] y, int64 z) <int64[1] two = {2}> {
        s = Shape <start = 1> (x)
        t = Concat <axis = 0> (s, two)
        y = Reshape (x, t)
        z = Size (x)
    }""")
    compiled = foldline.compile(made, options={"oo.constantFolding": False})
    assert operators(compiled.to_proto()) == ["Shape", "Concat", "Reshape", "Size"]
    y, z = compiled.session().run(None, {"x": X})
    np.testing.assert_array_equal(y, X.reshape(3, 2))
    assert z == 6


SKIPPED = ["Add", "Add", "Mul"]


@pytest.mark.parametrize(
    "pattern",
    ["sum", "su*", "value:t", "meta:owner=tests", "meta:own*=*", "nothing,sum"],
)
def test_a_skipped_node_stays(pattern: str) -> None:
    assert optimised(**{"fold.skip": pattern}) == SKIPPED


@pytest.mark.parametrize("pattern", ["summ", "value:u2", "meta:owner=others", "meta:owner", "op:A"])
def test_a_pattern_that_fits_nothing_skips_nothing(pattern: str) -> None:
    assert optimised(**{"fold.skip": pattern}) == FOLDED


@pytest.mark.parametrize("key", ["foldline.keep", "fold.skip"])
@pytest.mark.parametrize(("value", "left"), [("true", SKIPPED), ("", SKIPPED), ("False", FOLDED)])
def test_metadata_of_a_node_keeps_it(key: str, value: str, left: list[str]) -> None:
    made = model()
    (node,) = (node for node in made.graph.node if node.name == "sum")
    node.metadata_props.add(key=key, value=value)
    small = foldline.optimize(made)
    assert operators(small) == left
    if left == SKIPPED:
        (kept,) = (node for node in small.graph.node if node.name == "sum")
        assert list(kept.metadata_props) == list(node.metadata_props)


def test_limit_of_the_size() -> None:
    made = onnx_model("""g (float[64] x) => (float[64] y) <int64[1] n = {64}, float[1] v = {2}> {
        w = Expand (v, n)
        y = Add (x, w)
    }""")
    assert "Expand" not in operators(foldline.optimize(made, options={"oo.level": "O1"}))
    small = foldline.optimize(made, options={"oo.level": "O1", "fold.maxBytes": 0})
    assert numpy_helper.to_array(small.graph.initializer[0]).size == 1


def test_graph_outputs_are_folded_if_asked_for() -> None:
    node = helper.make_node("Neg", ["c"], ["y"])
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
    tensor = helper.make_tensor("c", TensorProto.FLOAT, [1], [2])
    graph = helper.make_graph([node], "g", [], [output], [tensor])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    assert operators(foldline.optimize(made)) == ["Neg"]
    folded = foldline.compile(made, options={"fold.graphOutputs": True})
    assert operators(folded.to_proto()) == []
    assert folded.session().run(None, {})[0].tolist() == [-2.0]


def halves(element: str) -> onnx.ModelProto:
    """A product that can be fused, beside one of another type, which halves would round less."""
    w = ", ".join(["1"] * 6)
    return onnx_model(f"""g (float[4, 2] x, {element}[4, 2] h) => (float[4, 3] y, {element}[4, 3] z)
        <float[2, 3] w = {{{w}}}, {element}[2, 3] v = {{{w}}}> {{
        a = MatMul (x, w)
        y = Relu (a)
        b = Gemm (h, v)
        z = Relu (b)
    }}""")


@pytest.mark.parametrize(
    ("element", "value", "fused"),
    [
        ("float16", "by-value", 1),
        ("float16", "skip-model", 0),
        ("bfloat16", "skip-model", 0),
        ("float", "skip-model", 2),
        ("float", "by-value", 2),
    ],
)
def test_h1_half_values_are_declined_one_by_one_or_all_at_once(
    element: str, value: str, fused: int
) -> None:
    compiled = foldline.compile(halves(element), options={"fusion.half": value})
    assert sum(op.name == "fused.Linear" for op in compiled.module.walk()) == fused
    said = [r.message for r in compiled.report.remarks if r.stage == "fusion"]
    skipped = f"fusion.half is skip-model, and the model holds values of {element}"
    assert any(skipped in message for message in said) == (value == "skip-model" and not fused)


@pytest.mark.parametrize("storage", ["Binary16", "BFloat16"])
def test_files_keep_the_weights_that_a_session_holds_compact(storage: str) -> None:
    w = np.random.default_rng(0).standard_normal((32, 32)).astype(np.float32)
    made = onnx_model(
        "g (float[2, 32] x) => (float[2, 32] y) <float[32, 32] w> { y = MatMul(x, w) }"
    )
    del made.graph.initializer[:]
    made.graph.initializer.append(numpy_helper.from_array(w, "w"))
    compiled = foldline.compile(made, options={"weightStorage": storage})
    assert compiled.to_bytes() == foldline.compile(made).to_bytes()
    x = np.eye(2, 32, dtype=np.float32)
    (plain,) = foldline.compile(made).session().run(None, {"x": x})
    (y,) = compiled.session().run(None, {"x": x})
    np.testing.assert_array_equal(plain, w[:2])
    assert 0 < np.abs(y - plain).max() < 0.01
