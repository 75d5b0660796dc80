"""sink-transposes: through what, with which other inputs, and that it ends."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.onnx.constant import constant_tensor, is_constant
from foldline.dialects.onnx.op import node_name, result_names
from foldline.stages.context import PassContext
from foldline.stages.driver.traversal import Traversal
from foldline.stages.passes.cleanup.cancel_transposes import CancelTransposes
from foldline.stages.passes.folding.constant_folding import ConstantFolding
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.passes.structure.sink_transposes import SinkTransposes
from tests.stages.check import (
    Array,
    check_pass,
    check_unchanged,
    check_values,
    constant,
    from_onnx,
    nodes,
    op_types,
    parse,
    run_pass,
    values,
)
from tests.stages.passes.structure.own import check_own_values

PASS = SinkTransposes()
X = np.random.default_rng(0).standard_normal((2, 3, 4, 5), np.float32)
X[0, 0, 0] = [np.nan, -0.0, np.inf, -np.inf, 1e-45]
Y = np.random.default_rng(1).standard_normal((2, 3, 4, 5), np.float32)
NHWC = "Transpose <perm = [0, 2, 3, 1]>"


def inferred(text: str, opset: int = 21, ir_version: int = 10) -> ModuleOp:
    module = from_onnx(text, opset=opset, ir_version=ir_version)
    InferShapes().run(PassContext(module))
    return module


def sunk(text: str, inputs: str = "", opset: int = 21) -> ModuleOp:
    """The module of a computation on t, the transpose of x (2, 3, 4, 5)."""
    return inferred(
        f"g (float[2,C,4,5] x{inputs}) => (float[p,q,r,s] y) {{ t = {NHWC} (x) {text} }}", opset
    )


def test_the_form_of_it() -> None:
    text = """%t = onnx.Transpose(%x) {perm = array<i64: 1, 0>} : tensor<3x2xf32>
    %y = onnx.Relu(%t) : tensor<3x2xf32>
    return(%y)"""
    after = """%a = onnx.Relu(%x) : tensor<2x3xf32>
    %y = onnx.Transpose(%a) {perm = array<i64: 1, 0>} : tensor<3x2xf32>
    return(%y)"""
    check_pass(PASS, parse(text), parse(after))


UNARY = [
    "y = Relu(t)",
    "y = LeakyRelu <alpha = 0.3> (t)",
    "y = Tanh(t)",
    "y = Erf(t)",
    "y = Exp(t)",
    "y = Sigmoid(t)",
    "y = Gelu(t)",
    "y = Softplus(t)",
    "y = Log(t)",
    "a = IsNaN(t) y = Cast <to = 1> (a)",
    "h = Constant <value_float = 0.5> () y = Clip(t, , h)",
    "y = Add(t, t)",
    "a = Neg(t) b = Mul(a, a) y = Sqrt(b)",
]


@pytest.mark.parametrize("text", UNARY)
def test_one_input(text: str) -> None:
    check_values(PASS, module := sunk(text), {"x": X})
    assert op_types(module)[-1] == "Transpose"
    check_own_values(PASS, sunk(text), {"x": X})


@pytest.mark.parametrize(
    "shape",
    [(), (1,), (1, 1, 1), (3,), (5, 3), (4, 1, 1), (1, 4, 1, 3), (2, 4, 5, 3), (2, 1, 1, 1)],
)
@pytest.mark.parametrize("text", ["Div(t, c)", "Sub(c, t)", "Where(l, t, c)", "Less(t, c)"])
def test_constants_are_permuted(shape: tuple[int, ...], text: str) -> None:
    values = ", ".join(map(str, range(1, int(np.prod(shape)) + 1)))
    module = inferred(
        f"""g (float[2,3,4,5] x) => ({"bool" if "Less" in text else "float"}[p,q,r,s] y)
        <float{list(shape) or ""} c = {{{values}}}, bool l = {{0}}>
        {{ t = {NHWC} (x) y = {text} }}"""
    )
    check_values(PASS, module, {"x": X})
    assert op_types(module)[-1] == "Transpose"


def test_a_splat_stays_one() -> None:
    module = inferred(f"""g (float[2,3,4,5] x) => (float[p,q,r,s] y) {{ t = {NHWC} (x)
        s = Constant <value_ints = [5, 3]> () k = ConstantOfShape(s) y = Add(t, k) }}""")
    ConstantFolding().run(PassContext(module))
    run_pass(PASS, module)
    (add,) = (op for op in nodes(module) if op.op_type == "Add")
    tensor = constant_tensor(add.operands[1])
    assert tensor is not None
    assert tensor.array.shape == (1, 3, 1, 5)
    assert tensor.data.is_splat


def test_inputs_that_are_transposed_alike() -> None:
    module = sunk(f"u = {NHWC} (z) y = Pow(t, u)", ", float[2,3,4,5] z")
    check_values(PASS, module, {"x": X, "z": Y})
    assert op_types(module) == ["Pow", "Transpose"]


def test_a_computed_input_of_one_element() -> None:
    module = sunk("y = Mul(t, z)", ", float[1,1] z")
    check_values(PASS, module, {"x": X, "z": np.float32([[-0.0]])})
    assert op_types(module) == ["Mul", "Transpose"]


@pytest.mark.parametrize(
    ("text", "inputs", "reason"),
    [
        ("y = Mul(t, z)", ", float[3] z", "input 1 is neither transposed nor constant"),
        ("y = Mul(t, z)", ", float[N] z", "input 1 is neither transposed nor constant"),
        ("y = Mul(t, z)", ", float[1,1,1,1,1] z", "input 1 is not certain to have 4 axes at most"),
        (
            "u = Transpose <perm = [0,2,1,3]> (z) y = Mul(t, u)",
            ", float[2,5,4,3] z",
            "different ways",
        ),
        ("a = Neg(t) b = Abs(t) y = Concat <axis = 0> (a, b)", "", "have other readers"),
    ],
)
def test_others_stay(text: str, inputs: str, reason: str) -> None:
    check_unchanged(PASS, sunk(text, inputs), reason)


@pytest.mark.parametrize("axis", [0, 1, 3, -1])
def test_concat(axis: int) -> None:
    module = sunk(f"u = {NHWC} (z) y = Concat <axis = {axis}> (t, u, t)", ", float[2,3,4,5] z")
    check_values(PASS, module, {"x": X, "z": Y})
    assert op_types(module) == ["Concat", "Transpose"]


def test_concat_with_a_constant() -> None:
    module = inferred(f"""g (float[2,3,4,1] x) => (float[p,q,r,s] y)
    <float[2,4,1,1] c = {{1,2,3,4,5,6,7,8}}> {{ t = {NHWC} (x) y = Concat <axis = 3> (c, t) }}""")
    check_values(PASS, module, {"x": X[..., :1]})
    assert op_types(module) == ["Concat", "Transpose"]


@pytest.mark.parametrize(
    ("text", "opset"),
    [
        ("y = Pad(t, p)", 21),
        ("y = Pad(t, p, v)", 13),
        ('y = Pad <mode = "reflect"> (t, p)', 21),
        ("y = Pad(t, q, , a)", 18),
        ("y = Pad <pads = [0, 1, 2, 0, 0, 0, -1, 3], value = 2.0> (t)", 9),
        ('y = Pad <paddings = [0, 1, 2, 0, 0, 0, 1, 3], mode = "edge"> (t)', 1),
    ],
)
def test_pad(text: str, opset: int) -> None:
    module = inferred(
        f"""g (float[2,3,4,5] x) => (float[p,q,r,s] y)
        <int64[8] p = {{0, 1, 2, 0, 0, 0, 1, 2}}, float v = {{7}}, int64[4] q = {{1, 0, 0, 2}},
         int64[2] a = {{-2, 3}}> {{ t = {NHWC} (x) {text} }}""",
        opset=opset,
        ir_version=4 if opset < 9 else 10,
    )
    if opset >= 9:
        check_values(PASS, module, {"x": X})
    else:
        run_pass(PASS, module)
    assert op_types(module) == ["Pad", "Transpose"]


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axes", [[1], [-1], [1, 2], [0, 3], [0, 1, 3]])
@pytest.mark.parametrize("opset", [12, 18])
def test_reductions_of_integers(keepdims: int, axes: list[int], opset: int) -> None:
    given = (
        f"ReduceMax <keepdims = {keepdims}, axes = {axes}> (t)"
        if opset == 12
        else f"ReduceMax <keepdims = {keepdims}> (t, a)"
    )
    result = ",".join("pqrs"[: 4 if keepdims else 4 - len(axes)])
    module = inferred(
        f"""g (int32[2,3,4,5] x) => (int32[{result}] y)
        <int64[{len(axes)}] a = {{{str(axes)[1:-1]}}}>
        {{ t = {NHWC} (x) y = {given} }}""",
        opset=opset,
    )
    check_values(PASS, module, {"x": (Y * 100).astype(np.int32)})
    assert op_types(module)[0] == "ReduceMax"
    assert result_names(nodes(module)[-1]) == ("y",)


def test_a_reduction_after_which_nothing_is_transposed() -> None:
    module = inferred(f"""g (int64[2,3,4,5] x) => (int64[p,q] y) <int64[2] a = {{1, 2}}> {{
        t = {NHWC} (x) y = ReduceSum <keepdims = 0> (t, a) }}""")
    check_values(PASS, module, {"x": (Y * 100).astype(np.int64)})
    assert op_types(module) == ["ReduceSum"]


@pytest.mark.parametrize("operator", ["ReduceSum", "ReduceMax"])
def test_reductions_of_floats_stay(operator: str) -> None:
    module = inferred(f"""g (float[2,3,4,5] x) => (float[p,q] y) <int64[2] a = {{1, 2}}> {{
        t = {NHWC} (x) y = {operator} <keepdims = 0> (t, a) }}""")
    check_unchanged(PASS, module, "hangs on the order of the elements")


def test_old_versions_that_broadcast_along_an_axis_stay() -> None:
    module = inferred(
        f"""g (float[2,3,4,5] x) => (float[p,q,r,s] y) <float[4] c = {{1,2,3,4}}> {{
        t = {NHWC} (x) y = Add <axis = 1, broadcast = 1> (t, c) }}""",
        opset=6,
        ir_version=4,
    )
    check_unchanged(PASS, module, "broadcasts along an axis")


def test_a_large_constant_that_others_read_is_not_copied() -> None:
    text = """%c = onnx.Identity(%z) : tensor<64x33xf32>
    %t = onnx.Transpose(%x) {perm = array<i64: 1, 0>} : tensor<64x33xf32>
    %y = onnx.Add(%t, %w) : tensor<64x33xf32>
    %v = onnx.Sub(%z, %w) : tensor<64x33xf32>
    return(%y, %v)"""
    large = f"%w = {constant(np.arange(64 * 33).reshape(64, 33), np.float32)}\n"
    inputs = "%x: tensor<33x64xf32>, %z: tensor<64x33xf32>"
    check_unchanged(PASS, parse(large + text, inputs), "bytes that others read too")
    module = parse(large + text.replace("onnx.Sub(%z, %w)", "onnx.Sub(%z, %z)"), inputs)
    run_pass(PASS, module)
    assert op_types(module)[-2:] != ["Add", "Sub"]
    assert sum(map(is_constant, module.walk())) == 1


def test_names() -> None:
    module = inferred("""g (float[2,3] x) => (float[3,2] y) {
        [move] t = Transpose <perm = [1,0]> (x) [act] y = Relu(t) }""")
    run_pass(PASS, module)
    assert [(node_name(op), result_names(op)) for op in nodes(module)] == [
        ("act", ("",)),
        ("move", ("y",)),
    ]


def test_a_residual_network_in_the_wrong_layout() -> None:
    """Transposes go down both ways to an Add, the one from the other, until all cancel but one."""
    block = """
        c{i} = Transpose <perm = [0,3,1,2]> (r{i}) d{i} = Conv(c{i}, w)
        e{i} = Transpose <perm = [0,2,3,1]> (d{i})
        f{i} = Mul(e{i}, k) g{i} = Add(r{i}, f{i}) r{j} = Relu(g{i})"""
    blocks = "".join(block.format(i=i, j=i + 1) for i in range(6))
    module = inferred(
        f"""g (float[1,3,4,4] x, float[3,3,1,1] w) => (float[p,q,r,s] y)
        <float[3] k = {{1, 2, 0.25}}> {{
        a = Conv(x, w) r0 = Transpose <perm = [0,2,3,1]> (a) {blocks}
        y = Neg(r6) }}"""
    )
    before = module.clone()
    context = PassContext(module)
    passes = [InferShapes(trusted=True), CancelTransposes(), SinkTransposes()]
    Traversal(context, [p.visitor(context) for p in passes]).run()
    assert op_types(module).count("Transpose") == 1
    assert op_types(module)[-1] == "Transpose"
    assert not context.bounds
    feed: dict[str, Array] = {"x": X[:1, :, :, :4], "w": Y[:1, :, :3, :1].reshape(3, 3, 1, 1) / 3}
    for old, new in zip(values(before, feed), values(module, feed), strict=True):
        np.testing.assert_array_equal(old, new)


def test_a_body_does_not_take_in_a_transpose_from_around_it() -> None:
    text = """g (float[2,3] x, int64 n) => (float[3,2] y) {{
        c = Constant <value = bool {{1}}> () z = Constant <value = float[3,2] {{0,0,0,0,0,0}}> ()
        {outer}
        y = Loop (n, c, z) <body = b (int64 i, bool k, float[3,2] s) => (bool k2, float[3,2] r) {{
            k2 = Identity(k) {inner} r = Add(s, a) }}> }}"""
    transpose = "t = Transpose <perm = [1,0]> (x)"
    check_unchanged(PASS, inferred(text.format(outer=transpose, inner="a = Relu(t)")))
    module = inferred(text.format(outer="", inner=f"{transpose} a = Relu(t)"))
    check_values(PASS, module, {"x": np.ones((2, 3), np.float32), "n": np.array(2)})
    body = [op.name for op in module.walk() if op.name in ("onnx.Relu", "onnx.Transpose")]
    assert body == ["onnx.Relu", "onnx.Transpose"]


def test_it_works_in_functions() -> None:
    module = inferred("""g (float[2,3] x) => (float[3,2] y) { y = local.f(x) }
    <opset_import: ["" : 21], domain: "local"> f (p) => (q) {
        t = Transpose <perm = [1,0]> (p) q = Relu(t) }""")
    check_values(PASS, module, {"x": np.ones((2, 3), np.float32)})
    names = [op.name for op in module.walk() if op.name in ("onnx.Relu", "onnx.Transpose")]
    assert names == ["onnx.Relu", "onnx.Transpose"]


def test_attributes_that_are_parameters_of_a_function_stay() -> None:
    module = inferred("""g (float[3,4] x) => (float y) { y = local.f <p = [1, 0]> (x) }
    <opset_import: ["" : 21], domain: "local"> f <p> (x) => (y) {
        t = Transpose <perm: ints = @p> (x) y = Relu(t) }""")
    check_unchanged(PASS, module)
