"""specialize-shapes: sizes by name, shapes by input, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.onnx.structure import interface, main_graph
from foldline.dialects.onnx.types import dims_of
from foldline.stages.context import PassContext
from foldline.stages.passes.shapes.specialize_shapes import SpecializeShapes
from foldline.support.errors import InvalidArgumentError
from tests.stages.check import check_values, from_onnx, run_pass
from tests.stages.rewrite.rules import FEED

TEXT = "g (float[n,3] x, float[n,m] w, float[2,3] f) => (float[n,3] y) { y = Neg(x) }"


def pinned(sizes: Any, text: str = TEXT) -> list[Any]:
    module = from_onnx(text)
    run_pass(SpecializeShapes(sizes), module)
    block = main_graph(module).body.block
    declared = [dims_of(info.type) for info in interface(block).inputs if info.type]
    assert declared == [dims_of(argument.type) for argument in block.args]
    return declared


def inner(module: ModuleOp) -> Any:
    return dims_of(next(op for op in module.walk() if op.name == "onnx.Neg").results[0].type)


def test_a_name_holds_for_every_input() -> None:
    assert pinned({"n": 4}) == [(4, 3), (4, "m"), (2, 3)]


def test_a_shape_is_of_one_input_and_none_leaves_open() -> None:
    assert pinned({"w": (None, 7)}) == [("n", 3), ("n", 7), (2, 3)]
    assert pinned({"w": (5, 7), "n": 4}) == [(4, 3), (5, 7), (2, 3)]
    assert pinned({"f": (2, None)}) == [("n", 3), ("n", "m"), (2, 3)]


def test_inner_types_are_inferred_again() -> None:
    module = from_onnx(TEXT)
    run_pass(SpecializeShapes({"n": 4}), module)  # type: ignore[arg-type]
    assert inner(module) == (4, 3)


def test_without_numbers_nothing_changes() -> None:
    module = from_onnx(TEXT)
    assert run_pass(SpecializeShapes(), module).rewriter.changes == 0


def test_a_second_turn_of_one_run_changes_nothing() -> None:
    context = PassContext(from_onnx(TEXT))
    SpecializeShapes({"n": 4}).run(context)  # type: ignore[arg-type]
    changes = context.rewriter.changes
    SpecializeShapes({"n": 4}).run(context)  # type: ignore[arg-type]
    assert context.rewriter.changes == changes


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"k": 4}, "no size is called 'k'"),
        ({"z": (1, 2)}, "no input is called 'z'"),
        ({"w": (1,)}, "'w' has 2 sizes, 1 are given"),
        ({"f": (3, 3)}, "'f' has size 2, 3 is given"),
    ],
)
def test_what_is_refused(sizes: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        run_pass(SpecializeShapes(sizes), from_onnx(TEXT))


def test_values_stay() -> None:
    text = "g (float[n,3] x) => (float[n,3] y) { y = Neg(x) }"
    check_values(SpecializeShapes({"n": 2}), from_onnx(text), FEED)  # type: ignore[arg-type]


def test_equal_options_are_equal_passes() -> None:
    assert SpecializeShapes({"n": 4}) == SpecializeShapes((("n", 4),))  # type: ignore[arg-type]
    assert hash(SpecializeShapes({"n": 4, "x": [1, 2]}))  # type: ignore[arg-type]
