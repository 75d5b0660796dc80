"""conv-activation, spec runtime-rewrites row 3.8."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import foldline
from foldline.dialects.onnx.op import NodeOp, result_names
from foldline.dialects.onnx.types import dims_of
from foldline.exporter import export_model
from foldline.kernels.registry import GRADES
from foldline.lowering import lower
from foldline.session import Session
from foldline.stages.context import PassContext
from foldline.stages.passes.fusion.conv_activation import ConvActivation
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.support.passes import PASSES
from tests.stages.check import Array, check_unchanged, from_onnx, nodes, op_types, run_pass, values
from tests.stages.passes.fusion.graphs import Node, check_bits, model, module, normal

PASS = ConvActivation()
WAYS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "1x1": ((1, 20, 9, 9), (7, 20, 1, 1), {}),
    "grouped": ((2, 6, 9, 9), (9, 2, 3, 3), {"group": 3}),
    "depthwise": ((1, 16, 9, 9), (16, 1, 3, 3), {"group": 16, "pads": [1, 1, 1, 1]}),
    "dilated": ((1, 3, 9, 9), (4, 3, 3, 3), {"dilations": [2, 2]}),
    "asymmetric pads": ((1, 3, 9, 9), (4, 3, 3, 3), {"pads": [2, 0, 1, 3]}),
    "one axis": ((2, 5, 20), (6, 5, 3), {"strides": [2]}),
    "SAME_UPPER": ((1, 3, 9, 9), (4, 3, 2, 2), {"auto_pad": "SAME_UPPER"}),
}
ACTIVATIONS: dict[str, Node] = {
    "Relu": ("Relu", "c", "y"),
    "Clip": ("Clip", "c low high", "y"),
    "Clip with bounds that cross": ("Clip", "c high low", "y"),
    "Clip at NaN": ("Clip", "c nan high", "y"),
    "HardSwish": ("HardSwish", "c", "y"),
    "HardSigmoid": ("HardSigmoid", "c", "y", {"alpha": 0.25, "beta": 0.25}),
    "Sigmoid": ("Sigmoid", "c", "y"),
    "Gelu": ("Gelu", "c", "y"),
    "Gelu by tanh": ("Gelu", "c", "y", {"approximate": "tanh"}),
    "Tanh": ("Tanh", "c", "y"),
    "LeakyRelu": ("LeakyRelu", "c", "y", {"alpha": 0.125}),
}
BOUNDS = {
    name: np.array(v, np.float32) for name, v in (("low", -0.5), ("high", 1), ("nan", np.nan))
}


def graph(way: str, tail: list[Node], op_type: str = "Conv", **given: Any) -> ModuleOp:
    x, w, attributes = WAYS[way]
    weights = {"w": normal(*w), "b": normal(w[0], seed=3), **BOUNDS}
    inputs: dict[str, Any] = {"x": x, **given.pop("inputs", {})}
    conv = (op_type, "x w b", "c", attributes)
    return module([conv, *tail], weights, inputs, **given)


def session(given: ModuleOp, mode: str, threads: int = 1) -> Session:
    return Session(lower(given, grades=GRADES[mode]), threads)


def check_both(given: ModuleOp, feed: dict[str, Array], has_oracle: bool = True) -> list[NodeOp]:
    """The pass changes no bit in either mode, nor the nodes that files get."""
    before = {mode: session(given.clone(), mode).run(None, feed) for mode in ("fast", "exact")}
    count = len(op_types(given))
    oracle = values(given.clone(), feed) if has_oracle else []
    assert run_pass(PASS, given).rewriter.changes
    for mode, wanted in before.items():
        for threads in (1, 3):
            found = session(given.clone(), mode, threads).run(None, feed)
            for old, new in zip(wanted, found, strict=True):
                check_bits(new, old)
    for old, new in zip(oracle, values(given, feed) if has_oracle else [], strict=True):
        check_bits(new, old)
    exported = [n for n in export_model(given).graph.node if n.op_type != "Constant"]
    assert len(exported) == count
    return [op for op in nodes(given) if op.op_type in ("Conv", "ConvTranspose")]


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("way", WAYS)
def test_row_3_8_bits_are_the_same_in_both_modes(way: str, name: str) -> None:
    x = normal(*WAYS[way][0], seed=4)
    x.flat[:3] = np.nan, np.inf, -np.inf
    given = graph(way, [ACTIVATIONS[name]])
    (conv,) = check_both(given, {"x": x})
    assert conv.domain == "foldline"
    assert op_types(given) == ["Conv"]


def test_row_3_8_a_bound_may_be_absent() -> None:
    given = from_onnx("""g (float[1,1,4,4] x, float[2,1,2,2] w) => (float[1,2,3,3] y)
    <float high = {0.5}> { c = Conv(x, w) y = Clip(c, , high) }""")
    (conv,) = check_both(given, {"x": normal(1, 1, 4, 4), "w": normal(2, 1, 2, 2)})
    assert conv.attribute_values()["activation_params"] == (-np.inf, 0.5)
    (clip,) = (n for n in export_model(given).graph.node if n.op_type == "Clip")
    assert [bool(name) for name in clip.input] == [True, False, True]


SUMS: dict[str, list[Node]] = {
    "sum and Relu": [("Add", "c z", "d"), ("Relu", "d", "y")],
    "sum from the left and Relu": [("Add", "z c", "d"), ("Relu", "d", "y")],
    "sum alone": [("Add", "c z", "y")],
    "Sum of two and HardSwish": [("Sum", "z c", "d"), ("HardSwish", "d", "y")],
}


@pytest.mark.parametrize("way", ["1x1", "grouped", "depthwise", "one axis"])
@pytest.mark.parametrize("tail", SUMS)
def test_row_3_8_what_is_added_goes_along(tail: str, way: str) -> None:
    plain = graph(way, [("Identity", "c", "y")])
    x = normal(*WAYS[way][0], seed=4)
    shape = session(plain, "fast").run(None, {"x": x})[0].shape
    z = normal(*shape, seed=5)
    z.flat[:3] = np.inf, -0.0, np.nan
    given = graph(way, SUMS[tail], inputs={"z": shape})
    (conv,) = check_both(given, {"x": x, "z": z})
    assert len(conv.operands) == 4
    assert op_types(given) == ["Conv"]


@pytest.mark.parametrize("tail", [*SUMS.values(), [("Relu", "c", "y")], [("Sigmoid", "c", "y")]])
def test_row_3_8_transposed_convolutions_too(tail: list[Node]) -> None:
    nodes_: list[Node] = [("ConvTranspose", "x w", "c", {"strides": [2, 2], "group": 2}), *tail]
    has_sum = tail[0][0] in ("Add", "Sum")
    inputs = {"x": (1, 4, 5, 5), **({"z": (1, 6, 11, 11)} if has_sum else {})}
    given = module(nodes_, {"w": normal(4, 3, 3, 3)}, inputs)
    feed = {name: normal(*shape, seed=4) for name, shape in inputs.items()}
    (conv,) = check_both(given, feed)
    assert conv.op_type == "ConvTranspose"
    assert conv.domain == "foldline"


def test_shapes_are_read_off_the_new_result() -> None:
    text = """g (float[N,2,H,W] x, float[3,2,1,1] w) => (float[A,B,C,D] y, int64[4] s, int64[2] t)
    { c = Conv(x, w) s = Shape(c) y = Relu(c) t = Shape <start = 2> (c) }"""
    given = from_onnx(text)
    feed = {"x": normal(2, 2, 5, 4), "w": normal(3, 2, 1, 1)}
    check_both(given, feed)
    assert [result_names(op)[0] for op in nodes(given)] == ["y", "s", "t"]


@pytest.mark.parametrize("name", ["Gelu", "Swish", "HardSwish"])
def test_fused_activations_are_taken_too(name: str) -> None:
    x, w = normal(1, 3, 9, 9, seed=4), normal(4, 3, 3, 3)
    opset = 13
    tails: dict[str, list[Node]] = {
        "Swish": [("Sigmoid", "c", "s"), ("Mul", "c s", "y")],
        "HardSwish": [("HardSigmoid", "c", "s", {"alpha": 1 / 6}), ("Mul", "c s", "y")],
        "Gelu": [
            ("Div", "c root", "d"),
            ("Erf", "d", "e"),
            ("Add", "e one", "f"),
            ("Mul", "c f", "g"),
            ("Mul", "g half", "y"),
        ],
    }
    numbers = {"root": np.sqrt(2), "one": 1, "half": 0.5}
    constants = {k: np.array(v, np.float32) for k, v in numbers.items()}
    given = model(
        [("Conv", "x w", "c"), *tails[name]], {"w": w, **constants}, {"x": x.shape}, opset=opset
    )
    compiled = foldline.compile(given)
    (conv,) = [op for op in nodes(compiled.module) if op.op_type != "Constant"]
    assert conv.attribute_values()["activation"] == name
    exported = [n.op_type for n in compiled.to_proto().graph.node if n.op_type != "Constant"]
    assert len(exported) <= len(tails[name]) + 1
    plain = foldline.compile(given, options={"oo.level": "O0"}).session().run(None, {"x": x})[0]
    np.testing.assert_allclose(compiled.session().run(None, {"x": x})[0], plain, atol=2e-6)


def test_row_3_8_results_that_others_read_stay() -> None:
    given = graph("1x1", [ACTIVATIONS["Relu"], ("Tanh", "c", "z")], outputs=("y", "z"))
    check_unchanged(PASS, given, "read")
    check_unchanged(PASS, graph("1x1", [ACTIVATIONS["Relu"]], outputs=("y", "c")), "read")


def test_row_3_8_sums_that_others_read_are_made_alone() -> None:
    given = graph(
        "1x1",
        [("Add", "c z", "d"), ("Relu", "d", "y"), ("Tanh", "d", "v")],
        inputs={"z": (1, 7, 9, 9)},
        outputs=("y", "v"),
    )
    run_pass(PASS, given)
    assert op_types(given) == ["Conv", "Relu", "Tanh"]


def test_bounds_of_run_time_stay() -> None:
    given = graph("1x1", [("Clip", "c v", "y")], inputs={"v": ()})
    check_unchanged(PASS, given)


def test_bounds_that_no_attribute_holds_stay() -> None:
    given = module(
        [("Conv", "x w", "c"), ("Clip", "c k", "y")],
        {"w": normal(1, 1, 2, 2, dtype=np.float64), "k": np.array(0.1)},
        {"x": (1, 1, 4, 4)},
        element=11,
    )
    check_unchanged(PASS, given)


@pytest.mark.parametrize(("dtype", "element"), [(np.float64, 11), (np.float16, 10)])
def test_other_types_too(dtype: Any, element: int) -> None:
    given = module(
        [("Conv", "x w", "c"), ("Add", "c z", "d"), ("Sigmoid", "d", "y")],
        {"w": normal(3, 2, 2, 2, dtype=dtype)},
        {"x": (1, 2, 5, 5), "z": (1, 3, 4, 4)},
        element=element,
    )
    feed = {"x": normal(1, 2, 5, 5, dtype=dtype), "z": normal(1, 3, 4, 4, dtype=dtype)}
    check_both(given, feed, has_oracle=dtype != np.float64)


@pytest.mark.parametrize("shape", [(1, 7, 1, 1), (9, 9), (2, 1, 7, 9, 9)])
def test_sums_of_other_sizes_stay(shape: tuple[int, ...]) -> None:
    given = graph("1x1", [("Add", "c z", "y")], inputs={"z": shape})
    check_unchanged(PASS, given, "what is added has the sizes")


def test_a_result_is_not_added_to_itself() -> None:
    check_unchanged(PASS, graph("1x1", [("Add", "c c", "y")]), "added to itself")


def test_sums_by_axis_stay() -> None:
    given = from_onnx(
        """g (float[1,1,4,4] x, float[2,1,1,1] w, float[2] z) => (float[1,2,4,4] y)
        { c = Conv(x, w) y = Add <axis = 1, broadcast = 1> (c, z) }""",
        ir_version=3,
        opset=6,
    )
    check_unchanged(PASS, given, "broadcast by its axis")


def test_unknown_sizes_may_turn_out_to_broadcast() -> None:
    text = """g (float[N,2,H,W] x, float[3,2,1,1] w, float[A,B,C,D] z) => (float[E,F,G,I] y)
    { c = Conv(x, w) d = Add(z, c) y = Relu(d) }"""
    for shape in ((2, 3, 5, 4), (1, 3, 1, 1), (2, 1, 5, 4)):
        given = from_onnx(text)
        InferShapes().run(PassContext(given))
        feed = {"x": normal(2, 2, 5, 4), "w": normal(3, 2, 1, 1), "z": normal(*shape, seed=3)}
        check_both(given, feed)
        assert op_types(given) == ["Conv"]


def test_no_image() -> None:
    given = module(
        [("Conv", "x w", "c"), ("Gelu", "c", "y")], {"w": normal(3, 2, 2, 2)}, {"x": ("N", 2, 5, 5)}
    )
    check_both(given, {"x": normal(0, 2, 5, 5)})


def test_two_convolutions_that_are_added_become_one_of_them() -> None:
    given = module(
        [("Conv", "x w", "c"), ("Conv", "x v", "d"), ("Add", "c d", "e"), ("Relu", "e", "y")],
        {"w": normal(3, 2, 2, 2), "v": normal(3, 2, 2, 2, seed=1)},
        {"x": (1, 2, 5, 5)},
    )
    check_both(given, {"x": normal(1, 2, 5, 5)})
    assert op_types(given) == ["Conv", "Conv"]


def test_row_3_8_after_the_norm_is_folded() -> None:
    statistic = {name: np.ones(4, np.float32) for name in ("s", "t", "m", "v")}
    given = model(
        [
            ("Conv", "x w", "c"),
            ("BatchNormalization", "c s t m v", "n"),
            ("Relu", "n", "y"),
        ],
        {"w": normal(4, 3, 3, 3), **statistic},
        {"x": (1, 3, 8, 8)},
    )
    compiled = foldline.compile(given)
    assert [op.op_type for op in nodes(compiled.module) if op.op_type != "Constant"] == ["Conv"]
    exact = foldline.compile(given, options={"mode": "exact"})
    assert "BatchNormalization" in op_types(exact.module)


def test_types_are_inferred_again() -> None:
    given = graph("1x1", SUMS["sum and Relu"], inputs={"z": (1, 7, 9, 9)})
    run_pass(PASS, given)
    (conv,) = (op for op in nodes(given) if op.op_type == "Conv")
    conv.results[0]._type = conv.operands[0].type  # pyright: ignore[reportPrivateUsage]
    InferShapes().run(PassContext(given))
    assert dims_of(conv.results[0].type) == (1, 7, 9, 9)


def test_row_3_8_the_pass_says_that_it_preserves_bits() -> None:
    assert PASSES["conv-activation"].preserves_bits
