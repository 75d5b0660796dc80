"""attention-scale-fold: which weights take up a scale, and the values after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.exporter import export_model
from foldline.stages.context import PassContext
from foldline.stages.passes.fusion.attention import Attention
from foldline.stages.passes.fusion.attention_scale_fold import AttentionScaleFold
from foldline.stages.passes.fusion.rotary_embedding import RotaryEmbedding
from tests.stages.check import Array, check_unchanged, op_types, run_pass
from tests.stages.passes.fusion.fused import file_results, results
from tests.stages.passes.fusion.graphs import Node, check_bits, module, normal, only, operand

PASS = AttentionScaleFold()
WIDTH, HEADS, SIZE, SCALE = 12, 3, 4, 0.3
X = normal(2, 5, WIDTH, seed=3)
W, B = normal(WIDTH, WIDTH, seed=4), normal(WIDTH, seed=5)
MATMUL: list[Node] = [("MatMul", "x w", "q")]
ADD: list[Node] = [("MatMul", "x w", "q0"), ("Add", "q0 b", "q")]
PACKED: list[Node] = [
    ("MatMul", "x w3", "qkv0"),
    ("Add", "qkv0 b3", "qkv"),
    ("Split", "qkv thirds", "q k2 v2", {"axis": 2}),
]
TURNED: list[Node] = [
    *(("MatMul", "x w", "q0"), ("Reshape", "q0 split", "q1")),
    ("Transpose", "q1", "q2", {"perm": (0, 2, 1, 3)}),
    *(("Split", "q2 halves", "qa qb", {"axis": 3}), ("Neg", "qb", "qn")),
    *(("Concat", "qn qa", "qt", {"axis": 3}), ("Mul", "q2 c", "qc"), ("Mul", "qt c", "qs")),
    ("Add", "qc qs", "q4"),
]


def attention(
    queries: Sequence[Node],
    keys: str = "k",
    scale: float = SCALE,
    more: Sequence[Node] = (),
    outputs: Sequence[str] = ("y",),
    dtype: Any = np.float32,
    **weights: Array,
) -> ModuleOp:
    """Scaled attention of these queries."""
    heads: Node = ("Reshape", "q split", "q3")
    made = [*queries]
    if not any("q4" in node[2] for node in queries):
        made += [heads, ("Transpose", "q3", "q4", {"perm": (0, 2, 1, 3)})]
    v = "v2" if keys == "k2" else "v"
    made += [
        *(("Reshape", f"{keys} split", "k3"), ("Reshape", f"{v} split", "v3")),
        ("Transpose", "k3", "k4", {"perm": (0, 2, 3, 1)}),
        ("Transpose", "v3", "v4", {"perm": (0, 2, 1, 3)}),
        *(("MatMul", "q4 k4", "s"), ("Mul", "s scale", "t"), ("Softmax", "t", "p")),
        ("MatMul", "p v4", "y"),
        *more,
    ]
    constants: dict[str, Array] = {
        **{"w": W.astype(dtype), "b": B.astype(dtype), "scale": np.asarray(scale, dtype)},
        **{"w3": normal(WIDTH, 3 * WIDTH, seed=8), "b3": normal(3 * WIDTH, seed=9)},
        **{"split": np.array([0, -1, HEADS, SIZE]), "thirds": np.array([WIDTH] * 3)},
        **{"halves": np.array([2, 2]), "c": normal(SIZE), "flat": np.array([-1, WIDTH])},
        **weights,
    }
    used = {name for node in made for name in node[1].split()}
    shapes = {n: ["N", "S", WIDTH] for n in ("x", "k", "v") if n in used}
    built = module(
        made,
        {name: value for name, value in constants.items() if name in used},
        shapes,
        outputs=outputs,
        element=onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)),
    )
    for former in (RotaryEmbedding(), Attention()):
        former.run(PassContext(built))
    return built


def check(given: ModuleOp, dtype: Any = np.float32) -> None:
    """The scale is gone, from the file as well; values are as they were."""
    names = [i.name for i in export_model(given).graph.input]
    feed = {n: normal(2, 5, WIDTH, seed=s, dtype=dtype) for s, n in enumerate(names)}
    muls = sum(n.op_type == "Mul" for n in export_model(given).graph.node)
    limit = 1e-5 if dtype == np.float32 else 1e-12
    results(PASS, given.clone(), feed).check(limit)
    file_results(PASS, given, feed).check(limit)
    assert only(given, "Attention").attribute_values()["scale"] == 1
    assert sum(n.op_type == "Mul" for n in export_model(given).graph.node) == muls - 1


def scaled(array: Array) -> Array:
    """In float64 and rounded once."""
    return (array.astype(np.float64) * float(np.float32(SCALE))).astype(array.dtype)


def test_weights_take_up_the_scale() -> None:
    given = attention(MATMUL)
    check(given)
    check_bits(operand(only(given, "MatMul"), 1), scaled(W))


@pytest.mark.parametrize("turned", [True, False])
def test_weights_and_bias(turned: bool) -> None:
    add = ("Add", "b q0", "q") if turned else ("Add", "q0 b", "q")
    given = attention([ADD[0], add])
    check(given)
    check_bits(operand(only(given, "Add"), 0 if turned else 1), scaled(B))


@pytest.mark.parametrize("transposed", [0, 1])
def test_gemm(transposed: int) -> None:
    queries: list[Node] = [
        ("Reshape", "x flat", "x2"),
        ("Gemm", "x2 w b", "q", {"transB": transposed, "alpha": 0.5, "beta": 3.0}),
    ]
    split = np.array([2, -1, HEADS, SIZE])
    given = attention(queries, split=split)
    check(given)
    check_bits(operand(only(given, "Gemm"), 1), scaled(W))


def test_only_the_columns_of_the_queries() -> None:
    given = attention(PACKED, keys="k2")
    check(given)
    expected = normal(WIDTH, 3 * WIDTH, seed=8)
    expected[:, :WIDTH] = scaled(expected[:, :WIDTH])
    check_bits(operand(only(given, "MatMul"), 1), expected)
    bias = normal(3 * WIDTH, seed=9)
    bias[:WIDTH] = scaled(bias[:WIDTH])
    check_bits(operand(only(given, "Add"), 1), bias)


def test_a_bias_of_one_number_becomes_one_a_column() -> None:
    given = attention(PACKED, keys="k2", b3=np.array(2, np.float32))
    check(given)
    bias = operand(only(given, "Add"), 1)
    assert bias.shape == (3 * WIDTH,)
    assert (bias[WIDTH:] == 2).all()


STACKED: list[Node] = [
    ("MatMul", "x w3", "qkv0"),
    ("Add", "qkv0 b3", "qkv"),
    ("Reshape", "qkv apart", "apart3"),
]
BY_KIND, BY_HEAD = [0, 0, 3, HEADS, SIZE], [0, 0, HEADS, 3, SIZE]


@pytest.mark.parametrize("is_first", [True, False])
def test_queries_from_an_axis_of_queries_keys_and_values(is_first: bool) -> None:
    perm = (2, 0, 3, 1, 4) if is_first else (3, 0, 2, 1, 4)
    queries: list[Node] = [
        *STACKED,
        ("Transpose", "apart3", "front", {"perm": perm}),
        ("Split", "front ones", "q5 k5 v5", {"axis": 0}),
        *(("Squeeze", f"{n}5 zero", f"{n}4" if n == "q" else f"{n}6") for n in "qkv"),
        *(("Transpose", f"{n}6", f"{n}7", {"perm": (0, 2, 1, 3)}) for n in "kv"),
        *(("Reshape", f"{n}7 merge", f"{n}2") for n in "kv"),
    ]
    more = {"ones": np.ones(3, np.int64), "zero": np.array([0]), "merge": np.array([0, 0, WIDTH])}
    apart = np.array(BY_KIND if is_first else BY_HEAD)
    given = attention(queries, keys="k2", apart=apart, **more)
    check(given)
    numbers = np.arange(3 * WIDTH).reshape(apart[2:])
    chosen = (numbers[0] if is_first else numbers[:, 0]).reshape(-1)
    expected = normal(WIDTH, 3 * WIDTH, seed=8)
    expected[:, chosen] = scaled(expected[:, chosen])
    check_bits(operand(only(given, "MatMul"), 1), expected)


def test_through_a_rotary_embedding() -> None:
    given = attention(TURNED)
    assert "RotaryEmbedding" in op_types(given)
    check(given)


def test_float64() -> None:
    check(attention(ADD, scale=0.25, dtype=np.float64), np.float64)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"queries": [("Neg", "x", "q")]}, "the queries are made by Neg"),
        ({"queries": [("MatMul", "x w", "q0"), ("Add", "q0 x", "q")]}, "no bias of a MatMul"),
        (
            {"queries": MATMUL, "more": [("Neg", "w", "z")], "outputs": ("y", "z")},
            "the weights are read by others as well",
        ),
        (
            {"queries": MATMUL, "more": [("Neg", "q", "z")], "outputs": ("y", "z")},
            "the queries are made by something else as well",
        ),
        ({"queries": MATMUL, "w": W.reshape(1, WIDTH, WIDTH)}, "and are no matrix"),
        ({"queries": MATMUL, "w": np.full_like(W, 2e38), "scale": 4.0}, "are not finite"),
        ({"queries": MATMUL, "dtype": np.float16}, "the weights are float16"),
        (
            {"queries": [*PACKED[:2], ("Split", "qkv thirds", "q k2 v2", {"axis": 1})]},
            "the queries are split along axis 1, not along the last",
        ),
    ],
)
def test_left_alone(given: dict[str, Any], reason: str) -> None:
    more = given.pop("more", ())
    if "thirds" in str(given["queries"]):
        given["keys"] = "k2"
        given["split"] = np.array([0, 5, HEADS, 3 * SIZE])
        given["thirds"] = np.array([5, 5, 5])
        more = ()
    check_unchanged(PASS, attention(more=more, **given), reason)


def test_run_twice_changes_nothing_more() -> None:
    given = attention(ADD)
    run_pass(PASS, given)
    assert run_pass(PASS, given).rewriter.changes == 0
