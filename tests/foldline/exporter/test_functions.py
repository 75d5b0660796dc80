"""`export.fused: functions`: each fused operator as a call of a function that says what it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from click.testing import CliRunner
from onnx import numpy_helper

import foldline
from foldline.cli import root
from foldline.dialects import fused
from foldline.dialects.onnx.attributes import Reference, ReferenceAttr
from foldline.exporter import export_model
from foldline.importer import import_model
from foldline.stages.context import PassContext
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.rewriting import count_nodes
from tests.foldline.exporter.fused_cases import CASES, RELU, Case, X, floats
from tests.stages.check import Array, onnx_model
from tests.zoo import light_models

FUNCTIONS = {"export.fused": "functions"}

ALL = [
    pytest.param(name, case, id=f"{name}-{place}")
    for name, cases in CASES.items()
    for place, case in enumerate(cases)
]


def run_oracle(model: onnx.ModelProto | bytes, feed: Mapping[str, Array]) -> list[Array]:
    """The outputs that ONNX Runtime computes with optimisation off."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    data = model if isinstance(model, bytes) else model.SerializeToString()
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return session.run(None, feed)


def nodes(model: onnx.ModelProto | bytes) -> list[str]:
    """The operators of the main graph, constants left out."""
    read = onnx.load_from_string(model) if isinstance(model, bytes) else model
    names = [f"{n.domain}::{n.op_type}" if n.domain else n.op_type for n in read.graph.node]
    return [name for name in names if name != "Constant"]


def check_equal(found: Sequence[Array], expected: Sequence[Array]) -> None:
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_every_fused_operator_has_a_case() -> None:
    assert {name for _, name in fused.OPERATORS} == {*CASES, "ElementWise"}


@pytest.mark.parametrize(("op_type", "case"), ALL)
def test_a_function_says_what_an_operator_is(op_type: str, case: Case) -> None:
    made = case.model(op_type)
    module = import_model(made)
    InferShapes().run(PassContext(module))
    standard = export_model(module, unique_nodes=True)
    called = export_model(module, fused="functions")
    onnx.checker.check_model(called, full_check=True)
    (function,) = called.functions
    assert [n.name for n in called.graph.node] == ["one"]
    assert nodes(called) == [f"foldline::{function.name}"]
    assert called.graph.input == standard.graph.input
    assert called.graph.output == standard.graph.output
    assert [n.op_type for n in function.node if n.op_type != "Constant"] == nodes(standard)
    assert called.graph.initializer == made.graph.initializer, "weights are arguments"
    expected = run_oracle(standard, case.feed)
    check_equal(run_oracle(called, case.feed), expected)
    as_it_is = foldline.compile(called, options={"oo.level": "O0"})
    assert nodes(as_it_is.to_bytes()) == nodes(called)
    check_equal(as_it_is.session().run(None, case.feed), _plain(standard, case.feed))


def _plain(model: onnx.ModelProto, feed: Mapping[str, Array]) -> Sequence[Array]:
    return foldline.compile(model, options={"oo.level": "O0"}).session().run(None, feed)


@pytest.mark.parametrize(("op_type", "case"), ALL)
def test_what_was_written_is_formed_again(op_type: str, case: Case) -> None:
    module = import_model(case.model(op_type))
    InferShapes().run(PassContext(module))
    called = export_model(module, fused="functions")
    once = foldline.compile(called, options=FUNCTIONS).to_bytes()
    assert foldline.compile(once, options=FUNCTIONS).to_bytes() == once
    assert len(nodes(once)) == 1
    assert nodes(once) == nodes(called)


CHAIN = """
g (float[2,3] x, float[2,3] y) => (float[2,3] z)
{ [a] s = Mul(x, y) [b] t = Exp(s) [c] u = Clip(t, , high) [d] z = Sub(u, x) }"""
DENSE = """
g (float[N,3,8] x) => (float[N,3,8] y)
{ a = MatMul(x, w) c = Add(a, b) [one] d = Relu(c)
  e = MatMul(d, v) f = Add(e, b) [two] y = Relu(f) }"""


def chain(ir_version: int = 8) -> onnx.ModelProto:
    made = onnx_model(CHAIN, ir_version, opset=13)
    made.graph.initializer.append(numpy_helper.from_array(np.float32(2).reshape(()), "high"))
    return made


def dense(ir_version: int = 8) -> onnx.ModelProto:
    made = onnx_model(DENSE, ir_version, opset=13)
    for name, shape in (("w", (8, 8)), ("b", (8,)), ("v", (8, 8))):
        made.graph.initializer.append(numpy_helper.from_array(floats(*shape), name))
    return made


DENSE_FEED = {"x": floats(4, 3, 8, seed=5)}


def written(model: onnx.ModelProto, **options: Any) -> onnx.ModelProto:
    proto = foldline.optimize(model, options={**FUNCTIONS, **options})
    onnx.checker.check_model(proto, full_check=True)
    return proto


def test_a_chain_of_element_wise_operators() -> None:
    feed = {"x": floats(2, 3), "y": floats(2, 3, seed=1)}
    once = written(chain())
    (function,) = once.functions
    assert nodes(once) == ["foldline::ElementWise"]
    assert [n.op_type for n in function.node] == ["Mul", "Exp", "Clip", "Sub"]
    assert list(function.node[2].input) == ["Exp", "", "X2"], "what is absent is no input"
    check_equal(run_oracle(once, feed), run_oracle(chain(), feed))
    assert written(once) == once


def test_equal_bodies_are_one_function() -> None:
    once = written(dense())
    assert nodes(once) == ["foldline::Linear_Relu"] * 2
    assert [list(f.input) for f in once.functions] == [["A", "B", "C"]]
    assert [n.name for n in once.graph.node] == ["one", "two"]
    check_equal(run_oracle(once, DENSE_FEED), run_oracle(dense(), DENSE_FEED))
    assert written(once) == once


CONVOLUTIONS = """
g (float[1,2,13,13] x) => (float[1,2,N,M] y) 
{ a = Conv <strides = [2, 2]> (x, w) b = Relu(a) c = Conv <strides = [1, 1]> (b, w) d = Relu(c)
  e = Conv(d, w) y = LeakyRelu <alpha = 0.25> (e) }"""


def test_attributes_that_the_parts_have_are_given_by_the_call() -> None:
    made = onnx_model(CONVOLUTIONS, 8, opset=13)
    made.graph.initializer.append(numpy_helper.from_array(floats(2, 2, 3, 3), "w"))
    once = written(made)
    assert nodes(once) == ["foldline::Conv_Relu"] * 2 + ["foldline::Conv_LeakyRelu"]
    assert [a.name for a in once.graph.node[0].attribute] == list(once.functions[0].attribute)
    assert "strides" in once.functions[0].attribute
    feed = {"x": floats(1, 2, 13, 13)}
    check_equal(run_oracle(once, feed), run_oracle(made, feed))


def test_what_is_one_operator_is_written_as_that() -> None:
    case = Case([X], opset=20)
    module = import_model(case.model("Gelu"))
    InferShapes().run(PassContext(module))
    found = export_model(module, fused="functions")
    assert nodes(found) == ["Gelu"]
    assert found == export_model(module)


@pytest.mark.parametrize("ir_version", [3, 7])
def test_earlier_ir_versions_keep_standard_operators(ir_version: int) -> None:
    made = dense(ir_version)
    compiled = foldline.compile(made, options=FUNCTIONS)
    assert compiled.to_proto() == foldline.optimize(made)
    assert compiled.to_proto().ir_version == ir_version
    (remark,) = (r for r in compiled.report.remarks if r.pass_name == "export")
    assert remark.kind == "declined"
    assert f"IR version 8 has first, and the model is of {ir_version}" in remark.message


def test_there_is_no_remark_where_nothing_is_fused_or_functions_can_be_written() -> None:
    plain = onnx_model("g (float[2] x) => (float[2] y) { y = Relu(x) }", 7, opset=13)
    for made in (plain, dense()):
        remarks = foldline.compile(made, options=FUNCTIONS).report.remarks
        assert not [r for r in remarks if r.pass_name == "export"]


USER = """
<ir_version: 10, opset_import: ["" : 13, "foldline" : 2]>
g (float[N,3,8] x) => (float[N,3,8] y) <float[N,3,8] h>
{ h = foldline.Linear(x) p = MatMul(h, w) y = Add(p, b) }
<opset_import: ["" : 13], domain: "foldline">
Linear (a) => (c) { n = Neg(a) c = Mul(n, n) }"""


def of_user() -> onnx.ModelProto:
    made = onnx.parser.parse_model(USER)
    for name, shape in (("w", (8, 8)), ("b", (8,))):
        made.graph.initializer.append(numpy_helper.from_array(floats(*shape), name))
    return made


@pytest.mark.parametrize("fused_as", ["standard", "functions"])
@pytest.mark.parametrize("level", ["O0", "O3"])
def test_functions_of_the_user_in_the_same_domain(fused_as: str, level: str) -> None:
    made = of_user()
    expected = run_oracle(made, DENSE_FEED)
    options = {"export.fused": fused_as, "oo.level": level}
    for disabled in ((), ("inline-functions",)):
        compiled = foldline.compile(made, options={**options, "passes.disable": disabled})
        found = compiled.to_proto()
        onnx.checker.check_model(found, full_check=True)
        check_equal(run_oracle(found, DENSE_FEED), expected)
        (y,) = compiled.session().run(None, DENSE_FEED)
        np.testing.assert_allclose(y, expected[0], rtol=1e-4, atol=1e-5)


def test_names_of_the_user_are_not_taken() -> None:
    found = written(of_user(), **{"passes.disable": ("inline-functions",)})
    assert nodes(found) == ["foldline::Linear", "foldline::Linear_2"]
    assert [f.name for f in found.functions] == ["Linear", "ElementWise", "Linear_2"]
    assert [n.op_type for n in found.functions[0].node] == ["ElementWise"], "inside of it as well"
    assert [i.version for i in found.opset_import if i.domain == "foldline"] == [2]


INNER = """
<ir_version: 10, opset_import: ["" : 13, "local" : 1]>
g (bool c, float[2,3] x) => (float[2,3] y)
{ h = local.f <alpha = 0.5> (x)
  y = If (c) <then_branch = t () => (float[2,3] r) { u = Exp(h) v = Neg(u) r = Abs(v) },
              else_branch = e () => (float[2,3] s) { s = Neg(h) }> }
<opset_import: ["" : 13], domain: "local">
f <alpha> (a) => (d) { b = LeakyRelu <alpha: float = 0.5> (a) d = Neg(b) }"""


def test_calls_in_bodies_and_in_functions() -> None:
    made = onnx.parser.parse_model(INNER)
    compiled = foldline.compile(made, options={"passes.disable": ("inline-functions",)})
    found = export_model(compiled.module, fused="functions")
    onnx.checker.check_model(found, full_check=True)
    body = found.graph.node[-1].attribute[0].g
    assert [n.domain for n in body.node] == ["foldline"]
    (outer,) = (f for f in found.functions if f.domain == "local")
    assert [n.domain for n in outer.node] == ["foldline"]
    assert "foldline" in [i.domain for i in outer.opset_import]
    for choice in (True, False):
        feed = {"c": np.array(choice), "x": floats(2, 3)}
        check_equal(run_oracle(found, feed), run_oracle(made, feed))


def test_parameters_of_the_function_around_are_passed_on() -> None:
    made = onnx.parser.parse_model(INNER)
    compiled = foldline.compile(made, options={"passes.disable": ("inline-functions",)})
    (leaky,) = (op for op in compiled.module.walk() if op.name == "onnx.LeakyRelu")
    leaky.properties["alpha"] = ReferenceAttr(Reference("alpha", onnx.AttributeProto.FLOAT))
    found = export_model(compiled.module, fused="functions")
    onnx.checker.check_model(found, full_check=True)
    (outer,) = (f for f in found.functions if f.domain == "local")
    given = [(a.name, a.ref_attr_name) for n in outer.node for a in n.attribute]
    assert given == [("alpha", "alpha")]
    feed = {"c": np.array(True), "x": floats(2, 3)}
    check_equal(run_oracle(found, feed), run_oracle(made, feed))


def test_doc_strings_and_metadata_stay_with_the_call() -> None:
    made = dense()
    made.graph.node[0].metadata_props.add(key="owner", value="tests")
    made.graph.node[0].doc_string = "the first"
    once = written(made)
    call = once.graph.node[0]
    assert (call.doc_string, call.metadata_props[0].value) == ("the first", "tests")
    assert not once.graph.node[1].metadata_props, "equal functions, each call its own notes"
    assert len(once.functions) == 1
    assert written(once) == once


def test_all_ways_to_ask_for_it_give_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(dense(), "m.onnx")
    expected = foldline.compile("m.onnx", options=FUNCTIONS)
    expected.save("api.onnx")
    Path("c.yaml").write_text("model: m.onnx\noptions: {export.fused: functions}\n")
    runner = CliRunner()
    for arguments in (
        ["compile", "m.onnx", "-o", "flag.onnx", "--export.fused", "functions"],
        ["optimize", "m.onnx", "set.onnx", "--set", "export.fused=functions"],
        ["compile", "--config", "c.yaml", "-o", "yaml.onnx"],
    ):
        result = runner.invoke(root, arguments)
        assert result.exit_code == 0, result.output
    files = [Path(f"{name}.onnx").read_bytes() for name in ("api", "flag", "set", "yaml")]
    assert files == [expected.to_bytes()] * 4
    checked = runner.invoke(root, ["check", "m.onnx", "api.onnx", "--rtol", "1e-5"])
    assert checked.exit_code == 0, checked.output
    assert runner.invoke(root, ["check", "flag.onnx", "api.onnx"]).exit_code == 0


def test_weights_beside_the_file(tmp_path: Path) -> None:
    case = Case([floats(1, 2, 32), floats(32, 32), floats(32)], RELU)
    compiled = foldline.compile(case.model("Linear"), options=FUNCTIONS)
    compiled.save(tmp_path / "m.onnx", external_data=True)
    assert len(list(tmp_path.iterdir())) == 2
    assert nodes(onnx.load(tmp_path / "m.onnx")) == ["foldline::Linear_Relu"]
    again = foldline.compile(str(tmp_path / "m.onnx"), options=FUNCTIONS)
    assert again.to_bytes() == compiled.to_bytes()


def test_a_graph_of_a_compiled_model_writes_them_too(tmp_path: Path) -> None:
    graph = foldline.compile(dense(), options=FUNCTIONS).graph()
    assert nodes(graph.to_proto()) == ["foldline::Linear_Relu"] * 2
    graph.save(tmp_path / "m.onnx")
    assert onnx.load(tmp_path / "m.onnx") == graph.to_proto()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in light_models.HEAVY else [])
        for name in light_models.NAMES
    ],
)
def test_light_models(name: str) -> None:
    model = light_models.with_random_weights(name)
    model.ir_version = 8
    feed = light_models.inputs(model)
    compiled = foldline.compile(model, options=FUNCTIONS)
    once = compiled.to_proto()
    onnx.checker.check_model(once, full_check=True)
    assert len(nodes(once)) == count_nodes(compiled.module), "each fused operator is one node"
    standard = foldline.optimize(model)
    assert once.graph.input == standard.graph.input
    assert once.graph.output == standard.graph.output
    check_equal(run_oracle(once, feed), run_oracle(standard, feed))
    assert foldline.compile(once, options=FUNCTIONS).to_bytes() == compiled.to_bytes()
