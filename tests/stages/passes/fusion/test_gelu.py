"""gelu: every spelling of the form with erf, its refusals, its numerics."""

from typing import Any

import numpy as np
import pytest

import foldline
from foldline.stages.passes.fusion.gelu import Gelu
from tests.stages.check import check_unchanged, from_onnx, onnx_model, op_types, run_pass
from tests.stages.passes.fusion.fused import SPECIAL, file_results, grid, real, results, sizes

NUMBERS = {"r": 2**0.5, "q": 0.5**0.5, "h": 0.5, "o": 1, "two": 2}
WRONG = {"near": 2**0.5 * (1 + 9e-7), "far": 1.41423, "wide": 1.0000001}
CONSTANTS = real("float", **NUMBERS, **WRONG)


def model(body: str, opset: int = 13, kind: str = "float", head: str = "[N] y"):
    constants = real(kind, **NUMBERS, **WRONG)
    return from_onnx(f"g ({kind}[N] x) => ({kind}{head}) {constants} {{ {body} }}", opset=opset)


SPELLINGS = {
    "(x core) 0.5": "d = Div(x, r) e = Erf(d) a = Add(e, o) m = Mul(x, a) y = Mul(m, h)",
    "0.5 (core x)": "d = Div(x, r) e = Erf(d) a = Add(o, e) m = Mul(a, x) y = Mul(h, m)",
    "x (0.5 core)": "d = Div(x, r) e = Erf(d) a = Add(e, o) m = Mul(h, a) y = Mul(x, m)",
    "(0.5 core) x": "d = Div(x, r) e = Erf(d) a = Add(e, o) m = Mul(a, h) y = Mul(m, x)",
    "(0.5 x) core": "d = Div(x, r) e = Erf(d) a = Add(e, o) m = Mul(x, h) y = Mul(m, a)",
    "core (x 0.5)": "d = Div(x, r) e = Erf(d) a = Add(e, o) m = Mul(h, x) y = Mul(a, m)",
    "inverse": "d = Mul(q, x) e = Erf(d) a = Add(e, o) m = Mul(x, a) y = Mul(m, h)",
    "halved by Div": "d = Div(x, r) e = Erf(d) a = Add(e, o) m = Mul(x, a) y = Div(m, two)",
    "root within 1e-6": "d = Div(x, near) e = Erf(d) a = Add(e, o) m = Mul(x, a) y = Mul(m, h)",
}
PLAIN = SPELLINGS["(x core) 0.5"]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_row_3_5_every_spelling_becomes_one_node(spelling: str):
    module = model(SPELLINGS[spelling])
    run_pass(Gelu(), module)
    assert op_types(module) == ["Gelu"]


def test_row_3_5_operator_set_20_gets_the_operator_of_onnx():
    module = model(PLAIN, opset=20)
    run_pass(Gelu(), module)
    (node,) = (op for op in module.walk() if op.name == "onnx.Gelu")
    assert node.attribute_values()["approximate"] == "none"


def test_row_3_5_below_20_the_fused_one_is_made_and_the_opset_stays():
    module = model(PLAIN, opset=19)
    run_pass(Gelu(), module)
    (node,) = (op for op in module.walk() if op.name == "fused.Gelu")
    assert node.attribute_values()["approximate"] == "none"


@pytest.mark.parametrize("run", [results, file_results])
@pytest.mark.parametrize("opset", [9, 13, 20])
def test_row_3_5_within_2_eps_of_x_with_special_values(opset: int, run: Any):
    x = np.concatenate([grid(), np.array(SPECIAL, np.float32)])
    found = run(Gelu(), model(PLAIN, opset), {"x": x})
    found.check(2 * sizes(x))
    ends = dict(zip(map(str, x[-len(SPECIAL) :]), found.fused[-len(SPECIAL) :], strict=True))
    assert np.isnan(ends["-inf"])
    assert ends["inf"] == np.inf
    assert np.signbit(ends["-0.0"])
    assert ends["-0.0"] == 0
    assert not np.signbit(ends["0.0"])


@pytest.mark.parametrize("kind", ["double", "float16"])
def test_other_floats(kind: str):
    x = grid(np.float64 if kind == "double" else np.float16, 6, 301)
    module = model(PLAIN, kind=kind)
    found = results(Gelu(), module, {"x": x})
    assert op_types(module) == ["Gelu"]
    found.check(2 * sizes(x))


def test_zero_size_and_unknown_rank():
    for shape in ("[0, 3]", ""):
        module = from_onnx(
            f"g (float{shape} x) => (float{shape} y) {CONSTANTS} {{ {PLAIN} }}", opset=13
        )
        run_pass(Gelu(), module)
        assert op_types(module) == ["Gelu"]


def test_row_3_5_x_read_elsewhere_is_fine():
    module = model(PLAIN + " z = Neg(x)", head="[N] y, float[N] z")
    run_pass(Gelu(), module)
    assert op_types(module) == ["Gelu", "Neg"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (PLAIN.replace("r)", "far)"), "the argument of Erf is x times 0.707099"),
        (PLAIN.replace("o)", "wide)"), "not a constant 1"),
        (PLAIN.replace("h)", "wide)"), "the factor is 1 instead of 0.5"),
        (PLAIN.replace("Mul(x, a)", "Mul(d, a)"), "not the value 'x'"),
    ],
    ids=["root", "one", "half", "another x"],
)
def test_row_3_5_declines(body: str, reason: str):
    check_unchanged(Gelu(), model(body), reason)


@pytest.mark.parametrize("inner", ["d", "e", "a", "m"])
def test_row_3_5_declines_an_interior_value_that_is_an_output(inner: str):
    module = model(PLAIN, head=f"[N] y, float[N] {inner}")
    check_unchanged(Gelu(), module, "read outside")


def test_declines_a_constant_that_raises_the_rank():
    module = from_onnx(
        """g (float[N] x) => (float[M, N] y) <float[1, 1] r = {1.4142135}, float h = {0.5},
        float o = {1}> { """
        + PLAIN
        + " }",
        opset=13,
    )
    check_unchanged(Gelu(), module, "a constant of rank 2 raises the rank")


def test_declines_a_constant_that_callers_may_override():
    numbers = "<float r = {1.4142135}, float h = {0.5}, float o = {1}>"
    text = f"g (float[N] x, float r) => (float[N] y) {numbers} {{ {PLAIN} }}"
    check_unchanged(Gelu(), from_onnx(text, opset=13))
    module = from_onnx(text, opset=13, ir_version=3)
    run_pass(Gelu(), module)
    assert op_types(module) == ["Gelu"]


def test_within_a_body():
    module = from_onnx(
        f"""g (float[N] x, bool c) => (float[N] y) {CONSTANTS} {{
            y = If (c) <
                then_branch = t () => (float[N] p) {{
                    d = Div(x, r) e = Erf(d) a = Add(e, o) m = Mul(x, a) p = Mul(m, h) }},
                else_branch = f () => (float[N] n) {{ n = Neg(x) }}> }}""",
        opset=13,
    )
    run_pass(Gelu(), module)
    assert [op.op_type for op in module.walk() if op.name == "fused.Gelu"] == ["Gelu"]


def test_row_3_5_exact_mode_and_disabled_leave_the_chain():
    proto = onnx_model(f"g (float[N] x) => (float[N] y) {CONSTANTS} {{ {PLAIN} }}", opset=13)
    for options in ({"mode": "exact"}, {"passes.disable": ["gelu"]}, {"oo.level": "O2"}):
        compiled = foldline.compile(proto, options=options)
        assert "Erf" in {op.op_type for op in compiled.to_proto().graph.node}
        assert not any(op.name == "fused.Gelu" for op in compiled.module.walk())
    assert any(op.name == "fused.Gelu" for op in foldline.compile(proto).module.walk())


def test_optimising_the_file_again_changes_nothing():
    proto = onnx_model(f"g (float[N] x) => (float[N] y) {CONSTANTS} {{ {PLAIN} }}", opset=13)
    proto.graph.node[-1].name = "act"
    once = foldline.compile(proto).to_proto()
    again = foldline.compile(once).to_proto()
    assert once.SerializeToString(deterministic=True) == again.SerializeToString(deterministic=True)
    assert [n.name for n in once.graph.node if n.op_type == "Erf"] == ["act/Erf"]
