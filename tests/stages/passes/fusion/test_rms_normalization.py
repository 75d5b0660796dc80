"""rms-normalization: spellings, what is taken in, refusals, numerics."""

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.exporter import export_model
from foldline.stages.passes.fusion.rms_normalization import RmsNormalization
from tests.stages.check import check_unchanged, from_onnx, op_types, run_pass
from tests.stages.passes.fusion.fused import file_results, results, typed
from tests.stages.passes.fusion.rows import DIVISIONS, KINDS, mean, numbers, vector

RNG = np.random.default_rng(11)
W = RNG.normal(size=8)


def parts(opset: int = 13, division: str = "one over", square: str = "Pow(x, two)") -> str:
    divided = DIVISIONS[division].format(d="x")
    return f"q = {square} {mean('v', 'q', opset)} a = Add(v, eps) {divided}"


def model(
    body: str,
    opset: int = 13,
    kind: str = "float",
    shape: str = "M, N, 8",
    epsilon: float = 1e-6,
    inputs: str = "",
    outputs: str = "",
) -> ModuleOp:
    text = f"""g ({kind}[{shape}] x{inputs}) => ({kind}[{shape}] y{outputs})
        <{numbers(kind, epsilon)}, {vector(kind, "w", W)}> {{ {body} }}"""
    return typed(from_onnx(text, opset=opset))


def bound(y: np.ndarray[Any, Any], eps: float) -> Any:
    """4 eps of the largest result of a row."""
    return 4 * eps * np.abs(y.astype(np.float64)).max(-1, keepdims=True)


@pytest.mark.parametrize("division", DIVISIONS)
@pytest.mark.parametrize("square", ["Pow(x, two)", "Mul(x, x)"])
def test_every_spelling(division: str, square: str):
    for scaled in ("y = Mul(n, w)", "y = Mul(w, n)"):
        module = model(f"{parts(13, division, square)} {scaled}")
        run_pass(RmsNormalization(), module)
        assert op_types(module) == ["RMSNormalization"]


@pytest.mark.parametrize(("opset", "name"), [(9, "fused"), (18, "fused"), (23, "onnx")])
def test_operator_of_the_model_version(opset: int, name: str):
    module = model(parts(opset) + " y = Mul(n, w)", opset)
    run_pass(RmsNormalization(), module)
    (node,) = (op for op in module.walk() if op.name == f"{name}.RMSNormalization")
    wanted = {"axis": -1, "epsilon": np.float32(1e-6), "stash_type": 1}
    wanted |= {} if name == "onnx" else {"inverse": 1}
    assert node.attribute_values() == wanted


@pytest.mark.parametrize("run", [results, file_results])
@pytest.mark.parametrize("opset", [13, 23])
@pytest.mark.parametrize("division", ["one over", "quotient"])
def test_within_4_eps_of_the_largest_of_a_row(division: str, opset: int, run: Any):
    x = (RNG.normal(size=(5, 7, 8)) * 3 + 1).astype(np.float32)
    found = run(
        RmsNormalization(), model(parts(opset, division) + " y = Mul(n, w)", opset), {"x": x}
    )
    found.check(bound(found.parts, 2**-23))


@pytest.mark.parametrize("opset", [13, 23])
@pytest.mark.parametrize("kind", ["float16", "double"])
def test_other_floats(kind: str, opset: int):
    x = RNG.normal(size=(2, 3, 8)).astype(KINDS[kind])
    epsilon = float(np.float32(1e-6))
    module = model(parts(opset) + " y = Mul(n, w)", opset, kind, epsilon=epsilon)
    found = results(RmsNormalization(), module, {"x": x})
    assert op_types(module) == ["RMSNormalization"]
    found.check(bound(found.parts, float(np.finfo(KINDS[kind]).eps)))


@pytest.mark.parametrize("opset", [13, 23])
@pytest.mark.parametrize("run", [results, file_results])
def test_casts_around_are_taken_in_as_llama_has_them(opset: int, run: Any):
    text = f"""g (float16[M, 8] h) => (float16[M, 8] y) <{numbers()}, {vector("float16", "w", W)}>
        {{ x = Cast<to = 1>(h) {parts(opset)} c = Cast<to = 10>(n) y = Mul(w, c) }}"""
    module = typed(from_onnx(text, opset=opset))
    h = RNG.normal(size=(5, 8)).astype(np.float16)
    found = run(RmsNormalization(), module, {"h": h})
    assert op_types(module) == ["RMSNormalization"]
    found.check(bound(found.parts, 2**-10))


def test_a_half_row_cast_for_a_float_scale_stays_cast():
    text = f"""g (float16[M, 8] h) => (float[M, 8] y) <{numbers()}, {vector("float", "w", W)}>
        {{ x = Cast<to = 1>(h) {parts()} y = Mul(w, n) }}"""
    module = typed(from_onnx(text, opset=13))
    run_pass(RmsNormalization(), module)
    assert op_types(module) == ["Cast", "RMSNormalization"]


def test_without_a_scale_and_with_one_that_does_not_fit():
    module = model(parts() + " y = Neg(n)")
    run_pass(RmsNormalization(), module)
    assert op_types(module) == ["RMSNormalization", "Neg"]
    module = model(parts() + " y = Mul(n, x)")
    run_pass(RmsNormalization(), module)
    assert op_types(module) == ["RMSNormalization", "Mul"]


def test_a_scale_that_a_run_gives():
    module = model(parts() + " y = Mul(n, p)", inputs=", float[8] p")
    feed = {"x": RNG.normal(size=(2, 3, 8)).astype("f"), "p": W.astype("f")}
    found = results(RmsNormalization(), module, feed)
    assert op_types(module) == ["RMSNormalization"]
    found.check(bound(found.parts, 2**-23))


def test_infinities_nan_zero_rows_and_zero_size():
    x = np.zeros((4, 1, 8), np.float32)
    x[0, 0, 3], x[1, 0, 2] = np.inf, np.nan
    found = results(RmsNormalization(), model(parts() + " y = Mul(n, w)"), {"x": x})
    assert np.isnan(found.fused[0, 0, 3])
    assert (found.fused[0, 0, :3] == 0).all()
    assert np.isnan(found.fused[1]).all()
    assert (found.fused[2:] == 0).all()
    found.check(0)
    empty = results(
        RmsNormalization(), model(parts() + " y = Mul(n, w)"), {"x": np.zeros((0, 3, 8), "f")}
    )
    assert empty.fused.shape == (0, 3, 8)


@pytest.mark.parametrize("opset", [13, 18])
@pytest.mark.parametrize("division", ["quotient", "one over", "reciprocal"])
def test_files_compute_the_same_bits_below_23(division: str, opset: int):
    x = RNG.normal(size=(5, 7, 8)).astype(np.float32)
    module = model(parts(opset, division, "Mul(x, x)") + " y = Mul(n, w)", opset)
    found = file_results(RmsNormalization(), module, {"x": x})
    np.testing.assert_array_equal(found.parts.view(np.uint32), found.fused.view(np.uint32))


@pytest.mark.parametrize("opset", [13, 18])
def test_file_has_no_more_nodes_than_before(opset: int):
    for body in ("y = Identity(n)", "y = Mul(n, w)"):
        module = model(f"{parts(opset, 'quotient')} {body}", opset)
        before = len(op_types(module))
        run_pass(RmsNormalization(), module)
        assert (
            len([n for n in export_model(module).graph.node if n.op_type != "Constant"]) <= before
        )


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (parts().replace("axes = [-1]", "axes = [-2]"), "not known to be over last axes"),
        (parts().replace("Pow(x, two)", "Pow(x, three)"), None),
        (parts().replace("Div(one, r)", "Div(two, r)"), None),
        (parts(division="negative power").replace("mhalf", "half"), None),
    ],
)
def test_declines(body: str, reason: str | None):
    check_unchanged(RmsNormalization(), model(body + " y = Mul(n, w)"), reason)


def test_declines_double_epsilons_unknown_sizes_and_outside_readers():
    check_unchanged(
        RmsNormalization(), model(parts() + " y = Mul(n, w)", kind="double"), "1e-06 is no float32"
    )
    text = f"g (float[M, N] x) => (float[M, N] y) <{numbers()}> {{ {parts()} y = Neg(n) }}"
    check_unchanged(RmsNormalization(), typed(from_onnx(text, opset=13)), "are not known")
    module = model(parts() + " y = Mul(n, w)", outputs=", float[M, N, K] r")
    check_unchanged(RmsNormalization(), module, "read outside")


def test_leaves_simplified_layer_normalization_alone():
    text = f"""g (float[M, 8] x) => (float[M, 8] y) <{vector("float", "w", W)}>
        {{ y = SimplifiedLayerNormalization(x, w) }}"""
    check_unchanged(RmsNormalization(), from_onnx(text, opset=13))
