"""A node's neighbours, a value's contents and facts."""

from __future__ import annotations

import onnx
import pytest

from foldline.importer import import_model
from foldline.support.errors import InvalidArgumentError
from foldline.workbench.explain import MOST_SHOWN, Lookup, around, marks, value_lines
from tests.foldline.workbench.stepped import a_stepper


@pytest.fixture
def prepared() -> Lookup:
    stepper = a_stepper()
    stepper.stage()
    return Lookup(stepper.here.module)


def test_a_name_of_a_node_or_value_finds_the_node(prepared: Lookup) -> None:
    assert prepared.node("product")[1].op_type == "MatMul"
    assert prepared.node("p")[1].op_type == "MatMul"
    assert prepared.find("nobody") is None
    with pytest.raises(InvalidArgumentError, match="called 'prodct' here; did you mean 'product'"):
        prepared.node("prodct")


def test_the_neighbourhood(prepared: Lookup) -> None:
    signs = [line.split(" ", 1) for line in around(prepared, "product", 2)]
    assert [(sign, line.partition(" = ")[0]) for sign, line in signs] == [
        ("^", "w"),
        ("^", "same: float[N,8]"),
        (">", "product: p: float[N,8]"),
        ("v", "sum: s: float[N,8]"),
        ("vv", "relu: y: float[N,8]"),
    ]


def test_many_readers_are_counted() -> None:
    rows = "\n".join(f"y{i} = Neg(a)" for i in range(MOST_SHOWN + 3))
    outputs = ", ".join(f"float[2] y{i}" for i in range(MOST_SHOWN + 3))
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 20]> g (float[2] x) => ({outputs}) '
        f"{{ a = Abs(x) {rows} }}"
    )
    lookup = Lookup(import_model(model))
    lines = list(around(lookup, "a"))
    assert len(lines) == 1 + MOST_SHOWN + 1
    assert lines[-1] == "v and 3 more"
    assert list(value_lines(lookup, "a"))[-1].endswith("y14, y15, 3 more")


def test_a_constant_has_contents_and_statistics(prepared: Lookup) -> None:
    head, contents, statistics, readers = value_lines(prepared, "w")
    assert head == "w: float[8,8]"
    assert contents.startswith("constant: float32[8, 8] #")
    assert statistics == "min 1, max 4, mean 2.5, 0 zeros, 0 not finite, 256 bytes"
    assert readers == "read by product"


def test_what_is_partly_known_and_who_found_it(prepared: Lookup) -> None:
    lines = list(value_lines(prepared, "target"))
    assert lines == [
        "target: int64[3]",
        "partly known by dimension-compute: [N, 2, 4]",
        "read by r",
    ]


def test_inputs_and_outputs(prepared: Lookup) -> None:
    assert next(value_lines(prepared, "x")) == "x: float[N,8]"
    assert "the model's outputs" in list(value_lines(prepared, "y"))[-1]


def test_marks_are_listed(prepared: Lookup) -> None:
    assert "target = [N, 2, 4]    [Concat, dimension-compute]" in list(marks(prepared.module))
