"""exp-positive-scale-folding: rows A63 to A105."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import ml_dtypes
import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

import foldline
from foldline.exporter import export_model
from foldline.importer import import_model
from foldline.stages.context import PassContext
from foldline.stages.passes.algebraic.exp_positive_scale_folding import ExpPositiveScaleFolding
from foldline.support.errors import InvalidModel
from foldline.support.passes import PASSES
from tests.stages.check import constant, op_types, parse, run_pass, splat, values
from tests.stages.passes.algebraic.graphs import (
    SIZES,
    check_linear,
    compare,
    draw,
    folded,
    initial,
    model,
    overridable,
    ready,
    unchanged,
)

PASS = ExpPositiveScaleFolding()
ON = {"passes.enable": ["exp-positive-scale-folding"]}
SERIAL = "another Mul stands behind the product"


def exp(
    body: str, shape: str = "1,2,3", out: str = "", opset: int = 17, **constants: npt.ArrayLike
) -> ModelProto:
    """From `x` to `y`."""
    text = f"g (float[{shape}] x) => (float[{out or shape}] y) {{ {body} }}"
    return model(text, opset=opset, **constants)


def kinds(given: ModelProto) -> list[str]:
    return [node.op_type for node in given.graph.node if node.op_type != "Constant"]


def test_row_A63_two_chains() -> None:
    text = """g (float[1,4] x) => (float[1,4] y, float[1,4] z) {
        a = Add(x, b) e = Exp(a) y = Mul(e, s) c = Add(x, s) f = Exp(c) z = Mul(f, s) }"""
    given = model(text, b=draw(4), s=np.float32([1.5, 0.25, 3, 7]))
    folded(PASS, given, ["Add", "Exp", "Add", "Exp"], rtol=2e-6)


def chains(count: int) -> ModelProto:
    """Independent products of an Exp."""
    body = " ".join(f"e{n} = Exp(x) y{n} = Mul(e{n}, s)" for n in range(count))
    outputs = ", ".join(f"float[4] y{n}" for n in range(count))
    return model(f"g (float[4] x) => ({outputs}) {{ {body} }}", s=2.5)


def test_row_A64_six_chains() -> None:
    folded(PASS, chains(6), ["Add", "Exp"] * 6)


@SIZES
def test_row_A64_work_is_linear(nodes: int) -> None:
    """The peer is held to six walks over the graph for six chains; here there are two for all."""
    check_linear(PASS, chains, nodes // 2)


def serial(between: str = "m", **constants: npt.ArrayLike) -> ModelProto:
    """Exp, then two Muls with something between."""
    body = f"e = Exp(x) m = Mul(e, s) {'' if between == 'm' else between} y = Mul({between[0]}, t)"
    return exp(body, **{"s": np.float32(1e-30), "t": np.float32(1e30), **constants})


def test_row_A65_underflow_between_two_factors() -> None:
    given = serial()
    module = ready(given)
    fed = {"x": np.full((1, 2, 3), np.log(1e-20), np.float32)}
    before = values(module.clone(), fed)
    unchanged(PASS, module, SERIAL)
    compare(before, values(module, fed), rtol=0)
    assert not before[0].any()


def test_row_A66_two_rounds_of_the_public_path() -> None:
    once = foldline.optimize(serial(), options=ON)
    twice = foldline.optimize(once, options=ON)
    assert kinds(once) == kinds(twice) == ["Exp", "Mul", "Mul"]


def test_row_A67_names_say_nothing() -> None:
    """All names are others, and one is like a generated one: it is the structure that counts."""
    renamed = foldline.optimize(serial(), options=ON)
    for node in renamed.graph.node:
        for values_of in (node.input, node.output):
            for place, name in enumerate(values_of):
                if name not in ("x", "y"):
                    values_of[place] = f"algebraic_exp_adjusted_{name}"
    for tensor in renamed.graph.initializer:
        tensor.name = f"algebraic_exp_adjusted_{tensor.name}"
    del renamed.graph.value_info[:]
    assert kinds(foldline.optimize(renamed, options=ON)) == ["Exp", "Mul", "Mul"]


@pytest.mark.parametrize(
    "between",
    [
        pytest.param("v = Reshape(m, r)", id="A68"),
        pytest.param("v = Identity(m)", id="A70"),
        pytest.param("v = Flatten(m)", id="A69"),
    ],
)
def test_rows_A68_A69_A70_views_between_two_factors(between: str) -> None:
    given = serial(between, r=[1, 2, 3])
    given.graph.output[0].type.tensor_type.ClearField("shape")
    unchanged(PASS, given, SERIAL)


def test_row_A69_flatten_and_bits() -> None:
    body = "e = Exp(x) m = Mul(e, s) v = Flatten(m) y = Mul(v, t)"
    given = exp(body, "1,1", s=np.float32(0.005727309), t=np.float32(3.3510647e28))
    module = ready(given)
    fed = {"x": np.full((1, 1), -96.411636, np.float32)}
    before = values(module.clone(), fed)
    unchanged(PASS, module, SERIAL)
    compare(before, values(module, fed), rtol=0)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("e = Exp(x) z = Mul(e, s) v = Identity(z) y = Mul(v, t)", id="A70"),
        pytest.param("e = Exp(x) z = Mul(e, s) y = Mul(z, t)", id="A71"),
        pytest.param("e = Exp(x) m = Mul(e, s) z = Identity(m) y = Mul(m, t)", id="A72"),
    ],
)
def test_rows_A70_A71_A72_the_middle_is_seen(body: str) -> None:
    text = f"g (float[1,3] x) => (float[1,3] z, float[1,3] y) {{ {body} }}"
    unchanged(PASS, model(text, s=2.0, t=3.0), SERIAL)


def test_row_A73_a_bias_before_two_factors() -> None:
    body = "a = Add(x, b) r = Reshape(a, sh) e = Exp(r) m = Mul(e, s) y = Mul(m, t)"
    unchanged(PASS, exp(body, out="2,3", b=1.0, sh=[2, 3], s=2.0, t=3.0), SERIAL)


def test_row_A74_six_factors() -> None:
    names = ["e", *(f"m{n}" for n in range(5)), "y"]
    body = " ".join(f"{b} = Mul({a}, s)" for a, b in pairwise(names))
    given = exp(f"a = Add(x, b) e = Exp(a) {body}", b=1.0, s=np.float32(1e30))
    unchanged(PASS, given, SERIAL)


@SIZES
def test_row_A74_work_is_linear(nodes: int) -> None:
    """Each Mul has the next one behind it, and is looked at once."""

    def serial_chains(count: int) -> ModelProto:
        body = " ".join(
            f"e{n} = Exp(x) a{n} = Mul(e{n}, s) b{n} = Mul(a{n}, s) y{n} = Mul(b{n}, s)"
            for n in range(count)
        )
        return exp(body.replace("y0", "y"), s=2.0)

    check_linear(PASS, serial_chains, nodes // 4)


def test_row_A75_a_name_like_a_generated_one() -> None:
    given = exp(
        "e = Exp(x) y = Mul(e, algebraic_exp_adjusted_user)", algebraic_exp_adjusted_user=2.0
    )
    folded(PASS, given, ["Add", "Exp"])


def test_row_A76_a_scalar() -> None:
    module = folded(PASS, exp("e = Exp(x) y = Mul(e, s)", s=2.5), ["Add", "Exp"])
    (log,) = initial(module).values()
    assert log.shape == ()
    assert log == np.log(np.float32(2.5))


def test_row_A77_a_factor_repeated_across_a_view() -> None:
    body = "e = Exp(x) v = Reshape(e, sh) y = Mul(v, s)"
    given = exp(body, "2,2,3", "3,2,2", sh=[3, 2, 2], s=np.float32([[[2], [3]]]))
    unchanged(PASS, given, "is not certain to meet the same elements")


def test_row_A78_bias_and_factor_along_different_axes() -> None:
    body = "a = Add(x, b) e = Exp(a) y = Mul(e, s)"
    given = exp(body, "2,2,3", b=draw(2, 1, 3), s=np.float32([[[2], [3]]]))
    module = folded(PASS, given, ["Add", "Add", "Exp"], rtol=2e-6)
    shapes = [array.shape for array in initial(module).values()]
    assert sorted(shapes) == [(1, 2, 1), (2, 1, 3)]


def test_row_A79_help_names_the_semantics() -> None:
    help_text = PASSES["exp-positive-scale-folding"].help
    assert "relaxed floating-point overflow semantics" in help_text


def test_row_A80_overflow() -> None:
    given = exp("e = Exp(x) y = Mul(e, s)", "1", s=np.float32(1e-10))
    module = ready(given)
    fed = {"x": np.float32([89])}
    before = values(module.clone(), fed)
    PASS.run(PassContext(module))
    (after,) = values(module, fed)
    assert np.isinf(before[0]).all()
    np.testing.assert_allclose(after, np.exp(89.0) * 1e-10, rtol=1e-5)


def test_row_A81a_no_operator_set() -> None:
    """No pass sees such models: the importer refuses them."""
    given = exp("e = Exp(x) y = Mul(e, s)", s=2.0)
    del given.opset_import[0]
    with pytest.raises(InvalidModel):
        foldline.optimize(given, options=ON)


def test_row_A81b_operator_set_6() -> None:
    unchanged(
        PASS, exp("e = Exp(x) y = Mul <broadcast = 1> (e, s)", opset=6, s=2.0), "operator set 7"
    )


@pytest.mark.parametrize(
    "domains", [pytest.param(("", ""), id="A82a"), pytest.param(("ai.onnx", ""), id="A82b")]
)
def test_row_A82_ambiguous_operator_sets(domains: tuple[str, str]) -> None:
    given = exp("e = Exp(x) y = Mul(e, s)", s=2.0)
    del given.opset_import[:]
    versions = zip(domains, (17, 12), strict=True)
    given.opset_import.extend(helper.make_opsetid(*pair) for pair in versions)
    unchanged(PASS, given, "versions [17, 12] of one operator set are imported")


def test_row_A83_counts_do_not_wrap() -> None:
    body = "e = Exp(x) v = Reshape(e, sh) y = Mul(v, s)"
    given = exp(body, "7,5270498306774157605", "3", sh=[3], s=np.float32([2, 3, 4]))
    unchanged(PASS, given, "of sizes that are not known")


def test_row_A84_a_bias_takes_the_logarithm() -> None:
    body = "a = Add(x, b) e = Exp(a) y = Mul(e, s)"
    given = exp(body, "2", b=np.float32([1, -1]), s=np.exp(np.float32([2, 0.5])))
    module = folded(PASS, given, ["Add", "Exp"], rtol=2e-6, feed={"x": np.float32([0, 2])})
    (total,) = initial(module).values()
    np.testing.assert_allclose(total, [3, -0.5], rtol=2e-7)


def test_row_A85_views_on_both_sides() -> None:
    body = """a = Add(x, b) r = Reshape(a, flat) e = Exp(r) v = Reshape(e, full) y = Mul(v, s)"""
    scale = np.float32([[[[[2, 3], [4, 5]]]]])
    given = exp(body, "1,1,2,2,2", b=np.float32(-2), flat=[1, 8], full=[1, 1, 2, 2, 2], s=scale)
    module = folded(PASS, given, ["Add", "Reshape", "Exp", "Reshape"], rtol=2e-6)
    total = next(a for a in initial(module).values() if a.ndim == 5)
    exact = np.log(scale.astype(np.float64)).astype(np.float32).astype(np.float64) - 2
    np.testing.assert_array_equal(total, exact.astype(np.float32))


def test_row_A86_unsqueeze_and_squeeze() -> None:
    body = "a = Add(x, b) u = Unsqueeze(a, ax) e = Exp(u) v = Squeeze(e, ax) y = Mul(v, s)"
    given = exp(body, b=1.0, ax=[1], s=2.0)
    folded(PASS, given, ["Add", "Unsqueeze", "Exp", "Squeeze"], rtol=2e-6)


def test_row_A87_a_factor_for_each_element() -> None:
    body = "e = Exp(x) v = Reshape(e, sh) y = Mul(v, s)"
    given = exp(body, "1,4", "1,1,2,2", sh=[1, 1, 2, 2], s=np.float32([[[[2, 3], [4, 5]]]]))
    module = folded(PASS, given, ["Add", "Exp", "Reshape"], rtol=2e-6)
    assert (1, 4) in [array.shape for array in initial(module).values()]


def test_row_A88_a_bias_that_is_computed() -> None:
    text = """g (float[3] x, float[3] b) => (float[3] y) {
        a = Add(x, b) e = Exp(a) y = Mul(e, s) }"""
    folded(PASS, model(text, s=2.5), ["Add", "Add", "Exp"], rtol=2e-6)


def test_row_A89_constant_nodes() -> None:
    body = """b = Constant <value_float = 1.5> () s = Constant <value_float = 2.5> ()
    a = Add(x, b) e = Exp(a) y = Mul(e, s)"""
    module = folded(PASS, exp(body), ["Add", "Exp"], rtol=2e-6)
    (total,) = initial(module).values()
    assert total.dtype == np.float32


def test_row_A90_float64() -> None:
    text = "g (double[3] x) => (double[3] y) { a = Add(x, b) e = Exp(a) y = Mul(e, s) }"
    b, s = draw(3, dtype=np.float64), np.float64([1.5, 2.5, 3.5])
    module = folded(PASS, model(text, b=b, s=s), ["Add", "Exp"], rtol=1e-14)
    np.testing.assert_array_equal(next(iter(initial(module).values())), b + np.log(s))


def test_row_A91_a_factor_that_makes_the_product_larger() -> None:
    given = exp("e = Exp(x) y = Mul(e, s)", "1,3", "2,3", s=np.float32([[2], [3]]))
    unchanged(PASS, given, "may make the product larger")
    given = exp("e = Exp(x) y = Mul(e, s)", "3", "1,3", s=np.float32([[2]]))
    unchanged(PASS, given, "may make the product larger")


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_row_A92_factors_without_logarithm(value: float) -> None:
    given = exp("e = Exp(x) y = Mul(e, s)", "3", s=np.float32([1, value, 1]))
    unchanged(PASS, given, "not all factors are finite and positive")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("flat", "of sizes that are not known"),
        ("full", "of sizes that are not known"),
        ("s", "is not a constant of floats"),
    ],
)
def test_row_A93_parameters_are_overridable(name: str, reason: str) -> None:
    body = "a = Add(x, b) r = Reshape(a, flat) e = Exp(r) v = Reshape(e, full) y = Mul(v, s)"
    given = exp(body, "1,2,3", "A,B,C", b=1.0, flat=[1, 6], full=[1, 2, 3], s=2.0)
    unchanged(PASS, overridable(given, name), reason)


@pytest.mark.parametrize("as_node", [False, True])
def test_row_A94_external_data_that_is_missing(as_node: bool, tmp_path: Path) -> None:
    """The importer refuses the model and names the file."""
    given = exp("e = Exp(x) y = Mul(e, s)")
    tensor = TensorProto(name="s", data_type=TensorProto.FLOAT, dims=[3])
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="missing.bin")
    if as_node:
        given.graph.node.insert(0, helper.make_node("Constant", [], ["s"], value=tensor))
    else:
        given.graph.initializer.append(tensor)
    (tmp_path / "m.onnx").write_bytes(given.SerializeToString())
    with pytest.raises(InvalidModel, match=r"missing\.bin"):
        foldline.optimize(tmp_path / "m.onnx", options=ON)


CHAIN = "a = Add(x, b) e = Exp(a) y = Mul(e, s)"


@pytest.mark.parametrize("name", ["a", "e", "y"])
def test_row_A95_a_value_defined_again(name: str) -> None:
    """No pass sees such models: the importer refuses them."""
    with pytest.raises(InvalidModel, match="twice"):
        import_model(exp(f"{CHAIN} {name} = Neg(x)", b=1.0, s=2.0), [])


@pytest.mark.parametrize("kind", ["initializer", "input", "two initializers"])
def test_row_A96_a_name_defined_twice(kind: str) -> None:
    """No pass sees such models: the importer refuses them."""
    again = {"initializer": "s = Neg(x)", "input": "x = Neg(b)", "two initializers": ""}[kind]
    given = exp(f"{CHAIN} {again}", b=1.0, s=2.0)
    if kind == "two initializers":
        given.graph.initializer.append(given.graph.initializer[1])
    with pytest.raises(InvalidModel, match="twice"):
        import_model(given, [])


@pytest.mark.parametrize(
    "body",
    [
        "e = Exp(x) r = Reshape(q, sh) q = Reshape(r, sh) y = Mul(e, s)",
        "e = Exp(m) m = Mul(e, s) y = Relu(m)",
    ],
)
def test_row_A97_cycles(body: str) -> None:
    """No pass sees such models: the importer refuses them."""
    with pytest.raises(InvalidModel):
        import_model(exp(body, sh=[1, 2, 3], s=2.0), [])


def foreign(number: int, domain: str) -> ModelProto:
    """A chain of which one operator is of a domain: 0 Exp, 1 the second Reshape, 2 Mul."""
    body = "r = Reshape(x, flat) e = Exp(r) v = Reshape(e, full) y = Mul(v, s)"
    given = exp(body, "1,2,3", "A,B,C", flat=[1, 6], full=[1, 2, 3], s=2.0)
    given.graph.node[number + 1].domain = domain
    return given


@pytest.mark.parametrize("number", [0, 1, 2])
def test_row_A98_operators_of_another_domain(number: int) -> None:
    unchanged(PASS, foreign(number, "com.example"))


@pytest.mark.parametrize("number", [0, 1, 2])
def test_row_A98_ai_onnx_is_the_default_domain(number: int) -> None:
    run_pass(PASS, module := ready(foreign(number, "ai.onnx")))
    assert op_types(module) == ["Reshape", "Add", "Exp", "Reshape"]


@pytest.mark.parametrize(
    ("outputs", "reader"),
    [
        ("float[1,2,3] v", ""),
        ("float[1,2,3] z", "z = Relu(v)"),
        (
            "float[1,2,3] z",
            """t = Constant <value = bool[1] {1}> () z = If (t)
            <then_branch = a () => (float[1,2,3] f) { f = Neg(v) },
            else_branch = a () => (float[1,2,3] f2) { f2 = Abs(v) }>""",
        ),
    ],
    ids=["output", "shared", "captured"],
)
def test_row_A99_the_view_is_seen(outputs: str, reader: str) -> None:
    text = f"""g (float[1,6] x) => (float[1,2,3] y, {outputs}) {{
        e = Exp(x) v = Reshape(e, sh) y = Mul(v, s) {reader} }}"""
    unchanged(PASS, model(text, sh=[1, 2, 3], s=2.0), "is an output or has other readers")


def test_row_A100_unknown_sizes_of_a_view() -> None:
    body = "a = Add(x, b) r = Reshape(a, flat) e = Exp(r) v = Reshape(e, full) y = Mul(v, s)"
    given = exp(body, "N,2,3", "N,2,3", b=1.0, flat=[-1], full=[-1, 2, 3], s=draw(3) ** 2 + 1)
    unchanged(PASS, given, "of sizes that are not known")


def views(count: int, bias: bool) -> ModelProto:
    names = ["e", *(f"v{n}" for n in range(count))]
    body = " ".join(f"{b} = Reshape({a}, sh)" for a, b in pairwise(names))
    first = "a = Add(x, b) e = Exp(a)" if bias else "e = Exp(x)"
    return exp(f"{first} {body} y = Mul({names[-1]}, s)", sh=[1, 2, 3], b=1.0, s=2.0)


def test_row_A101_depth() -> None:
    unchanged(PASS, views(65, bias=True), "more than 64 views")
    unchanged(PASS, views(64, bias=False), "more than 64 views")
    folded(PASS, views(63, bias=False), ["Add", "Exp", *["Reshape"] * 63])


@pytest.mark.parametrize("level", ["O0", "O3"])
def test_row_A102_the_public_path_twice(level: str) -> None:
    options = {**ON, "oo.level": level}
    once = foldline.optimize(exp(CHAIN, b=1.0, s=2.0), options=options)
    assert kinds(once) == ["Add", "Exp"]
    assert foldline.optimize(once, options=options).SerializeToString() == once.SerializeToString()


def test_row_A103_a_branch_has_the_generated_name() -> None:
    text = """g (float[3] x, bool t) => (float[3] y, float[3] z) {
        e = Exp(x) y = Mul(e, s)
        z = If (t) <then_branch = a () => (float[3] f)
            { algebraic_exp_adjusted = Neg(x) f = Relu(algebraic_exp_adjusted) },
            else_branch = a () => (float[3] g) { g = Abs(x) }> }"""
    module = folded(PASS, model(text, s=2.0), ["Add", "Exp", "If"])
    written = export_model(module)
    onnx.checker.check_model(written, full_check=True)
    assert "algebraic_exp_adjusted_1" in {
        name for node in written.graph.node for name in node.output
    }


def test_row_A104_the_constant_first() -> None:
    folded(PASS, exp("e = Exp(x) y = Mul(s, e)", s=2.0), ["Add", "Exp"])


def test_row_A104_a_shared_factor() -> None:
    text = """g (float[3] x) => (float[3] y, float[3] z) {
        e = Exp(x) y = Mul(e, s) n = Neg(x) f = Exp(n) z = Mul(f, s) }"""
    folded(PASS, model(text, s=2.0), ["Add", "Exp", "Neg", "Add", "Exp"])


def test_row_A104_two_muls_of_one_exp() -> None:
    text = "g (float[3] x) => (float[3] y, float[3] z) { e = Exp(x) y = Mul(e, s) z = Mul(e, s) }"
    unchanged(PASS, model(text, s=2.0), "has other readers")


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_row_A105_half_precision_is_refused(dtype: npt.DTypeLike) -> None:
    name = "float16" if dtype == np.float16 else "bfloat16"
    given = model(f"g ({name}[3] x) => ({name}[3] y) {{ e = Exp(x) y = Mul(e, s) }}")
    code = onnx.TensorProto.FLOAT16 if dtype == np.float16 else onnx.TensorProto.BFLOAT16
    data = np.asarray(1000, dtype).tobytes()
    given.graph.initializer.append(helper.make_tensor("s", code, [], data, raw=True))
    unchanged(PASS, given, "is too coarse for an Exp")


@pytest.mark.parametrize("scale", [2.0, 1e3, 1e30, 1e-30])
def test_the_error_model(scale: float) -> None:
    given = exp("a = Add(x, b) e = Exp(a) y = Mul(e, s)", "64", b=0.5, s=np.float32(scale))
    module = ready(given)
    fed = {"x": np.linspace(-8, 8, 64, dtype=np.float32)}
    PASS.run(PassContext(module))
    (new,) = values(module, fed)
    exact = np.exp(fed["x"].astype(np.float64) + 0.5) * np.float64(np.float32(scale))
    inner, log = fed["x"] + 0.5, np.log(scale)
    bound = np.finfo(np.float32).eps * (1 + abs(inner) + abs(log) + abs(inner + log)) / 2
    assert (np.abs(new - exact) / exact <= bound + np.finfo(np.float32).eps).all()


def test_unknown_sizes_without_views() -> None:
    given = exp("e = Exp(x) y = Mul(e, s)", "N,3", s=np.float32([1, 2, 3]))
    folded(PASS, given, ["Add", "Exp"], rtol=2e-6)


def test_a_number_of_higher_rank_before_a_view() -> None:
    """What is added to the Exp's input may not have more axes than it."""
    given = exp(
        "e = Exp(x) v = Reshape(e, sh) y = Mul(v, s)",
        "4",
        "1,2,2",
        sh=[1, 2, 2],
        s=np.float32([[[2]]]),
    )
    module = folded(PASS, given, ["Add", "Exp", "Reshape"], rtol=2e-6)
    assert () in [array.shape for array in initial(module).values()]


def test_guard_15_views_before_the_exp() -> None:
    given = exp("r = Reshape(x, sh) e = Exp(r) y = Mul(e, s)", "N,6", "N,2,3", sh=[-1, 2, 3], s=2.0)
    unchanged(PASS, given, "Reshape before it is of sizes that are not known")


def test_guard_16_a_sum_that_is_not_finite() -> None:
    """The logarithm is added by itself then."""
    bias = np.float32(np.finfo(np.float32).max)
    given = exp(CHAIN, "3", b=bias, s=np.float32(3e38))
    module = ready(given)
    PASS.run(PassContext(module))
    assert op_types(module) == ["Add", "Exp"]
    given = exp(CHAIN, "3", b=np.float32([np.inf, 0, 0]), s=np.float32(3))
    module = ready(given)
    PASS.run(PassContext(module))
    assert op_types(module) == ["Add", "Add", "Exp"]


def test_guard_14_a_target_with_a_size_of_zero() -> None:
    body = "e = Exp(x) v = Reshape <allowzero = 1> (e, sh) y = Mul(v, s)"
    unchanged(PASS, exp(body, "0,6", "0,2", sh=[0, 2], s=2.0), "of sizes that are not known")


def test_division_ends_the_search_for_another_factor() -> None:
    given = exp("e = Exp(x) m = Mul(e, s) y = Div(m, t)", s=2.0, t=4.0)
    folded(PASS, given, ["Add", "Exp", "Div"])


def test_repeated_elements_stay_repeated() -> None:
    text = f"""%s = {splat(2.0, (100, 100), np.float32)}
    %b = {splat(1.0, (100, 100), np.float32)}
    %a = onnx.Add(%x, %b) : tensor<100x100xf32>
    %e = onnx.Exp(%a) : tensor<100x100xf32>
    %y = onnx.Mul(%e, %s) : tensor<100x100xf32>
    return(%y)"""
    run_pass(PASS, module := parse(text, "%x: tensor<100x100xf32>"))
    (total,) = initial(module).values()
    assert not any(total.strides)


def test_models_do_not_grow() -> None:
    """One repeated bias and one row of factors would have to be stored element by element."""
    factors = np.linspace(1, 2, 200, dtype=np.float32)
    text = f"""%s = {constant(factors, np.float32)}
    %b = {splat(1.0, (200, 200), np.float32)}
    %a = onnx.Add(%x, %b) : tensor<200x200xf32>
    %e = onnx.Exp(%a) : tensor<200x200xf32>
    %y = onnx.Mul(%e, %s) : tensor<200x200xf32>
    return(%y)"""
    run_pass(PASS, module := parse(text, "%x: tensor<200x200xf32>"))
    assert op_types(module) == ["Add", "Add", "Exp"]


def test_inside_of_a_body() -> None:
    text = """g (float[3] x, bool t) => (float[3] y) {
        y = If (t) <then_branch = a () => (float[3] f) { e = Exp(x) f = Mul(e, s) },
                    else_branch = a () => (float[3] g) { g = Abs(x) }> }"""
    module = folded(PASS, model(text, s=2.0), ["If"])
    assert not any(op.name == "onnx.Mul" for op in module.walk())


@pytest.mark.parametrize("level", ["O2", "O3"])
def test_row_A66_a_fusion_hides_the_next_factor(level: str) -> None:
    """Fusions that come later may take the second Mul in; the first one stays all the same."""
    text = """g (float[1,2,2,2] x) => (float[1,2,2,2] y, float[1,2,2,2] z) {
        e = Exp(x) m = Mul(e, s) y = Mul(m, t) h = Tanh(m) f = Exp(h) z = Mul(f, u) }"""
    given = model(text, s=draw(2, 1, 1) ** 2 + 1, t=draw(2, 1), u=-(draw(2, 1, 1) ** 2))
    once = foldline.optimize(given, options={**ON, "oo.level": level})
    assert kinds(once).count("Mul") == 3
    assert "Add" not in kinds(once)
