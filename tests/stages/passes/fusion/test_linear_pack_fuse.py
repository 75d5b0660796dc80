"""Spec runtime-rewrites 3.7."""

from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import foldline
from foldline.dialects.fused.expansions import parts_of
from foldline.importer import import_model
from foldline.stages.context import PassContext
from foldline.stages.passes.fusion.linear_pack_fuse import LinearPackFuse
from tests.stages.check import check_unchanged, nodes, op_types, run_pass, values

FLOAT = onnx.TensorProto.FLOAT


def normal(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def model(nodes, weights, x=("N", "S", 8), outputs=("y",), opset=21, element=FLOAT, extra=()):
    """A model of nodes given as (operator, inputs, outputs, attributes)."""
    made = [
        helper.make_node(op, inputs.split(), results.split(), **dict(rest[0] if rest else {}))
        for op, inputs, results, *rest in nodes
    ]
    imports = [helper.make_opsetid("", opset)]
    graph = helper.make_graph(
        made,
        "g",
        [helper.make_tensor_value_info("x", element, x), *extra],
        [helper.make_tensor_value_info(name, element, None) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def module(*args, **keywords):
    return import_model(model(*args, **keywords), [])


def linears(given):
    return [op for op in nodes(given) if op.op_type == "Linear"]


def left(context):
    return [r.message for r in context.remarks if r.kind == "declined"]


W = {"w": normal(8, 6), "b": normal(6, seed=1)}
CHAIN = [("MatMul", "x w", "h"), ("Add", "h b", "a"), ("Relu", "a", "y")]
FEED = {"x": normal(2, 3, 8, seed=2)}


def test_row_3_7_matmul_add_relu_is_one_node():
    given = module(CHAIN, W)
    run_pass(LinearPackFuse(), given)
    (linear,) = linears(given)
    assert op_types(given) == ["Linear"]
    assert linear.value_of("activation") == "Relu"
    assert linear.value_of("product") == "MatMul"
    assert len(linear.operands) == 3
    made, _ = parts_of(linear)
    assert [op.op_type for op in made] == ["MatMul", "Add", "Relu"]


def test_row_3_7_files_compute_the_same():
    given = module(CHAIN, W)
    before = values(given.clone(), FEED)
    run_pass(LinearPackFuse(), given)
    np.testing.assert_array_equal(values(given, FEED)[0], before[0])


ACTIVATIONS = [
    ("Relu", {}, {}, ()),
    ("Sigmoid", {}, {}, ()),
    ("Tanh", {}, {}, ()),
    ("HardSwish", {}, {}, ()),
    ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}, {}, (0.3, 0.4)),
    ("LeakyRelu", {"alpha": 0.2}, {}, (0.2,)),
    ("Gelu", {}, {}, (0,)),
    ("Gelu", {"approximate": "tanh"}, {}, (1,)),
    ("Clip", {}, {"low": np.float32(-0.5), "high": np.float32(0.25)}, (-0.5, 0.25)),
    ("Clip", {}, {"low": np.float32(-0.5)}, (-0.5, np.inf)),
    ("Clip", {}, {"low": np.float32(np.nan), "high": np.float32(1)}, (np.nan, 1)),
    ("Clip", {}, {"low": np.float32(1), "high": np.float32(-1)}, (1, -1)),
]
SPECIAL = np.array(
    [[0, -0.0, 1, np.nan, np.inf, -np.inf, 1e-42, 3e38], [1, 2, -3, 4, -5, 6, -7, 8]], np.float32
)


@pytest.mark.parametrize(("name", "attributes", "bounds", "params"), ACTIVATIONS)
@pytest.mark.parametrize("mode", ["fast", "exact"])
@pytest.mark.parametrize("has_bias", [True, False])
def test_row_3_7_bits_of_every_activation(name, attributes, bounds, params, mode, has_bias):
    before = CHAIN[:2] if has_bias else [("MatMul", "x w", "a")]
    chain = [*before, (name, " ".join(["a", *bounds]), "y", attributes)]
    weights = {"w": W["w"], **bounds, **({"b": W["b"]} if has_bias else {})}
    proto = model(chain, weights, opset=24)
    given = import_model(proto, [])
    run_pass(LinearPackFuse(), given)
    (linear,) = linears(given)
    assert op_types(given) == ["Linear"]
    found = linear.value_of("activation_params") or ()
    np.testing.assert_array_equal(np.float32(found), np.float32(params))
    on, off = sessions(proto, mode)
    for x in (FEED["x"], SPECIAL[None], normal(1, 40, 8) * 4):
        assert same_bits(on.run(None, {"x": x}), off.run(None, {"x": x}))


def sessions(proto, mode="fast", threads=1):
    """With and without the pass."""
    options = {"mode": mode, "oo.level": "O2"}
    on = foldline.compile(proto, options=options)
    off = foldline.compile(proto, options={**options, "passes.disable": ["linear-pack-fuse"]})
    assert any(op.op_type == "Linear" for op in nodes(on.module))
    assert not any(op.op_type == "Linear" for op in nodes(off.module))
    return on.session(threads), off.session(threads)


def same_bits(found, expected):
    return all(
        a.shape == b.shape and np.array_equal(a.view(np.uint32), b.view(np.uint32))
        for a, b in zip(found, expected, strict=True)
    )


@pytest.mark.parametrize("shape", [(1, 8), (5, 8), (300, 8), (0, 8), (2, 3, 8), (1, 2, 3, 8)])
def test_row_3_7_bits_at_sizes_that_plans_are_made_for(shape):
    proto = model(CHAIN, W, x=[None] * len(shape))
    on, off = sessions(proto)
    x = normal(*shape, seed=3)
    for _ in range(4):  # generic, watched, planned, planned again
        assert same_bits(on.run(None, {"x": x}), off.run(None, {"x": x}))


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("size", [(200, 384, 1536), (1500, 300, 200)])
def test_row_3_7_bits_of_products_in_tiles(size, threads):
    m, k, n = size
    weights = {"w": normal(k, n), "b": normal(n, seed=1)}
    chain = [*CHAIN[:2], ("Gelu", "a", "y")]
    on, off = sessions(model(chain, weights, x=("N", k)), threads=threads)
    x = normal(m, k, seed=2)
    for _ in range(3):
        assert same_bits(on.run(None, {"x": x}), off.run(None, {"x": x}))


@pytest.mark.parametrize("opset", [17, 24])
def test_row_3_7_gelu_of_the_fused_dialect_is_an_activation(opset):
    chain = [
        *CHAIN[:2],
        ("Div", "a root", "d"),
        ("Erf", "d", "e"),
        ("Add", "e one", "f"),
        ("Mul", "a f", "g"),
        ("Mul", "g half", "y"),
    ]
    scalars = {"root": np.float32(2**0.5), "one": np.float32(1), "half": np.float32(0.5)}
    proto = model(chain, {**W, **scalars}, opset=opset)
    compiled = foldline.compile(proto)
    (linear,) = nodes(compiled.module)[-1:]
    assert linear.op_type == "Linear"
    assert linear.value_of("activation") == "Gelu"
    written = Counter(node.op_type for node in compiled.to_proto().graph.node)
    written.pop("Constant", None)
    assert sum(written.values()) <= len(chain)
    assert ("Gelu" in written) == (opset == 24)


@pytest.mark.parametrize("bias", [(6,), (1, 6), (1, 1, 6), (1,), ()])
@pytest.mark.parametrize("order", ["h b", "b h"])
def test_row_3_7_shapes_of_a_bias(bias, order):
    proto = model(
        [CHAIN[0], ("Add", order, "a"), CHAIN[2]], {"w": W["w"], "b": normal(*bias, seed=1)}
    )
    given = import_model(proto, [])
    run_pass(LinearPackFuse(), given)
    assert op_types(given) == ["Linear"]
    on, off = sessions(proto)
    assert same_bits(on.run(None, FEED), off.run(None, FEED))


NOT_A_BIAS = [
    ((3, 6), "of shape [3, 6] is no vector of 6 columns"),
    ((3, 1), "of shape [3, 1] is no vector of 6 columns"),
    ((1, 1, 1, 6), "raises the rank"),
    ((1, 1, 1, 1), "raises the rank"),
]


@pytest.mark.parametrize(("shape", "reason"), NOT_A_BIAS)
def test_row_3_7_what_is_no_bias_stays(shape, reason):
    given = module(CHAIN, {"w": W["w"], "b": normal(*shape)})
    context = run_pass(LinearPackFuse(), given)
    assert op_types(given) == ["Linear", "Add", "Relu"]
    assert len(linears(given)[0].operands) == 2
    assert any(reason in message for message in left(context)), left(context)


def test_row_3_7_an_add_of_something_computed_stays():
    chain = [CHAIN[0], ("Identity", "h2", "b"), *CHAIN[1:]]
    extra = [helper.make_tensor_value_info("h2", FLOAT, (6,))]
    given = module(chain, {"w": W["w"]}, extra=extra)
    context = run_pass(LinearPackFuse(), given)
    assert [op for op in op_types(given) if op != "Identity"] == ["Linear", "Add", "Relu"]
    assert any("what is added is not constant" in message for message in left(context))


def test_row_3_7_a_nan_that_comes_first_stays():
    bias = W["b"].copy()
    bias[2] = np.nan
    for order, count in (("b h", 3), ("h b", 1)):
        given = module([CHAIN[0], ("Add", order, "a"), CHAIN[2]], {**W, "b": bias})
        run_pass(LinearPackFuse(), given)
        assert len(op_types(given)) == count


@pytest.mark.parametrize(
    ("weights", "reason"),
    [
        ({"w": normal(2, 8, 6)}, "B has shape [2, 8, 6], and is no matrix"),
        ({"w": normal(8)}, "B has shape [8], and is no matrix"),
        ({}, "B is not constant"),
    ],
)
def test_row_3_7_weights_that_are_not(weights, reason):
    extra = [] if weights else [helper.make_tensor_value_info("w", FLOAT, (8, 6))]
    given = module([("MatMul", "x w", "y")], weights, extra=extra, x=(2, 3, 8))
    check_unchanged(LinearPackFuse(), given, reason)


@pytest.mark.parametrize(
    ("operator", "dtype", "code"), [("MatMul", np.float64, 11), ("Gemm", np.float16, 10)]
)
def test_row_3_7_other_floats_are_left_alone(operator, dtype, code):
    weights = {"w": normal(8, 6, dtype=dtype)}
    given = module([(operator, "x w", "y")], weights, element=code, x=(2, 8))
    check_unchanged(LinearPackFuse(), given, f"B of {operator} is {np.dtype(dtype).name}")


@pytest.mark.parametrize(("name", "attributes", "bounds", "params"), ACTIVATIONS[:9])
@pytest.mark.parametrize("mode", ["fast", "exact"])
def test_row_3_7_half_products_keep_their_bits(name, attributes, bounds, params, mode):
    weights = {"w": normal(300, 700, dtype=np.float16), "b": normal(700, dtype=np.float16)}
    weights |= {key: value.astype(np.float16) for key, value in bounds.items()}
    chain = [*CHAIN[:2], (name, " ".join(["a", *bounds]), "y", attributes)]
    on, off = sessions(model(chain, weights, x=("N", "S", 300), opset=24, element=10), mode)
    del params
    for x in (normal(1, 3, 300), normal(2, 60 if mode == "fast" else 2, 300) * 4):
        x = x.astype(np.float16)
        found, expected = on.run(None, {"x": x})[0], off.run(None, {"x": x})[0]
        assert found.dtype == np.float16
        np.testing.assert_array_equal(found.view(np.uint16), expected.view(np.uint16))


@pytest.mark.parametrize(("shape", "reason"), [((8,), "A is a vector"), (None, "rank of A")])
def test_row_3_7_ranks_of_a(shape, reason):
    check_unchanged(LinearPackFuse(), module(CHAIN, W, x=shape), reason)


def test_row_3_7_an_overridable_initializer_is_not_constant():
    extra = [helper.make_tensor_value_info("w", FLOAT, (8, 6))]
    given = module([("MatMul", "x w", "y")], {"w": W["w"]}, extra=extra)
    check_unchanged(LinearPackFuse(), given, "B is not constant")


def test_row_3_7_clip_with_bounds_that_are_computed_stays():
    chain = [*CHAIN[:2], ("Clip", "a low", "y")]
    extra = [helper.make_tensor_value_info("low", FLOAT, ())]
    given = module(chain, W, extra=extra)
    context = run_pass(LinearPackFuse(), given)
    assert op_types(given) == ["Linear", "Clip"]
    assert any("bounds of Clip are not constants" in message for message in left(context))


@pytest.mark.parametrize(
    ("outputs", "more", "expected"),
    [
        (("y", "h"), [], ["Linear", "Add", "Relu"]),
        (("y", "a"), [], ["Linear", "Relu"]),
        (("y", "z"), [("Neg", "h", "z")], ["Linear", "Add", "Neg", "Relu"]),
        (("y", "z"), [("Neg", "a", "z")], ["Linear", "Neg", "Relu"]),
    ],
)
def test_row_3_7_what_others_read_stays(outputs, more, expected):
    given = module([*CHAIN, *more], W, outputs=outputs)
    before = values(given.clone(), FEED)
    context = run_pass(LinearPackFuse(), given)
    assert sorted(op_types(given)) == sorted(expected)
    assert any("others read what it reads as well" in message for message in left(context))
    for old, new in zip(before, values(given, FEED), strict=True):
        np.testing.assert_array_equal(old, new)


# Gemm


GEMM = [("Gemm", "x w b", "a"), ("Tanh", "a", "y")]


@pytest.mark.parametrize("transposed", [0, 1])
@pytest.mark.parametrize("bias", [(6,), (1, 6), (1,), (), (1, 1), None])
def test_row_3_7_gemm_with_its_bias(transposed, bias):
    weights = {"w": normal(6, 8) if transposed else normal(8, 6)}
    if bias is not None:
        weights["b"] = normal(*bias, seed=1)
    inputs = "x w b" if bias is not None else "x w"
    proto = model([("Gemm", inputs, "a", {"transB": transposed}), GEMM[1]], weights, x=("N", 8))
    given = import_model(proto, [])
    run_pass(LinearPackFuse(), given)
    (linear,) = linears(given)
    assert op_types(given) == ["Linear"]
    assert [op.op_type for op in parts_of(linear)[0]] == ["Gemm", "Tanh"]
    for mode in ("fast", "exact"):
        on, off = sessions(proto, mode)
        for rows in (1, 2, 40, 0):
            for _ in range(3):
                feed = {"x": normal(rows, 8)}
                assert same_bits(on.run(None, feed), off.run(None, feed))


@pytest.mark.parametrize("beta", [0.5, 0.0, -3.0])
@pytest.mark.parametrize("c", [normal(6, seed=1), np.float32([np.inf, -0.0, 1, 2, 3, np.nan])])
def test_row_3_7_beta_is_multiplied_in_once(beta, c):
    proto = model([("Gemm", "x w b", "a", {"beta": beta}), GEMM[1]], {**W, "b": c}, x=("N", 8))
    for mode in ("fast", "exact"):
        on, off = sessions(proto, mode)
        feed = {"x": normal(5, 8)}
        assert same_bits(on.run(None, feed), off.run(None, feed))


@pytest.mark.parametrize(
    ("attributes", "c", "reason"),
    [
        ({"alpha": 2.0}, (6,), "alpha is 2.0, not 1"),
        ({"transA": 1}, (6,), "transA is set"),
        ({}, (8, 6), "of shape [8, 6] is no vector of 6 columns"),
        ({}, (8, 1), "of shape [8, 1] is no vector of 6 columns"),
    ],
)
def test_row_3_7_gemm_that_is_more(attributes, c, reason):
    given = module([("Gemm", "x w b", "y", attributes)], {**W, "b": normal(*c)}, x=(8, 8))
    check_unchanged(LinearPackFuse(), given, reason)


def test_row_3_7_gemm_of_what_is_computed_stays():
    extra = [helper.make_tensor_value_info("c", FLOAT, (6,))]
    given = module([("Gemm", "x w c", "y")], {"w": W["w"]}, x=(8, 8), extra=extra)
    check_unchanged(LinearPackFuse(), given, "what is added is not constant")


def test_row_3_7_gemm_that_broadcasts_by_an_attribute_stays():
    given = module([("Gemm", "x w b", "y", {"broadcast": 1})], W, x=(4, 8), opset=6)
    check_unchanged(LinearPackFuse(), given, "Gemm of version 6 broadcasts only where")


def test_row_3_7_an_add_after_gemm_is_left_to_another_pass():
    chain = [("Gemm", "x w", "h"), ("Add", "h b", "y")]
    given = module(chain, W, x=(4, 8))
    context = run_pass(LinearPackFuse(), given)
    assert op_types(given) == ["Linear", "Add"]
    assert any("Add stays: Gemm adds by itself" in message for message in left(context))


@pytest.mark.parametrize(
    ("x", "w"), [((0, 8), (8, 6)), ((5, 0), (0, 6)), ((5, 8), (8, 1)), ((0, 0), (0, 1))]
)
def test_row_3_7_sizes_of_zero_and_one(x, w):
    weights = {"w": normal(*w), "b": normal(w[1], seed=1)}
    proto = model(CHAIN, weights, x=(None, x[1]))
    for mode in ("fast", "exact"):
        on, off = sessions(proto, mode)
        found = on.run(None, {"x": normal(*x)})
        assert found[0].shape == (x[0], w[1])
        assert same_bits(found, off.run(None, {"x": normal(*x)}))
        if x[1] == 0 and x[0]:
            np.testing.assert_array_equal(found[0][0], np.maximum(weights["b"], 0))


def test_row_3_7_inside_a_body():
    numbers = ",".join(map(str, W["w"].reshape(-1)))
    head = '<ir_version: 8, opset_import: ["" : 21]> g (bool c, float[2,8] x) => (float[2,6] y)'
    body = """
    {
      y = If(c) <
        then_branch = t () => (float[2,6] a) { h = MatMul(x, w) a = Relu(h) },
        else_branch = e () => (float[2,6] b) { b = MatMul(x, w) }
      >
    }"""
    proto = onnx.parser.parse_model(f"{head} <float[8,6] w = {{{numbers}}}> {body}")
    given = import_model(proto, [])
    context = PassContext(given)
    LinearPackFuse().run(context)
    inner = [op.op_type for op in given.walk() if hasattr(op, "op_type")]
    assert inner.count("Linear") == 2
    assert "Relu" not in inner


def test_row_3_7_again_changes_nothing():
    given = module(CHAIN, W)
    run_pass(LinearPackFuse(), given)
    check_unchanged(LinearPackFuse(), given)


def test_row_3_7_what_a_file_says_of_a_product_stays():
    proto = model([CHAIN[0], ("Relu", "h", "y")], W)
    proto.graph.node[0].name, proto.graph.node[0].doc_string = "first", "what it is for"
    proto.graph.node[0].metadata_props.add(key="scope", value="layer")
    (product, relu) = foldline.optimize(proto).graph.node
    assert (product.op_type, relu.op_type) == ("MatMul", "Relu")
    assert product.doc_string == "what it is for"
    assert [(p.key, p.value) for p in product.metadata_props] == [("scope", "layer")]


def test_row_3_7_an_optimised_file_stays_as_it_is():
    once = foldline.optimize(model(CHAIN, W))
    assert foldline.optimize(once).SerializeToString() == once.SerializeToString()
