"""pad-into-conv: zeros around the input are the convolution's own pads, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.kernels.registry import GRADES
from foldline.lowering import lower
from foldline.session import Session
from foldline.stages.passes.fusion.pad_into_conv import PadIntoConv
from tests.stages.check import Array, check_unchanged, from_onnx, op_types, run_pass
from tests.stages.passes.fusion.fused import file_results, session_values
from tests.stages.passes.fusion.graphs import check_bits, module, normal, only

PASS = PadIntoConv()


def graph(
    pads: list[int],
    w: tuple[int, ...] = (4, 3, 3, 3),
    x: tuple[Any, ...] = (2, 3, 9, 8),
    fill: float | None = None,
    mode: str = "constant",
    axes: list[int] | None = None,
    outputs: tuple[str, ...] = ("y",),
    **conv: Any,
) -> ModuleOp:
    weights: dict[str, Array] = {"w": normal(*w), "p": np.array(pads, np.int64)}
    inputs = ["x", "p"]
    if fill is not None or axes is not None:
        inputs.append("f")
        weights["f"] = np.array(0 if fill is None else fill, np.float32)
    if axes is not None:
        inputs.append("a")
        weights["a"] = np.array(axes, np.int64)
    return module(
        [("Pad", " ".join(inputs), "d", {"mode": mode}), ("Conv", "d w", "y", conv)],
        weights,
        {"x": x},
        outputs=outputs,
    )


def exact_values(given: ModuleOp, feed: dict[str, Array]) -> Array:
    return Session(lower(given, grades=GRADES["exact"]), 1).run(None, feed)[0]


WAYS: dict[str, dict[str, Any]] = {
    "plain": {"pads": [0, 0, 1, 2, 0, 0, 3, 0]},
    "a value": {"pads": [0, 0, 1, 1, 0, 0, 0, 0], "fill": 0.0},
    "listed axes": {"pads": [1, 2, 0, 1], "axes": [-1, 2]},
    "strides": {"pads": [0, 0, 0, 0, 0, 0, 1, 1], "strides": [2, 2]},
    "dilated": {"pads": [0, 0, 2, 2, 0, 0, 2, 2], "dilations": [2, 2]},
    "depthwise": {
        "pads": [0, 0, 1, 1, 0, 0, 1, 1],
        "x": (1, 8, 9, 9),
        "w": (8, 1, 3, 3),
        "group": 8,
    },
    "Winograd": {"pads": [0, 0, 1, 1, 0, 0, 1, 1], "x": (1, 128, 14, 14), "w": (128, 128, 3, 3)},
    "in bands": {"pads": [0, 0, 1, 1, 0, 0, 1, 1], "x": (1, 64, 60, 60), "w": (64, 64, 3, 3)},
    "one axis": {"pads": [0, 0, 2, 0, 0, 1], "x": (2, 5, 20), "w": (6, 5, 3)},
    "VALID": {"pads": [0, 0, 1, 1, 0, 0, 1, 1], "auto_pad": "VALID"},
    "SAME_UPPER": {
        "pads": [0, 0, 1, 0, 0, 0, 0, 1],
        "auto_pad": "SAME_UPPER",
        "strides": [2, 1],
        "w": (4, 3, 4, 2),
    },
    "SAME_LOWER": {"pads": [0, 0, 1, 0, 0, 0, 0, 1], "auto_pad": "SAME_LOWER", "w": (4, 3, 4, 2)},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("special", [None, np.inf, np.nan])
def test_bits_are_the_same_in_both_modes(way: str, special: float | None) -> None:
    given = graph(**WAYS[way])
    feed = {"x": normal(*WAYS[way].get("x", (2, 3, 9, 8)), seed=4)}
    if special is not None:
        feed["x"].flat[7] = special
    fast, exact = session_values(given.clone(), feed)[0], exact_values(given.clone(), feed)
    run_pass(PASS, given)
    assert op_types(given) == ["Conv"]
    check_bits(session_values(given.clone(), feed)[0], fast)
    check_bits(exact_values(given, feed), exact)


@pytest.mark.parametrize("way", WAYS)
def test_files_compute_the_same(way: str) -> None:
    feed = {"x": normal(*WAYS[way].get("x", (2, 3, 9, 8)), seed=4)}
    file_results(PASS, graph(**WAYS[way]), feed).check(2e-4)


def test_pads_are_added_to_those_of_the_conv() -> None:
    given = module(
        [("Pad", "x p", "d"), ("Conv", "d w", "y", {"pads": [1, 2, 3, 4]})],
        {"w": normal(4, 3, 3, 3), "p": np.array([0, 0, 5, 6, 0, 0, 7, 8])},
        {"x": ("N", 3, "H", "W")},
    )
    run_pass(PASS, given)
    assert only(given, "Conv").attribute_values()["pads"] == (6, 8, 10, 12)


@pytest.mark.parametrize("opset", [1, 2, 10])
def test_old_forms(opset: int) -> None:
    name = "paddings" if opset == 1 else "pads"
    given = from_onnx(
        f"""g (float[1,1,3,3] x, float[1,1,2,2] w) => (float[1,1,3,4] y)
        {{ d = Pad <{name} = [0,0,1,0,0,0,0,2], mode = "constant", value = 0.0> (x)
           y = Conv(d, w) }}""",
        ir_version=4,
        opset=opset,
    )
    run_pass(PASS, given)
    assert only(given, "Conv").attribute_values()["pads"] == (1, 0, 0, 2)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"pads": [0, 0, 1, 1, 0, 0, 1, 1], "fill": 0.5}, "does not add zeros"),
        ({"pads": [0, 0, 1, 1, 0, 0, 1, 1], "fill": -0.0}, "does not add zeros"),
        ({"pads": [0, 0, 1, 1, 0, 0, 1, 1], "mode": "reflect"}, "the mode of the Pad is reflect"),
        ({"pads": [0, 0, 1, -1, 0, 0, 1, 1]}, "the Pad crops"),
        ({"pads": [1, 0, 1, 1, 0, 0, 1, 1]}, "adds images or channels"),
        ({"pads": [0, 0, 1, 1, 0, 0, 1, 1], "w": (4, 3, 1, 1)}, "the window has one position"),
        ({"pads": [0, 0, 1, 1, 0, 0, 1, 1], "outputs": ("y", "d")}, "read outside as well"),
        (
            {"pads": [0, 0, 1, 1, 0, 0, 1, 1], "x": (1, 3, "H", 8), "auto_pad": "SAME_UPPER"},
            "auto_pad is SAME_UPPER and the sizes are not known",
        ),
    ],
)
def test_others_stay(given: dict[str, Any], reason: str) -> None:
    check_unchanged(PASS, graph(**given), reason)


def test_sizes_of_run_time_stay() -> None:
    given = from_onnx("""g (float[1,1,3,3] x, float[1,1,2,2] w, int64[8] p) => (float[A,B,C,D] y)
    { d = Pad(x, p) y = Conv(d, w) }""")
    check_unchanged(PASS, given, "the sizes of the Pad are not constant")


def test_a_window_of_unknown_size_stays() -> None:
    given = from_onnx("""g (float[1,1,3,3] x, float[1,1,A,B] w) => (float[C,D,E,F] y)
    <int64[8] p = {0,0,1,1,0,0,1,1}> { d = Pad(x, p) y = Conv(d, w) }""")
    check_unchanged(PASS, given, "the sizes of the window are not known")
