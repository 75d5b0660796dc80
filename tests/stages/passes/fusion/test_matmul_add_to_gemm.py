import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import foldline
from foldline.importer import import_model
from foldline.stages.passes.fusion.matmul_add_to_gemm import MatmulAddToGemm
from tests.stages.check import check_unchanged, nodes, op_types, run_pass, values

FLOAT = onnx.TensorProto.FLOAT


def normal(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def model(nodes, inputs, weights=None, outputs=("y",), opset=21, element=FLOAT):
    """A model of nodes given as (operator, inputs, outputs, attributes)."""
    made = [
        helper.make_node(op, names.split(), results.split(), **dict(rest[0] if rest else {}))
        for op, names, results, *rest in nodes
    ]
    graph = helper.make_graph(
        made,
        "g",
        [helper.make_tensor_value_info(name, element, dims) for name, dims in inputs.items()],
        [helper.make_tensor_value_info(name, element, None) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in (weights or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def module(*args, **keywords):
    return import_model(model(*args, **keywords), [])


CHAIN = [("MatMul", "x w", "h"), ("Add", "h b", "y")]
SIZES = {"x": ("N", 8), "w": (8, 6)}


@pytest.mark.parametrize("c", [(6,), (1, 6), (1,), (1, 1), ()])
@pytest.mark.parametrize("order", ["h b", "b h"])
def test_a_product_of_matrices_and_what_is_added_is_gemm(c, order):
    given = module([CHAIN[0], ("Add", order, "y")], {**SIZES, "b": c})
    feed = {"x": normal(4, 8), "w": normal(8, 6, seed=1), "b": normal(*c, seed=2)}
    before = values(given.clone(), feed)
    run_pass(MatmulAddToGemm(), given)
    assert op_types(given) == ["Gemm"]
    np.testing.assert_allclose(values(given, feed)[0], before[0], rtol=1e-5, atol=1e-5)


def test_rows_that_are_known_may_differ_in_what_is_added():
    given = module(CHAIN, {"x": (4, 8), "w": (8, 6), "b": (4, 6)})
    run_pass(MatmulAddToGemm(), given)
    assert op_types(given) == ["Gemm"]


@pytest.mark.parametrize("attributes", [{}, {"alpha": 0.5, "transB": 1}, {"transA": 1}])
def test_gemm_without_c_takes_one(attributes):
    sizes = {
        "x": (8, 4) if attributes.get("transA") else (4, 8),
        "w": (6, 8) if attributes.get("transB") else (8, 6),
    }
    given = module([("Gemm", "x w", "h", attributes), CHAIN[1]], {**sizes, "b": (6,)})
    feed = {name: normal(*dims) for name, dims in {**sizes, "b": (6,)}.items()}
    before = values(given.clone(), feed)
    run_pass(MatmulAddToGemm(), given)
    (gemm,) = nodes(given)
    assert {name: gemm.value_of(name) for name in attributes} == attributes
    np.testing.assert_allclose(values(given, feed)[0], before[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        ({"x": ("N", "S", 8), "w": (8, 6), "b": (6,)}, "the factors have rank 3 and 2, not 2"),
        ({"x": None, "w": (8, 6), "b": (6,)}, "the factors have rank unknown and 2, not 2"),
        ({"x": (4, 8), "w": (8,), "b": (4,)}, "the factors have rank 2 and 1, not 2"),
        ({**SIZES, "b": (3, 1, 6)}, "not known to have at most two axes"),
        ({**SIZES, "b": None}, "not known to have at most two axes"),
        ({**SIZES, "b": ("N", 6)}, "what is added has sizes ['N', 6]"),
        ({"x": (1, 8), "w": (8, 6), "b": (3, 6)}, "what is added has sizes [3, 6]"),
        ({"x": (4, 8), "w": (8, "M"), "b": (6,)}, "what is added has sizes [6]"),
        ({"x": (4, 8), "w": (8, 1), "b": (6,)}, "what is added has sizes [6]"),
    ],
)
def test_what_is_not_proven_stays(inputs, reason):
    check_unchanged(MatmulAddToGemm(), module(CHAIN, inputs), reason)


def test_older_versions_stay():
    given = module([CHAIN[0], ("Add", "h b", "y", {"broadcast": 1})], {**SIZES, "b": (6,)}, opset=6)
    check_unchanged(MatmulAddToGemm(), given, "version 6 broadcast only where attributes say so")


def test_types_that_gemm_lacks_stay():
    inputs = {**SIZES, "b": (6,)}
    given = module(CHAIN, inputs, element=onnx.TensorProto.INT32)
    check_unchanged(MatmulAddToGemm(), given, "takes no such products")


def test_a_product_that_others_read_stays():
    given = module(CHAIN, {**SIZES, "b": (6,)}, outputs=("y", "h"))
    check_unchanged(MatmulAddToGemm(), given, "read outside as well")


def test_a_product_added_to_itself_stays():
    given = module([CHAIN[0], ("Add", "h h", "y")], SIZES)
    check_unchanged(MatmulAddToGemm(), given, "the product is added to itself")


def test_halves_are_joined_as_well():
    inputs = {**SIZES, "b": (6,)}
    given = module(CHAIN, inputs, element=onnx.TensorProto.FLOAT16)
    run_pass(MatmulAddToGemm(), given)
    assert op_types(given) == ["Gemm"]


def test_files_hold_one_node_where_the_rank_is_proven():
    """Not at O2, where other runtimes are to compute the same bits."""
    chain = [*CHAIN, ("Relu", "y", "z")]
    weights = {"w": normal(8, 6), "b": normal(6)}
    proto = model(chain, {"x": ("N", 8)}, weights, outputs=("z",))
    written = {
        level: [n.op_type for n in foldline.optimize(proto, options={"oo.level": level}).graph.node]
        for level in ("O2", "O3")
    }
    assert written == {"O2": ["MatMul", "Add", "Relu"], "O3": ["Gemm", "Relu"]}
