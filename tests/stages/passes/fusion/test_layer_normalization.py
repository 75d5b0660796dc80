"""layer-normalization: spellings, what is taken in, refusals, numerics."""

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.exporter import export_model
from foldline.stages.passes.fusion.layer_normalization import LayerNormalization
from tests.stages.check import check_unchanged, from_onnx, op_types, run_pass
from tests.stages.passes.fusion.fused import file_results, results, typed
from tests.stages.passes.fusion.rows import DIVISIONS, KINDS, mean, numbers, row_bound, vector


def typed_from_onnx(text: str, opset: int = 13) -> ModuleOp:
    return typed(from_onnx(text, opset=opset))


RNG = np.random.default_rng(7)
W, B = RNG.normal(size=8), RNG.normal(size=8)


def statistics(way: str, opset: int, axes: str = "-1") -> str:
    middle, variance = mean("m", "x", opset, axes), mean("v", "q", opset, axes)
    match way:
        case "twice":
            return f"{middle} d = Sub(x, m) e = Sub(x, m) q = Pow(e, two) {variance}"
        case "product":
            return f"{middle} d = Sub(x, m) q = Mul(d, d) {variance}"
        case "less squared mean" | "not negative":
            squares = f"q = Mul(x, x) {mean('e', 'q', opset, axes)} p = Mul(m, m)"
            last = "v = Sub(e, p)" if way[0] == "l" else "u = Sub(e, p) v = Max(u, zero)"
            return f"{middle} d = Sub(x, m) {squares} {last}"
        case _:
            return f"{middle} d = Sub(x, m) q = Pow(d, two) {variance}"


def parts(way: str = "", opset: int = 13, division: str = "quotient", axes: str = "-1") -> str:
    divided = DIVISIONS[division].format(d="d")
    return f"{statistics(way, opset, axes)} a = Add(v, eps) {divided}"


def model(
    body: str,
    opset: int = 13,
    kind: str = "float",
    shape: str = "M, N, 8",
    extra: str = "",
    outputs: str = "",
    inputs: str = "",
    epsilon: float = 1e-5,
) -> ModuleOp:
    vectors = f"{vector(kind, 'w', W)}, {vector(kind, 'b', B)}"
    return typed_from_onnx(
        f"""g ({kind}[{shape}] x{inputs}) => ({kind}[{shape}] y{outputs})
        <{numbers(kind, epsilon)}, {vectors}{extra}> {{ {body} }}""",
        opset=opset,
    )


AFFINE = " s = Mul(n, w) y = Add(s, b)"


@pytest.mark.parametrize("way", ["", "product", "twice", "less squared mean", "not negative"])
@pytest.mark.parametrize("division", DIVISIONS)
def test_every_spelling(way: str, division: str):
    module = model(parts(way, division=division) + AFFINE)
    run_pass(LayerNormalization(), module)
    assert op_types(module) == ["LayerNormalization"]


@pytest.mark.parametrize(
    ("opset", "name"), [(9, "fused"), (13, "fused"), (16, "fused"), (17, "onnx"), (18, "onnx")]
)
def test_operator_of_the_model_version(opset: int, name: str):
    module = model(parts(opset=opset) + AFFINE, opset)
    run_pass(LayerNormalization(), module)
    (node,) = (op for op in module.walk() if op.name == f"{name}.LayerNormalization")
    values = node.attribute_values()
    assert values == {"axis": -1, "epsilon": np.float32(1e-5), "stash_type": 1}
    assert len(node.operands) == 3


@pytest.mark.parametrize("run", [results, file_results])
@pytest.mark.parametrize("opset", [13, 17])
@pytest.mark.parametrize("offset", [0, 30])
@pytest.mark.parametrize("way", ["", "product"])
def test_within_the_stated_bound(way: str, offset: float, opset: int, run: Any):
    x = (RNG.normal(size=(5, 7, 8)) * 3 + offset).astype(np.float32)
    found = run(LayerNormalization(), model(parts(way, opset) + AFFINE, opset), {"x": x})
    found.check(row_bound(x, found.parts, 2**-23))


def test_squares_less_the_squared_mean_are_computed_better():
    x = (RNG.normal(size=(5, 7, 8)) + 1000).astype(np.float32)
    found = results(LayerNormalization(), model(parts("not negative") + AFFINE), {"x": x})
    wide = x.astype(np.float64)
    centred = wide - wide.mean(-1, keepdims=True)
    exact = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * W + B
    assert np.abs(found.fused - exact).max() < 0.01 < np.abs(found.parts - exact).max()


@pytest.mark.parametrize(
    ("tail", "left"),
    [
        ("y = Identity(n)", ["LayerNormalization", "Identity"]),
        ("y = Mul(n, w)", ["LayerNormalization"]),
        ("y = Mul(w, n)", ["LayerNormalization"]),
        ("y = Add(n, b)", ["LayerNormalization"]),
        ("s = Mul(n, w) y = Add(b, s)", ["LayerNormalization"]),
        ("s = Mul(n, three) y = Add(s, b)", ["LayerNormalization", "Mul", "Add"]),
        ("s = Mul(n, x) y = Add(s, b)", ["LayerNormalization", "Mul", "Add"]),
        ("s = Mul(n, w) y = Add(s, x)", ["LayerNormalization", "Add"]),
    ],
)
@pytest.mark.parametrize("run", [results, file_results])
@pytest.mark.parametrize("opset", [13, 17])
def test_what_follows_is_taken_in_or_made_again(tail: str, left: list[str], opset: int, run: Any):
    x = RNG.normal(size=(2, 3, 8)).astype(np.float32)
    module = model(f"{parts(opset=opset)} {tail}", opset)
    found = run(LayerNormalization(), module, {"x": x})
    assert op_types(module) == left
    found.check(4 * row_bound(x, found.parts, 2**-23))


def test_constants_with_leading_axes_lose_them():
    extra = f", {vector('float', 'w3', W, '1, 1, 8')}, {vector('float', 'b2', B, '1, 8')}"
    x = RNG.normal(size=(2, 3, 8)).astype(np.float32)
    module = model(parts() + " s = Mul(n, w3) y = Add(s, b2)", extra=extra)
    found = results(LayerNormalization(), module, {"x": x})
    (node,) = (op for op in module.walk() if op.name == "fused.LayerNormalization")
    assert [str(v.type) for v in node.operands[1:]] == ["tensor<8xf32>"] * 2
    found.check(row_bound(x, found.parts, 2**-23))


def test_scale_and_shift_that_a_run_gives():
    feed = {name: RNG.normal(size=8).astype(np.float32) for name in ("p", "q2")}
    feed["x"] = RNG.normal(size=(2, 3, 8)).astype(np.float32)
    module = model(
        parts() + " s = Mul(n, p) y = Add(s, q2)", inputs=", float[8] p, float[8] q2", opset=13
    )
    found = results(LayerNormalization(), module, feed)
    assert op_types(module) == ["LayerNormalization"]
    found.check(row_bound(feed["x"], found.parts, 2**-23))


@pytest.mark.parametrize("axes", ["-2, -1", "1, 2", "2, -2"])
@pytest.mark.parametrize("opset", [13, 17, 18])
@pytest.mark.parametrize("run", [results, file_results])
def test_last_two_axes(axes: str, opset: int, run: Any):
    extra = f", {vector('float', 'w2', RNG.normal(size=24), '3, 8')}"
    body = parts(opset=opset, axes=axes) + " y = Mul(n, w2)"
    x = RNG.normal(size=(2, 3, 8)).astype(np.float32)
    module = model(body, opset, shape="M, 3, 8", extra=extra)
    found = run(LayerNormalization(), module, {"x": x})
    assert op_types(module) == ["LayerNormalization"]
    found.check(row_bound(x, found.parts, 2**-23, 2))


@pytest.mark.parametrize("opset", [13, 17])
@pytest.mark.parametrize("kind", ["float16", "double"])
def test_other_floats(kind: str, opset: int):
    epsilon = float(np.float32(1e-5))
    x = RNG.normal(size=(2, 3, 8)).astype(KINDS[kind])
    module = model(parts(opset=opset) + AFFINE, opset, kind, epsilon=epsilon)
    found = results(LayerNormalization(), module, {"x": x})
    assert op_types(module) == ["LayerNormalization"]
    found.check(row_bound(x, found.parts, float(np.finfo(KINDS[kind]).eps)))


CAST = (
    f"x = Cast<to = 1>(h) {parts()} c = Cast<to = 10>(n) s = Mul(c, w) y = Add(s, b)",
    f"x = Cast<to = 1>(h) {parts(opset=17)} c = Cast<to = 10>(n) s = Mul(c, w) y = Add(s, b)",
)


@pytest.mark.parametrize("opset", [13, 17])
def test_casts_around_are_taken_in(opset: int):
    half = f"{vector('float16', 'w', W)}, {vector('float16', 'b', B)}"
    h = RNG.normal(size=(2, 3, 8)).astype(np.float16)
    module = typed_from_onnx(
        f"g (float16[M, N, 8] h) => (float16[M, N, 8] y) <{numbers()}, {half}> "
        f"{{ {CAST[opset == 17]} }}",
        opset=opset,
    )
    found = results(LayerNormalization(), module, {"h": h})
    assert op_types(module) == ["LayerNormalization"]
    found.check(row_bound(h, found.parts, 2**-10))


def test_a_cast_back_to_another_type_stays():
    module = typed_from_onnx(
        f"g (float[M, N, 8] x) => (float16[M, N, 8] y) <{numbers()}> "
        f"{{ {parts()} y = Cast<to = 10>(n) }}"
    )
    run_pass(LayerNormalization(), module)
    assert op_types(module) == ["LayerNormalization", "Cast"]


def test_infinities_nan_and_rows_without_variance():
    x = np.zeros((4, 1, 8), np.float32)
    x[0, 0, 3], x[1, 0, 2], x[2] = np.inf, np.nan, 5
    found = results(LayerNormalization(), model(parts() + AFFINE), {"x": x})
    assert np.isnan(found.fused[:2]).all()
    np.testing.assert_array_equal(found.fused[2:], np.broadcast_to(B.astype(np.float32), (2, 1, 8)))
    found.check(1e-6)


def test_zero_size():
    found = results(LayerNormalization(), model(parts() + AFFINE), {"x": np.zeros((0, 3, 8), "f")})
    assert found.fused.shape == (0, 3, 8)


def test_file_has_no_more_nodes_than_before():
    for tail in ("y = Identity(n)", "y = Mul(n, w)", AFFINE):
        module = model(f"{parts()} {tail}")
        before = len(op_types(module))
        run_pass(LayerNormalization(), module)
        nodes = [n for n in export_model(module).graph.node if n.op_type != "Constant"]
        assert len(nodes) <= before


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            parts().replace("v = ReduceMean<axes = [-1]>", "v = ReduceMean<axes = [-2]>"),
            "same last",
        ),
        (parts(axes="0"), "same last"),
        (parts(axes="-2"), "same last"),
        (parts().replace("<axes = [-1]>(x)", "<axes = [-1], keepdims = 0>(x)"), ""),
        (parts().replace("Pow(d, two)", "Pow(d, three)"), ""),
        (parts().replace("Sub(x, m)", "Sub(m, x)"), ""),
    ],
)
def test_declines(body: str, reason: str):
    check_unchanged(LayerNormalization(), model(body + AFFINE), reason or None)


def test_declines_unknown_sizes():
    text = f"g (float[M, N] x) => (float[M, N] y) <{numbers()}> {{ {parts()} y = Neg(n) }}"
    check_unchanged(LayerNormalization(), typed_from_onnx(text), "are not known")


def test_declines_an_epsilon_that_is_no_float32():
    check_unchanged(
        LayerNormalization(), model(parts() + AFFINE, kind="double"), "1e-05 is no float32"
    )


def test_declines_large_scales_of_ones():
    text = f"g (float[M, 20000] x) => (float[M, 20000] y) <{numbers()}> {{ {parts()} y = Neg(n) }}"
    check_unchanged(LayerNormalization(), typed_from_onnx(text), "would make the model larger")


@pytest.mark.parametrize("inner", ["d", "q", "r"])
def test_declines_interior_values_that_are_read_outside(inner: str):
    module = model(parts() + AFFINE, outputs=f", float[M, N, K] {inner}")
    check_unchanged(LayerNormalization(), module, "read outside")


def test_rows_that_are_read_outside_come_out_without_scale():
    module = model(parts() + AFFINE, outputs=", float[M, N, 8] n")
    run_pass(LayerNormalization(), module)
    assert op_types(module) == ["LayerNormalization", "Mul", "Add"]
