"""Nodes as text: names, types, constants, attributes, bodies."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest

from foldline.dialects.onnx.tensor import Tensor
from foldline.importer import import_model
from foldline.workbench.nodes import LONGEST_ATTRIBUTE, nodes_of, value_text


def lines(text: str) -> list[str]:
    module = import_model(onnx.parser.parse_model(text))
    return [str(node) for _, node in nodes_of(module)]


HEAD = '<ir_version: 10, opset_import: ["" : 20, "com.microsoft" : 1]>'


def test_a_node_is_its_name_results_operator_attributes_and_operands() -> None:
    text = f"""{HEAD} g (float[N, 4] x) => (float[N, 4] y) {{
        a = LeakyRelu <alpha = 0.1> (x)
        [soft] b = Softmax <axis = 1> (a)
        [y] y = com.microsoft.Gelu (b)
    }}"""
    assert lines(text) == [
        "a = LeakyRelu[alpha=0.1](x)",
        "soft: b = Softmax[axis=1](a)",
        "y: float[N,4] = com.microsoft.Gelu(b)",
    ]


def test_an_operand_that_is_left_out_is_empty_and_a_type_is_given_where_it_is_known() -> None:
    text = f"""{HEAD} g (float[2, 4] x, float hi) => (float[2, 4] y) <float[2, 4] v> {{
        v = Clip (x, , hi) y = Neg (v)
    }}"""
    assert lines(text) == ["v: float[2,4] = Clip(x, , hi)", "y: float[2,4] = Neg(v)"]


def test_results_without_a_name_are_numbered_by_operator() -> None:
    text = f"{HEAD} g (float[2] x) => (float[2] y) {{ a = Neg(x) b = Abs(a) y = Neg(b) }}"
    module = import_model(onnx.parser.parse_model(text))
    for op, _ in nodes_of(module):
        del op.attributes["onnx.names"]
    nodes = [node for _, node in nodes_of(module)]
    assert [node.label for node in nodes] == ["Neg:0", "Abs:0", "Neg:1"]
    assert [node.inputs for node in nodes] == [("x",), ("Neg:0",), ("Abs:0",)]
    assert not any(node.is_named for node in nodes)


def test_bodies_follow_the_node_that_holds_them_and_say_where_they_are() -> None:
    text = f"""{HEAD} g (bool c, float[2] x) => (float[2] y) {{
        [choose] y = If (c) <
            then_branch = t () => (float[2] p) {{ p = Neg (x) }},
            else_branch = e () => (float[2] q) {{ q = Abs (x) }}
        >
    }}"""
    module = import_model(onnx.parser.parse_model(text))
    nodes = [node for _, node in nodes_of(module)]
    placed = [(node.graph, node.op_type) for node in nodes]
    assert placed[0] == ("", "If")
    assert sorted(placed[1:]) == [("choose.else_branch", "Abs"), ("choose.then_branch", "Neg")]
    assert "x" in nodes[0].inputs, "what bodies take from outside is read too"


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.float32([0.1, -0.0]), "float32[2] [0.1, -0.0]"),
        (np.float64(0.1), "float64 0.1"),
        (np.float16([np.nan, np.inf]), "float16[2] [nan, inf]"),
        (np.asarray([1.5], ml_dtypes.bfloat16), "bfloat16[1] [1.5]"),
        (np.asarray([[1, 2]], np.int64), "int64[1, 2] [[1, 2]]"),
        (np.asarray(True), "bool True"),
        (np.asarray(["a b", "c"], object), "object[2] ['a b', 'c']"),
        (np.zeros((0, 3), np.float32), "float32[0, 3] []"),
        (np.broadcast_to(np.int32(7), (3, 4)), "int32[3, 4] all 7"),
    ],
)
def test_a_small_constant_is_its_elements(array: np.ndarray, text: str) -> None:
    assert value_text(Tensor(array)) == text


def test_float32_elements_have_the_digits_that_tell_them_apart() -> None:
    one = np.float32(1)
    after = np.nextafter(one, np.float32(2))
    assert value_text(Tensor(one[None])) != value_text(Tensor(after[None]))


def test_a_large_or_long_constant_is_a_digest_that_differs_with_a_bit() -> None:
    array = np.arange(9, dtype=np.float32)
    text = value_text(Tensor(array))
    assert text.startswith("float32[9] #")
    changed = array.copy()
    changed[0] = -0.0
    assert value_text(Tensor(changed)) != text
    long = np.float64([1 / 3] * 4 + [1 / 7] * 4)
    assert len(str(long.tolist())) > LONGEST_ATTRIBUTE
    assert value_text(Tensor(long)).startswith("float64[8] #")


def test_a_long_attribute_is_cut() -> None:
    text = f"""{HEAD} g (float[2] x) => (float[2] y) {{
        y = com.microsoft.Odd <words = [{", ".join(['"word"'] * 40)}]> (x)
    }}"""
    (line,) = lines(text)
    assert "..." in line
    assert len(line) < 2 * LONGEST_ATTRIBUTE
