"""qkv-merge: one product for queries, keys and values, where nothing is held twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.exporter import export_model
from foldline.stages.context import PassContext
from foldline.stages.passes.folding.constant_folding import ConstantFolding
from foldline.stages.passes.fusion.attention import Attention
from foldline.stages.passes.fusion.qkv_merge import QkvMerge
from foldline.support.passes import PASSES
from tests.stages.check import Array, check_unchanged, op_types, run_pass
from tests.stages.passes.fusion.fused import file_results, results
from tests.stages.passes.fusion.graphs import Node, module, normal, only, operand

PASS = QkvMerge()
WIDTH = 12
FEED = {"x": normal(2, 5, WIDTH, seed=5), "e": normal(2, 5, WIDTH, seed=6)}


def attention(
    names: str = "q k v",
    bias: str = "q k v",
    sources: dict[str, str] | None = None,
    gemm: dict[str, Any] | None = None,
    more: Sequence[Node] = (),
    outputs: Sequence[str] = ("y",),
    weights: dict[str, Array] | None = None,
    dtype: Any = np.float32,
) -> ModuleOp:
    """Fused attention of products; those not in `names` have no weights, but are inputs."""
    made: list[Node] = []
    constants: dict[str, Array] = {"split": np.array([0, -1, 3, 4])}
    for seed, name in enumerate("qkv"):
        source = (sources or {}).get(name, "x")
        constants[f"w{name}"] = normal(WIDTH, WIDTH, seed=seed, dtype=dtype)
        constants[f"b{name}"] = normal(WIDTH, seed=seed + 7, dtype=dtype)
        if name not in names:
            made.append(("Identity", source, f"{name}2"))
        elif gemm is not None:
            c = f" b{name}" if name in bias else ""
            made.append(("Gemm", f"{source}2d w{name}{c}", f"{name}2", gemm))
        elif name in bias:
            made += [
                ("MatMul", f"{source} w{name}", f"{name}1"),
                ("Add", f"b{name} {name}1", f"{name}2"),
            ]
        else:
            made.append(("MatMul", f"{source} w{name}", f"{name}2"))
        made.append(("Reshape", f"{name}2 split", f"{name}3"))
        perm = (0, 2, 3, 1) if name == "k" else (0, 2, 1, 3)
        made.append(("Transpose", f"{name}3", f"{name}4", {"perm": perm}))
    if gemm is not None:
        constants["flat"], constants["split"] = np.array([-1, WIDTH]), np.array([2, -1, 3, 4])
        made = [("Reshape", "x flat", "x2d"), ("Reshape", "e flat", "e2d"), *made]
    made += [
        ("MatMul", "q4 k4", "s"),
        ("Softmax", "s", "p"),
        ("MatMul", "p v4", "y"),
        *more,
    ]
    constants.update(weights or {})
    used = {name for node in made for name in node[1].split()}
    kept = {name: value for name, value in constants.items() if name in used}
    element = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    shapes = {name: ["N", "S", WIDTH] for name in ("x", "e") if name in used}
    built = module(made, kept, shapes, outputs=outputs, element=element)
    Attention().run(PassContext(built))
    return built


def feed(given: ModuleOp, dtype: Any = np.float32) -> dict[str, Array]:
    inputs = [i.name for i in export_model(given).graph.input]
    return {name: FEED[name].astype(dtype) for name in inputs}


def check(given: ModuleOp, expected: list[str], sizes: Sequence[int] = (WIDTH,) * 3) -> ModuleOp:
    """The operators that are left before Attention, and values as they were."""
    before = len(op_types(given))
    results(PASS, given.clone(), feed(given)).check(2e-5)
    file_results(PASS, given, feed(given)).check(2e-5)
    found = [name for name in op_types(given) if name not in ("Reshape", "Identity")]
    assert found == [*expected, "Split", "Attention"]
    split = only(given, "Split")
    np.testing.assert_array_equal(operand(split, 1), sizes)
    assert len(op_types(given)) < before
    return given


def test_products_and_biases_are_one_each() -> None:
    merged = check(attention(), ["MatMul", "Add"])
    weights = operand(only(merged, "MatMul"), 1)
    columns = [normal(WIDTH, WIDTH, seed=seed) for seed in range(3)]
    np.testing.assert_array_equal(weights, np.concatenate(columns, 1))
    biases = [normal(WIDTH, seed=seed) for seed in (7, 8, 9)]
    np.testing.assert_array_equal(operand(only(merged, "Add"), 1), np.concatenate(biases))


def test_without_bias() -> None:
    check(attention(bias=""), ["MatMul"])


def test_a_bias_that_is_missing_is_zero() -> None:
    merged = check(attention(bias="q v"), ["MatMul", "Add"])
    assert not operand(only(merged, "Add"), 1)[WIDTH : 2 * WIDTH].any()


def test_a_bias_of_one_number_is_that_of_every_column() -> None:
    merged = check(attention(weights={"bk": np.array(3, np.float32)}), ["MatMul", "Add"])
    assert (operand(only(merged, "Add"), 1)[WIDTH : 2 * WIDTH] == 3).all()


@pytest.mark.parametrize("transposed", [0, 1])
@pytest.mark.parametrize("bias", ["q k v", "q", ""])
def test_gemm(transposed: int, bias: str) -> None:
    check(attention(gemm={"transB": transposed, "alpha": 0.5, "beta": 2.0}, bias=bias), ["Gemm"])


def test_keys_and_values_of_something_else_than_queries() -> None:
    given = attention(sources={"k": "e", "v": "e"})
    results(PASS, given, feed(given)).check(2e-5)
    assert op_types(given).count("MatMul") == 2
    np.testing.assert_array_equal(operand(only(given, "Split"), 1), [WIDTH] * 2)


def test_two_products_without_bias_stay_as_nothing_is_saved() -> None:
    check_unchanged(PASS, attention(sources={"k": "e", "v": "e"}, bias=""))


def test_outputs_keep_their_names() -> None:
    given = attention(outputs=("y", "k2"))
    results(PASS, given.clone(), feed(given)).check(2e-5)
    run_pass(PASS, given)
    assert [output.name for output in export_model(given).graph.output] == ["y", "k2"]
    assert op_types(given).count("MatMul") == 1


def test_a_product_that_is_read_before_its_bias_keeps_it() -> None:
    given = attention(more=[("Relu", "q1", "z")], outputs=("y", "z"))
    results(PASS, given.clone(), feed(given)).check(2e-5)
    run_pass(PASS, given)
    assert op_types(given).count("Add") == 2


@pytest.mark.parametrize("dtype", [np.float64, np.float16])
def test_other_floats(dtype: Any) -> None:
    given = attention(dtype=dtype)
    limit = 1e-12 if dtype == np.float64 else 0.1
    results(PASS, given, feed(given, dtype)).check(limit)
    assert op_types(given).count("MatMul") == 1


def test_weights_that_others_read_would_be_held_twice() -> None:
    given = attention(more=[("Neg", "wk", "z")], outputs=("y", "z"))
    check_unchanged(PASS, given, "would be held twice")


def test_one_repeated_element_is_not_written_out() -> None:
    inputs = {"x": ["N", "S", 400]}
    nodes: list[Node] = [("MatMul", f"x w{n}", n) for n in "qkv"]
    nodes += [("Transpose", "k", "kt", {"perm": (0, 2, 1)}), ("MatMul", "q kt", "s")]
    nodes += [("Softmax", "s", "p"), ("MatMul", "p v", "y")]
    shape = np.array([400, 400])
    value = onnx.numpy_helper.from_array(np.array([0.5], np.float32))
    made: list[Node] = [("ConstantOfShape", "shape", f"w{n}", {"value": value}) for n in "qkv"]
    given = module([*made, *nodes], {"shape": shape}, inputs)
    ConstantFolding().run(PassContext(given))
    Attention().run(PassContext(given))
    check_unchanged(PASS, given, "bytes is larger than its inputs of 12 bytes")


def test_weights_of_the_run_stay() -> None:
    check_unchanged(PASS, attention(names="q k", bias=""))


def test_products_without_attention_stay() -> None:
    nodes: list[Node] = [("MatMul", f"x w{n}", n) for n in "qkv"]
    nodes += [("Add", "q k", "a"), ("Add", "a v", "y")]
    weights = {f"w{n}": normal(WIDTH, WIDTH) for n in "qkv"}
    check_unchanged(PASS, module(nodes, weights, {"x": ["N", "S", WIDTH]}))


def test_run_twice_changes_nothing_more() -> None:
    given = attention()
    run_pass(PASS, given)
    assert run_pass(PASS, given).rewriter.changes == 0


def test_it_comes_after_attention_and_moves_bits() -> None:
    assert PASSES["qkv-merge"].runs_after == ("attention",)
    assert not PASSES["qkv-merge"].preserves_bits
