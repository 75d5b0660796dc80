"""Near misses: how far the best match got, and what stopped it."""

from __future__ import annotations

from typing import Any

import pytest

from foldline.support.remarks import Remark
from tests.stages.rewrite.rules import graph, rewrite, run, to, traced


@traced
def LONG(op: Any, x: Any, w: Any) -> Any:
    scaled = op.Mul(op.Sigmoid(op.Neg(x)), op.constant(2.0, name="two"))
    return op.Add(op.Softmax(scaled, axis=-1), w, name="add")


TWO, THREE = "t = Constant<value_float = 2.0>()", "t = Constant<value_float = 3.0>()"
START = "n = Neg(x) s = Sigmoid(n)"
MISSES = {
    f"{START} {TWO} m = Mul(s, t) e = Softmax(m) y = Sub(e, x)": (
        "4 of 5 nodes match (Neg, Sigmoid, Mul, Softmax); Add is wanted where there is Sub 'y'"
    ),
    f"{START} {THREE} m = Mul(s, t) e = Softmax(m) y = Add(e, x)": (
        "operand 1 is a constant, but not a constant 2 at Mul 'm'"
    ),
    f"{START} m = Mul(s, x) e = Softmax(m) y = Add(e, x)": "operand 1 is not a constant 2 at Mul",
    f"{START} {TWO} m = Mul(s, t) e = Softmax<axis = 0>(m) y = Add(e, x)": (
        "axis is 0 instead of -1 at Softmax 'e'"
    ),
    f"{START} {TWO} m = Mul(s, t) e = Softmax(m) z = Add(e, x) y = Abs(m)": (
        "the result of Mul is read outside as well, by Abs 'y'"
    ),
    f"n = Abs(x) s = Sigmoid(n) {TWO} m = Mul(s, t) e = Softmax(m) y = Add(e, x)": (
        "Neg is wanted where there is Abs 'n'"
    ),
    f"s = Sigmoid(x) {TWO} m = Mul(s, t) e = Softmax(m) k = Neg(x) y = Add(e, k)": (
        "Neg is wanted where an input or initializer is read by Sigmoid 's'"
    ),
}


@pytest.mark.parametrize(("body", "why"), MISSES.items(), ids=list(MISSES.values()))
def test_a_remark_says_how_far_and_why(body: str, why: str) -> None:
    remarks: list[Remark] = []
    outputs = "float[2,3] y, float[2,3] z" if " z =" in body else "float[2,3] y"
    rule = rewrite("long", LONG, to("Neg"))
    report = run(graph(body, outputs), rule, trace=remarks.append)
    assert report.row("long").replacements == 0
    declined = [r for r in remarks if r.kind == "declined"]
    assert [why in r.message for r in declined] == [True], [r.message for r in declined]
    assert declined[0].pass_name == "long"


def test_the_texts_are_distinct() -> None:
    assert len(set(MISSES.values())) == len(MISSES)


@traced
def OPTIONAL(op: Any, x: Any) -> Any:
    return op.Tanh(op.Abs(op.Neg(op.Sigmoid(x)), optional=True, name="abs"))


def test_a_miss_without_an_optional_node_says_so() -> None:
    (miss,) = graph("s = Sigmoid(x) n = Neg(s) k = Tanh(x) y = Relu(n)").near_misses(OPTIONAL)
    assert miss.message == (
        "2 of 3 nodes match without Abs (Sigmoid, Neg); Tanh is wanted where there is Relu 'y'"
    )


def test_a_miss_with_the_optional_node_counts_it() -> None:
    body = "s = Sigmoid(x) n = Neg(x) a = Abs(n) y = Tanh(a)"
    (miss,) = graph(body, "float[2,3] y").near_misses(OPTIONAL)
    assert (miss.bound, miss.wanted) == (3, 4)
    assert miss.message == (
        "3 of 4 nodes match (Tanh, Abs, Neg); Sigmoid is wanted where an input or initializer is "
        "read by Neg 'n'"
    )


def test_what_one_spelling_misses_and_another_matches_is_no_miss() -> None:
    remarks: list[Remark] = []
    spellings = [
        traced(lambda op, x: op.Tanh(op.Neg(op.Abs(x)))),
        traced(lambda op, x: op.Tanh(op.Neg(op.Relu(x)))),
    ]
    on = graph("r = Relu(x) n = Neg(r) t = Tanh(n) y = Abs(t)")
    run(on, rewrite("rule", spellings, to("Sigmoid")), trace=remarks.append)
    assert [r.kind for r in remarks] == ["applied"]


def test_one_node_in_common_is_no_near_miss() -> None:
    assert not graph("s = Sigmoid(x) n = Neg(x) a = Abs(n) y = Tanh(x)").near_misses(LONG)


def test_the_condition_s_reason_is_a_remark() -> None:
    remarks: list[Remark] = []
    rule = rewrite("r", traced(lambda op, x: op.Neg(x)), to("Abs"), lambda m: m.refuse("x is 7"))
    report = run(graph("y = Neg(x)"), rule, trace=remarks.append)
    assert [r.message for r in remarks] == ["x is 7"]
    assert report.row("r").rejected_by_condition == 1
