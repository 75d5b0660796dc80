"""Spec runtime-rewrites 3.7 (packing), 6 T8 and T9, 7 H2-H4."""

import gc
import weakref

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import foldline
from foldline.dialects.onnx.structure import InitializerOp
from foldline.dialects.plan import CallOp, ConstantOp

FLOAT = onnx.TensorProto.FLOAT
HALVES = {"Binary16": np.float16, "BFloat16": ml_dtypes.bfloat16}
by_storage = pytest.mark.parametrize("storage", HALVES)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def model(nodes, weights, x, outputs=("y",), opset=21):
    """A model of nodes given as (operator, inputs, outputs, attributes)."""
    made = [
        helper.make_node(op, inputs.split(), results.split(), **dict(rest[0] if rest else {}))
        for op, inputs, results, *rest in nodes
    ]
    graph = helper.make_graph(
        made,
        "g",
        [helper.make_tensor_value_info("x", FLOAT, x)],
        [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def calls(session):
    return [op for op in session.program.source.walk() if isinstance(op, CallOp)]


def constants(session):
    found = [op for op in session.program.source.walk() if isinstance(op, ConstantOp)]
    return [op.value.array for op in found]


def bits(arrays):
    return [array.view(np.uint32).tolist() for array in arrays]


# Packing


TIED = [
    ("Gemm", "x w", "h", {"transB": 1}),
    ("Gemm", "x w", "k", {"transB": 1}),
    ("Add", "h k", "y"),
]


@pytest.mark.parametrize("level", ["O0", "O2", "O3"])
def test_row_3_7_a_matrix_is_packed_once_for_all_its_readers(level):
    nodes = [TIED[0], ("Gemm", "x w c", "k", {"transB": 1}), TIED[2]]
    proto = model(nodes, {"w": normal(6, 8), "c": normal(6)}, (4, 8))
    session = foldline.compile(proto, options={"oo.level": level}).session()
    matrices = [array for array in constants(session) if array.ndim == 2]
    assert [array.shape for array in matrices] == [(8, 6)]
    assert matrices[0].flags.c_contiguous
    readers = [call for call in calls(session) if call.operator[1] in ("Gemm", "Linear")]
    assert len(readers) == 2
    assert readers[0].arguments[1] is readers[1].arguments[1]
    expected = normal(4, 8) @ normal(6, 8).T
    (y,) = session.run(None, {"x": normal(4, 8)})
    np.testing.assert_allclose(y, expected + expected + normal(6), rtol=1e-4, atol=1e-5)


def test_a_matrix_that_is_read_both_ways_is_there_twice():
    nodes = [TIED[0], ("MatMul", "h w", "y")]
    session = foldline.compile(model(nodes, {"w": normal(6, 8)}, (4, 8))).session()
    assert sorted(a.shape for a in constants(session) if a.ndim == 2) == [(6, 8), (8, 6)]
    (y,) = session.run(None, {"x": normal(4, 8)})
    np.testing.assert_allclose(
        y, normal(4, 8) @ normal(6, 8).T @ normal(6, 8), rtol=1e-4, atol=1e-5
    )


def test_bodies_share_what_is_packed():
    """One array for the graph and for a body, which holds constants of its own."""
    branch = helper.make_graph(
        [helper.make_node("Gemm", ["x", "w"], ["b"], transB=1)],
        "branch",
        [],
        [helper.make_tensor_value_info("b", FLOAT, None)],
    )
    proto = model(TIED[:1], {"w": normal(6, 8)}, (4, 8), ("h",))
    proto.graph.input.append(helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, ()))
    proto.graph.node.append(
        helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    )
    proto.graph.output.append(helper.make_tensor_value_info("y", FLOAT, None))
    session = foldline.compile(proto, options={"oo.level": "O0"}).session()
    matrices = [array for array in constants(session) if array.ndim == 2]
    assert len(matrices) == 3
    assert all(array.shape == (8, 6) and array is matrices[0] for array in matrices)
    h, y = session.run(None, {"x": normal(4, 8), "c": np.array(True)})
    assert bits([h]) == bits([y])


def test_a_matrix_in_the_order_of_its_product_is_not_copied():
    compiled = foldline.compile(model([("MatMul", "x w", "y")], {"w": normal(8, 6)}, (4, 8)))
    original = weight_of(compiled)
    assert any(np.shares_memory(array, original) for array in constants(compiled.session()))


def weight_of(compiled):
    """The array of the largest constant."""
    tensors = [op.properties.get("value") for op in compiled.module.walk()]
    arrays = [tensor.array for tensor in tensors if hasattr(tensor, "array")]
    return max(arrays, key=lambda array: array.size)


@pytest.mark.parametrize("plans", [0, 3])
def test_t8_the_original_goes_once_it_is_packed(plans):
    compiled = foldline.compile(model(TIED[:1], {"w": normal(60, 80)}, ("N", 80), ("h",)))
    original = weight_of(compiled)
    assert original.shape == (60, 80)
    dead = weakref.ref(original)
    session = compiled.session()
    for _ in range(plans):
        session.run(None, {"x": normal(40, 80)})
    del original
    assert dead() is None
    np.testing.assert_array_equal(weight_of(compiled), normal(60, 80))
    del compiled
    gc.collect()
    for rows in (1, 40, 40, 40):
        (h,) = session.run(None, {"x": normal(rows, 80)})
        np.testing.assert_allclose(h, normal(rows, 80) @ normal(60, 80).T, rtol=1e-3, atol=1e-4)


def test_t8_what_stays_weighs_what_the_originals_did():
    compiled = foldline.compile(model(TIED[:1], {"w": normal(60, 80)}, ("N", 80), ("h",)))
    session = compiled.session()
    assert sum(array.nbytes for array in constants(session)) == 60 * 80 * 4


def test_t9_the_model_and_its_weights_are_not_written():
    proto = model(TIED, {"w": normal(6, 8)}, (4, 8))
    before = proto.SerializeToString()
    for storage in ("Float32", *HALVES):
        compiled = foldline.compile(proto, options={"weightStorage": storage})
        compiled.session().run(None, {"x": normal(4, 8)})
        np.testing.assert_array_equal(
            numpy_helper.to_array(compiled.to_proto().graph.initializer[0]), normal(6, 8)
        )
    assert proto.SerializeToString() == before


# Compact weights


def network(weights):
    """A convolution, a product and a Gemm, each with an activation."""
    nodes = [
        ("Conv", "x cw", "c"),
        ("Relu", "c", "r"),
        ("Flatten", "r", "f"),
        ("MatMul", "f mw", "m"),
        ("Tanh", "m", "t"),
        ("Gemm", "t gw gb", "y", {"transB": 1}),
    ]
    return model(nodes, weights, ("N", 4, 8, 8))


WEIGHTS = {
    "cw": normal(32, 4, 3, 3, seed=1),
    "mw": normal(32 * 36, 40, seed=2),
    "gw": normal(40, 40, seed=3),
    "gb": normal(40, seed=4),
}
FEED = {"x": normal(2, 4, 8, 8, seed=5)}


def rounded(name, array, storage):
    return array if name == "gb" else array.astype(HALVES[storage]).astype(np.float32)


@by_storage
@pytest.mark.parametrize("level", ["O0", "O1", "O2", "O3"])
@pytest.mark.parametrize("mode", ["fast", "exact"])
def test_h4_the_bits_are_those_of_weights_that_were_rounded_before(storage, level, mode):
    options = {"oo.level": level, "mode": mode}
    compact = foldline.compile(network(WEIGHTS), options={**options, "weightStorage": storage})
    before = {name: rounded(name, array, storage) for name, array in WEIGHTS.items()}
    wide = foldline.compile(network(before), options=options)
    session, expected = compact.session(), wide.session().run(None, FEED)
    for _ in range(4):
        assert bits(session.run(None, FEED)) == bits(expected)
    plain = foldline.compile(network(WEIGHTS), options=options).session().run(None, FEED)
    assert bits(plain) != bits(expected)


@by_storage
def test_h4_also_where_a_convolution_transforms_its_weights(storage):
    weights = {"cw": normal(64, 64, 3, 3)}
    proto, feed = model([("Conv", "x cw", "y")], weights, ("N", 64, 30, 30)), normal(1, 64, 30, 30)
    session = foldline.compile(proto, options={"weightStorage": storage}).session()
    before = {"cw": rounded("cw", weights["cw"], storage)}
    wide = foldline.compile(model([("Conv", "x cw", "y")], before, ("N", 64, 30, 30))).session()
    for _ in range(3):
        assert bits(session.run(None, {"x": feed})) == bits(wide.run(None, {"x": feed}))


@by_storage
def test_h2_compact_weights_are_held_in_half_types_and_never_packed(storage):
    compiled = foldline.compile(network(WEIGHTS), options={"weightStorage": storage})
    session = compiled.session()
    held = {array.shape: array.dtype for array in constants(session)}
    for name in ("cw", "mw", "gw"):
        assert held[WEIGHTS[name].shape] == HALVES[storage]
    for _ in range(3):
        session.run(None, FEED)
    widening = [call for call in calls(session) if call.positions("widens")]
    assert sorted(call.operator[1] for call in widening) == ["Conv", "Gemm", "MatMul"]
    assert not any(call.operator[1] == "Linear" for call in calls(session))
    for pool in session.program.plans():
        kept = [value for value in pool.plan.start if isinstance(value, np.ndarray)]
        assert not any(v.dtype == np.float32 and v.size >= 1024 for v in kept)


@by_storage
@pytest.mark.parametrize(("columns", "is_compact"), [(33, False), (32, True)])
def test_h3_the_threshold(storage, columns, is_compact):
    """31 * 33 is 1023, 32 * 32 is 1024."""
    rows = 1023 // columns if not is_compact else 32
    weights = {"w": normal(rows, columns)}
    proto = model([("MatMul", "x w", "y")], weights, ("N", rows))
    session = foldline.compile(proto, options={"weightStorage": storage}).session()
    (call,) = calls(session)
    assert call.operator[1] == ("MatMul" if is_compact else "Linear")
    assert constants(session)[0].dtype == (HALVES[storage] if is_compact else np.float32)


NOT_WEIGHTS = [
    [("MatMul", "x w", "h"), ("Add", "h w", "y")],
    [("MatMul", "x w", "h"), ("MatMul", "w h", "y")],
    [("Transpose", "w", "t"), ("Identity", "w", "i"), ("Add", "x t", "j"), ("Sub", "j i", "y")],
]


@by_storage
@pytest.mark.parametrize("nodes", NOT_WEIGHTS)
@pytest.mark.parametrize("level", ["O0", "O3"])
def test_h4_what_is_more_than_weights_is_not_compact(storage, nodes, level):
    options = {"weightStorage": storage, "oo.level": level}
    proto = model(nodes, {"w": normal(32, 32)}, (32, 32))
    session = foldline.compile(proto, options=options).session()
    assert all(array.dtype == np.float32 for array in constants(session))
    plain = foldline.compile(proto, options={"oo.level": level}).session()
    feed = {"x": normal(32, 32, seed=1)}
    assert bits(session.run(None, feed)) == bits(plain.run(None, feed))


@pytest.mark.parametrize(
    ("value", "storage", "is_compact"),
    [
        (65504.0, "Binary16", True),
        (65519.0, "Binary16", True),
        (65520.0, "Binary16", False),
        (65520.0, "BFloat16", True),
        (3.39e38, "BFloat16", True),
        (3.4e38, "BFloat16", False),
        (np.nan, "Binary16", False),
        (np.inf, "BFloat16", False),
    ],
)
def test_h4_weights_stay_finite(value, storage, is_compact):
    w = normal(32, 32)
    w[3, 4] = value
    proto = model([("MatMul", "x w", "y")], {"w": w}, (2, 32))
    session = foldline.compile(proto, options={"weightStorage": storage}).session()
    assert (constants(session)[0].dtype != np.float32) == is_compact


@by_storage
def test_h2_other_rewrites_go_on_around_compact_weights(storage):
    """Conv and its activation become one, a BatchNormalization is not folded into the weights."""
    nodes = [
        ("Conv", "x cw", "c"),
        ("BatchNormalization", "c one one one one", "n"),
        ("Relu", "n", "y"),
    ]
    weights = {"cw": normal(32, 4, 3, 3), "one": np.ones(32, np.float32)}
    proto = model(nodes, weights, ("N", 4, 8, 8))
    compiled = foldline.compile(proto, options={"weightStorage": storage})
    assert any("BatchNormalization" in op.name for op in compiled.module.walk())
    assert any("held in a half type" in remark.message for remark in compiled.report.remarks)
    plain = foldline.compile(proto)
    assert not any("BatchNormalization" in op.name for op in plain.module.walk())


@by_storage
@pytest.mark.parametrize("threads", [1, 2, 8])
def test_h4_compact_weights_are_deterministic(storage, threads):
    options = {"weightStorage": storage, "mode": "exact"}
    compiled = foldline.compile(network(WEIGHTS), options=options)
    first = foldline.compile(network(WEIGHTS), options=options).session(1).run(None, FEED)
    assert bits(compiled.session(threads).run(None, FEED)) == bits(first)


def test_a_program_shows_what_it_widens():
    compiled = foldline.compile(network(WEIGHTS), options={"weightStorage": "Binary16"})
    assert "widens" in compiled.session().program.text()


@pytest.mark.parametrize("is_external", [False, True])
def test_the_model_and_what_is_packed_share_memory(is_external, tmp_path):
    weights = {"w": normal(64, 32)}
    proto = model([("Gemm", "x w", "y", {"transB": 1})], weights, [3, 32])
    path = tmp_path / "m.onnx"
    onnx.save(proto, path, save_as_external_data=is_external, size_threshold=0)
    compiled = foldline.compile(path)
    data = foldline.compile(path).to_bytes()
    (packed,) = constants(compiled.session())
    (kept,) = [op.value.array for op in compiled.module.walk() if isinstance(op, InitializerOp)]
    assert packed.shape == (32, 64)
    # What stands in a file of its own takes no memory there.
    assert np.shares_memory(packed, kept) is not is_external
    assert not kept.flags.writeable
    np.testing.assert_array_equal(kept, weights["w"])
    assert compiled.to_bytes() == data
