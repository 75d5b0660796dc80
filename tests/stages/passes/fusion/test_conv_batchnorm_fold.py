"""conv-batchnorm-fold, spec runtime-rewrites row 3.4."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from xdsl.dialects.builtin import ModuleOp

import foldline
from foldline.dialects.onnx.tensor import splat
from foldline.stages.passes.fusion.conv_batchnorm_fold import ConvBatchnormFold
from foldline.support.passes import PASSES
from tests.stages.check import Array, check_unchanged, from_onnx, op_types, run_pass
from tests.stages.passes.fusion.fused import file_results, results
from tests.stages.passes.fusion.graphs import (
    check_bits,
    factor,
    model,
    module,
    normal,
    only,
    operand,
    statistics,
)

PASS = ConvBatchnormFold()
NORM = ("BatchNormalization", "c gamma beta mean var", "y")


def graph(
    w: Array,
    x: tuple[Any, ...],
    b: Array | None = None,
    norm: dict[str, Array] | None = None,
    opset: int = 21,
    attributes: dict[str, Any] | None = None,
    **conv: Any,
) -> ModuleOp:
    """A Conv and a BatchNormalization."""
    weights = {"w": w, **(norm or statistics(len(w), dtype=w.dtype))}
    if b is not None:
        weights["b"] = b
    element = onnx.helper.np_dtype_to_tensor_dtype(w.dtype)
    return module(
        [("Conv", "x w" + " b" * (b is not None), "c", conv), (*NORM, attributes or {})],
        weights,
        {"x": x},
        opset=opset,
        element=element,
    )


WAYS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "plain": ((2, 3, 9, 9), (4, 3, 3, 3), {"pads": [1, 1, 1, 1]}),
    "grouped": ((1, 6, 7, 7), (4, 3, 3, 3), {"group": 2}),
    "depthwise": ((1, 8, 9, 9), (8, 1, 3, 3), {"group": 8, "pads": [1, 1, 1, 1]}),
    "one axis": ((2, 5, 20), (6, 5, 3), {"dilations": [2]}),
    "three axes": ((1, 2, 5, 6, 7), (3, 2, 2, 3, 2), {"strides": [1, 2, 1]}),
    "Winograd": ((1, 128, 14, 14), (128, 128, 3, 3), {"pads": [1, 1, 1, 1]}),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("has_bias", [False, True])
def test_row_3_4_weights_are_the_formula_in_float64_rounded_once(way: str, has_bias: bool) -> None:
    x, shape, attributes = WAYS[way]
    w, norm = normal(*shape), statistics(shape[0])
    b = normal(shape[0], seed=3) if has_bias else None
    given = graph(w, x, b, norm, **attributes)
    run_pass(PASS, given)
    conv = only(given, "Conv")
    s = factor(norm)
    before = 0 if b is None else b.astype(np.float64)
    wide = w.astype(np.float64) * s.reshape(-1, *[1] * (w.ndim - 1))
    bias = (before - norm["mean"].astype(np.float64)) * s + norm["beta"].astype(np.float64)
    assert op_types(given) == ["Conv"]
    check_bits(operand(conv, 1), wide.astype(np.float32))
    check_bits(operand(conv, 2), bias.astype(np.float32))


def test_row_3_4_a_bias_near_the_mean_keeps_its_last_bits() -> None:
    # In float32, or as b s + beta - mean s, hundreds of ulp would be lost.
    norm = statistics(64)
    norm["mean"] = (normal(64, seed=5) * 100).astype(np.float32)
    b = np.nextafter(norm["mean"], np.float32(np.inf))
    norm["beta"] = np.zeros(64, np.float32)
    given = graph(normal(64, 2, 1, 1), (1, 2, 4, 4), b, norm)
    run_pass(PASS, given)
    exact = (b.astype(np.float64) - norm["mean"].astype(np.float64)) * factor(norm)
    found = operand(only(given, "Conv"), 2)
    check_bits(found, exact.astype(np.float32))
    narrow = (b * factor(norm).astype(np.float32)) - norm["mean"] * factor(norm).astype(np.float32)
    assert (np.abs(narrow - found) > 100 * np.spacing(np.abs(found))).any()


@pytest.mark.parametrize("way", WAYS)
def test_row_3_4_results_are_within_a_few_ulp_of_the_sums(way: str) -> None:
    x, shape, attributes = WAYS[way]
    w, norm, b = normal(*shape), statistics(shape[0]), normal(shape[0], seed=3)
    feed = {"x": normal(*x, seed=4)}
    given = graph(w, x, b, norm, **attributes)
    sizes = graph(np.abs(w), x, **attributes)
    total = results(PASS, sizes, {"x": np.abs(feed["x"])}).parts
    s = np.abs(factor(norm)).reshape(-1, *[1] * (w.ndim - 2))
    plain = statistics(shape[0])
    plain_s = factor(plain).reshape(s.shape)
    shift = (plain["beta"] - plain["mean"] * factor(plain)).reshape(s.shape)
    products = (total - shift) / plain_s
    ours = np.abs(norm["beta"]) + np.abs((b - norm["mean"]) * factor(norm))
    bound = 4 * np.finfo(np.float32).eps * (s * np.abs(products) + ours.reshape(s.shape))
    # Winograd's transforms lose a few bits of their own.
    results(PASS, given, feed).check(bound * (8 if way == "Winograd" else 1))


@pytest.mark.parametrize("way", ["plain", "grouped", "depthwise", "one axis"])
def test_row_3_4_files_compute_the_same(way: str) -> None:
    x, shape, attributes = WAYS[way]
    given = graph(normal(*shape), x, **attributes)
    file_results(PASS, given, {"x": normal(*x, seed=4)}).check(2e-5)


def test_row_3_4_a_variance_of_zero_leaves_epsilon() -> None:
    norm = statistics(4)
    norm["var"][:] = 0
    w = normal(4, 3, 3, 3)
    given = graph(w, (1, 3, 8, 8), norm=norm, attributes={"epsilon": 0.001})
    run_pass(PASS, given)
    wide = w.astype(np.float64) * factor(norm, 0.001).reshape(-1, 1, 1, 1)
    check_bits(operand(only(given, "Conv"), 1), wide.astype(np.float32))


def test_row_3_4_a_scale_of_zero_gives_zeros() -> None:
    norm = statistics(4)
    norm["gamma"][1] = 0
    given = graph(normal(4, 3, 3, 3), (1, 3, 8, 8), norm=norm)
    run_pass(PASS, given)
    conv = only(given, "Conv")
    assert not operand(conv, 1)[1].any()
    assert operand(conv, 2)[1] == norm["beta"][1]


@pytest.mark.parametrize(
    ("name", "value"),
    [("gamma", 3e38), ("gamma", np.inf), ("mean", np.nan), ("var", -1.0), ("beta", np.inf)],
)
def test_row_3_4_what_is_not_finite_is_refused(name: str, value: float) -> None:
    norm = statistics(4)
    norm[name][2] = value
    norm["var"][0] = 1e-30
    given = graph(normal(4, 3, 3, 3) * 100, (1, 3, 8, 8), norm=norm)
    check_unchanged(PASS, given, "the folded weights are not finite")


def test_row_3_4_no_variance_and_no_epsilon_is_refused() -> None:
    norm = statistics(4)
    norm["var"][0] = 0
    given = graph(normal(4, 3, 3, 3), (1, 3, 8, 8), norm=norm, attributes={"epsilon": 0.0})
    check_unchanged(PASS, given, "the folded weights are not finite")


@pytest.mark.parametrize("opset", [7, 8, 9, 11, 14, 15, 21])
def test_row_3_4_every_form(opset: int) -> None:
    given = graph(normal(4, 3, 3, 3), (1, 3, 8, 8), opset=opset)
    file_results(PASS, given, {"x": normal(1, 3, 8, 8, seed=4)}).check(2e-5)
    assert op_types(given) == ["Conv"]


def test_row_3_4_below_7_is_test_says_that_it_does_not_train() -> None:
    inference = graph(normal(4, 3, 3, 3), (1, 3, 8, 8), opset=6, attributes={"is_test": 1})
    run_pass(PASS, inference)
    assert op_types(inference) == ["Conv"]
    training = graph(normal(4, 3, 3, 3), (1, 3, 8, 8), opset=6)
    check_unchanged(PASS, training, "trains")


def test_row_3_4_statistics_of_each_element_stay() -> None:
    norm = statistics(4)
    given = graph(normal(4, 3, 3, 3), (1, 3, 8, 8), norm=norm, opset=7, attributes={"spatial": 0})
    check_unchanged(PASS, given, "statistics for each element")


def test_row_3_4_training_stays() -> None:
    given = module(
        [
            ("Conv", "x w", "c"),
            ("BatchNormalization", "c gamma beta mean var", "y m v", {"training_mode": 1}),
        ],
        {"w": normal(4, 3, 3, 3), **statistics(4)},
        {"x": (1, 3, 8, 8)},
    )
    check_unchanged(PASS, given, "trains")


def test_row_3_4_double_is_folded_too() -> None:
    w, norm = normal(64, 3, 1, 1, dtype=np.float64), statistics(64, dtype=np.float64)
    b = norm["mean"] * (1 + 1e-9)
    given = graph(w, (1, 3, 8, 8), b, norm)
    run_pass(PASS, given)
    conv, s = only(given, "Conv"), factor(norm)
    check_bits(operand(conv, 1), w * s.reshape(-1, 1, 1, 1))
    check_bits(operand(conv, 2), (b - norm["mean"]) * s + norm["beta"])


def test_row_3_4_half_weights_stay() -> None:
    norm = statistics(4, dtype=np.float16)
    given = graph(normal(4, 3, 3, 3, dtype=np.float16), (1, 3, 8, 8), norm=norm)
    check_unchanged(PASS, given, "the weights are float16")


def test_row_3_4_weights_held_in_a_half_type_stay() -> None:
    given = model(
        [("Conv", "x w", "c"), NORM],
        {"w": normal(16, 8, 3, 3), **statistics(16)},
        {"x": (1, 8, 8, 8)},
    )
    for storage, count in (("Binary16", 2), ("Float32", 1)):
        options = {"weightStorage": storage, "passes.disable": ["conv-activation"]}
        compiled = foldline.compile(given, options=options)
        assert len(compiled.to_proto().graph.node) - _constants(compiled.to_proto()) == count


def _constants(proto: onnx.ModelProto) -> int:
    return sum(node.op_type == "Constant" for node in proto.graph.node)


def test_row_3_4_results_that_others_read_stay() -> None:
    given = module(
        [("Conv", "x w", "c"), NORM],
        {"w": normal(4, 3, 3, 3), **statistics(4)},
        {"x": (1, 3, 8, 8)},
        outputs=("y", "c"),
    )
    check_unchanged(PASS, given, "read outside as well")


@pytest.mark.parametrize("inputs", ["x v", "x w v"])
def test_row_3_4_weights_of_run_time_stay(inputs: str) -> None:
    shape = (4, 3, 3, 3) if inputs == "x v" else (4,)
    given = module(
        [("Conv", inputs, "c"), NORM],
        {"w": normal(4, 3, 3, 3), **statistics(4)},
        {"x": (1, 3, 8, 8), "v": shape},
    )
    check_unchanged(PASS, given, "not constant")


def test_row_3_4_statistics_of_run_time_stay() -> None:
    given = module(
        [("Conv", "x w", "c"), ("BatchNormalization", "c gamma beta mean v", "y")],
        {"w": normal(4, 3, 3, 3), **statistics(4)},
        {"x": (1, 3, 8, 8), "v": (4,)},
    )
    check_unchanged(PASS, given, "the statistics of the BatchNormalization are not constant")


def test_row_3_4_overridable_weights_stay() -> None:
    text = """g (float[1,1,2,2] x, float[1,1,1,1] w = {2}) => (float[1,1,2,2] y)
    <float[1] s = {1}, float[1] t = {2}, float[1] m = {3}, float[1] v = {4}>
    { c = Conv(x, w) y = BatchNormalization(c, s, t, m, v) }"""
    check_unchanged(PASS, from_onnx(text), "the weights of Conv are not constant")


def _shared(count: int) -> ModuleOp:
    """Weights that two convolutions read, one of them before a BatchNormalization."""
    return module(
        [("Conv", "x w", "c"), NORM, ("Conv", "x w", "z")],
        {"w": normal(count, 16, 3, 3), **statistics(count)},
        {"x": (1, 16, 8, 8)},
        outputs=("y", "z"),
    )


def test_large_weights_that_others_read_stay() -> None:
    check_unchanged(PASS, _shared(128), "than fold.maxBytes = 65536")
    given = _shared(128)
    run_pass(ConvBatchnormFold(max_bytes=None), given)
    assert op_types(given) == ["Conv", "Conv"]


def test_small_weights_that_others_read_are_copied() -> None:
    given = _shared(16)
    run_pass(PASS, given)
    assert op_types(given) == ["Conv", "Conv"]


def test_splats_are_not_filled() -> None:
    w = splat(0.5, (128, 64, 3, 3), np.float32)
    check_unchanged(PASS, _with_splat(w, statistics(128)), "written out, in 295424 bytes")
    given = _with_splat(w[:4, :4], statistics(4))
    run_pass(PASS, given)
    assert op_types(given) == ["Conv"]


def _with_splat(w: Array, norm: dict[str, Array]) -> ModuleOp:
    """Weights that ConstantOfShape made."""
    from foldline.stages.context import PassContext
    from foldline.stages.passes.folding.constant_folding import ConstantFolding

    shape = np.array(w.shape, np.int64)
    value = onnx.numpy_helper.from_array(np.array([w.flat[0]], np.float32))
    given = module(
        [("ConstantOfShape", "shape", "w", {"value": value}), ("Conv", "x w", "c"), NORM],
        {"shape": shape, **norm},
        {"x": (1, w.shape[1], 8, 8)},
    )
    ConstantFolding().run(PassContext(given))
    return given


def test_a_splat_stays_one_where_all_channels_are_alike() -> None:
    norm = {name: np.full(128, array[0]) for name, array in statistics(128).items()}
    given = _with_splat(splat(0.5, (128, 64, 3, 3), np.float32), norm)
    run_pass(PASS, given)
    w = operand(only(given, "Conv"), 1)
    assert op_types(given) == ["Conv"]
    assert not any(w.strides)
    assert w.flat[0] == np.float32(0.5 * factor(norm)[0])


def test_weights_and_bias_of_one_number_stay_so_however_many_channels() -> None:
    """Each channel has the same bias: it is no reason to refuse that it would have many."""
    norm = {name: np.full(2048, array[0]) for name, array in statistics(2048).items()}
    given = _with_splat(splat(0.5, (2048, 8, 1, 1), np.float32), norm)
    run_pass(PASS, given)
    assert op_types(given) == ["Conv"]
    conv = only(given, "Conv")
    assert not any(operand(conv, 1).strides)
    assert not any(operand(conv, 2).strides)


def test_a_bias_is_written_out_beside_weights_that_stay_one_number() -> None:
    norm = {name: np.full(2048, array[0]) for name, array in statistics(2048).items()}
    norm["beta"] = normal(2048)
    given = _with_splat(splat(0.5, (2048, 8, 1, 1), np.float32), norm)
    run_pass(PASS, given)
    assert op_types(given) == ["Conv"]
    assert len(set(operand(only(given, "Conv"), 2))) > 2000


def test_sizes_may_be_unknown_or_zero() -> None:
    given = graph(normal(4, 3, 3, 3), ("N", 3, "H", "W"))
    results(PASS, given.clone(), {"x": normal(0, 3, 8, 8)}).check(0)
    results(PASS, given, {"x": normal(2, 3, 9, 7)}).check(2e-5)
    assert op_types(given) == ["Conv"]


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_special_values_go_through(special: float) -> None:
    x = normal(1, 3, 8, 8)
    x[0, 1, 4, 4] = special
    results(PASS, graph(np.abs(normal(4, 3, 3, 3)), (1, 3, 8, 8)), {"x": x}).check(2e-5)


def test_it_works_in_bodies() -> None:
    norm = "s, t, m, v"
    given = from_onnx(f"""g (bool b, float[1,1,2,2] x) => (float[1,1,2,2] y)
    <float[1,1,1,1] w = {{2}}, float[1] s = {{1}}, float[1] t = {{2}}, float[1] m = {{3}},
     float[1] v = {{4}}> {{
        y = If(b) <then_branch = f () => (float[1,1,2,2] u) {{
                       c = Conv(x, w) u = BatchNormalization(c, {norm}) }},
                   else_branch = e () => (float[1,1,2,2] z) {{ z = Identity(x) }}>
    }}""")
    feed = {"b": np.array(True), "x": normal(1, 1, 2, 2)}
    file_results(PASS, given, feed).check(1e-6)
    assert not any(op.name == "onnx.BatchNormalization" for op in given.walk())


def test_row_3_4_exact_mode_leaves_it_alone() -> None:
    given = model(
        [("Conv", "x w", "c"), NORM],
        {"w": normal(4, 3, 3, 3), **statistics(4)},
        {"x": (1, 3, 8, 8)},
    )
    exact = foldline.compile(given, options={"mode": "exact"}).to_proto()
    assert [n.op_type for n in exact.graph.node if n.op_type != "Constant"] == [
        "Conv",
        "BatchNormalization",
    ]
    assert not PASSES["conv-batchnorm-fold"].preserves_bits


def test_it_settles() -> None:
    given = graph(normal(4, 3, 3, 3), (1, 3, 8, 8))
    run_pass(PASS, given)
    assert not run_pass(PASS, given).rewriter.changes
