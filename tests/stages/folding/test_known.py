"""Values that are known in full: constants, marks, and what is neither."""

from __future__ import annotations

import numpy as np
import pytest

from foldline.dialects.fold import FullyKnown, PartlyKnown, set_fact
from foldline.dialects.onnx.structure import main_graph
from foldline.dialects.onnx.tensor import TensorAttr
from foldline.stages.folding.known import is_of_type, known_tensor, mark_of
from tests.stages.check import constant, from_onnx, nodes, parse

TWO = TensorAttr.of(np.int64([2, 3]))


def test_row_52_constants_and_marks_are_known_and_other_nodes_are_not() -> None:
    module = from_onnx("""g (float[2, 3] x) => (float[2] y) <int64[2] w = {1, 2}> {
        c = Constant<value_ints = [2, 3]>() s = Shape(x) y = Cast<to = 1>(s) z = Add(s, w)
    }""")
    made, shape, cast, add = nodes(module)
    set_fact(shape.results[0], FullyKnown(TWO, "test"))
    assert known_tensor(made.results[0]) == (TWO, False)
    initializer = known_tensor(add.operands[1])
    assert initializer is not None
    assert not initializer.is_potential
    assert known_tensor(shape.results[0]) == (TWO, True)
    assert known_tensor(cast.results[0]) is None
    assert known_tensor(cast.operands[0]) == (TWO, True)


def test_a_partly_known_value_is_not_known() -> None:
    (shape, _) = nodes(from_onnx("g (float[2, n] x) => (int64[2] y) { s = Shape(x) y = Neg(s) }"))
    set_fact(shape.results[0], PartlyKnown("int64", (2,), (2, None), "test"))
    assert known_tensor(shape.results[0]) is None
    assert mark_of(shape) is None


def test_an_argument_of_a_body_may_be_known() -> None:
    module = from_onnx("g (int64[2] x) => (int64[2] y) { y = Neg(x) }")
    argument = main_graph(module).body.block.args[0]
    assert known_tensor(argument) is None
    set_fact(argument, FullyKnown(TWO, "test"))
    assert known_tensor(argument) == (TWO, True)


def test_rows_53_and_54_a_mark_needs_all_results_but_absent_ones() -> None:
    module = parse(
        f"""%c = {constant([1, 2, 3, 4])}
        %a, %b = onnx.Split(%c) {{num_outputs = 2 : i64}} : tensor<2xi64>, tensor<2xi64>
        %y = onnx.Add(%a, %b) : tensor<2xi64>
        return(%y)""",
        "",
    )
    split = nodes(module)[1]
    set_fact(split.results[1], FullyKnown(TWO, "second"))
    assert mark_of(split) is None
    set_fact(split.results[0], FullyKnown(TWO, "first"))
    mark = mark_of(split)
    assert mark is not None
    assert (mark.tensors, mark.source) == ((TWO, TWO), "first")
    text = "%y, %m = onnx.Dropout(%x) : tensor<2xi64>, !onnx.absent return(%y)"
    (dropout,) = nodes(parse(text))
    set_fact(dropout.results[0], FullyKnown(TWO, "test"))
    mark = mark_of(dropout)
    assert mark is not None
    assert mark.tensors == (TWO, None)


@pytest.mark.parametrize(
    ("type_", "fits"),
    [
        ("tensor<2x3xf32>", True),
        ("tensor<2x?xf32>", True),
        ("tensor<*xf32>", True),
        ("!onnx.unknown", True),
        ("tensor<2x4xf32>", False),
        ("tensor<6xf32>", False),
        ("tensor<2x3xf64>", False),
    ],
)
def test_arrays_are_of_types(type_: str, fits: bool) -> None:
    module = parse(f"%y = onnx.Neg(%x) : {type_} return(%y)")
    assert is_of_type(np.zeros((2, 3), np.float32), nodes(module)[0].results[0].type) is fits
