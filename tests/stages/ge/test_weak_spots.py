"""Where GE's folding is weak, by the numbers of the specification's list, and what is done here.

Numbers 9, 11 and 19 stand in the tests of `stages/folding/potential.py` and infer-value-range.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.stages.folding.known import mark_of
from foldline.stages.passes.folding import potential_const_taken_effect
from foldline.stages.run import run_pipeline
from foldline.support.errors import PassFailed
from foldline.support.options import resolve
from foldline.support.report import MarkRow, Report
from tests.stages.check import Array, from_onnx, nodes, op_types, values


def compiled(text: str, **options: Any) -> tuple[ModuleOp, Report]:
    module = from_onnx(text)
    return module, run_pipeline(module, resolve({"oo.level": "O2", **options}))


def same_values(text: str, module: ModuleOp, feed: dict[str, Array]) -> None:
    for old, new in zip(values(from_onnx(text), feed), values(module, feed), strict=True):
        assert old.dtype == new.dtype
        assert old.shape == new.shape
        assert old.tobytes() == new.tobytes()


STRANGE: list[tuple[str, str, str]] = [
    ("slice_backwards", "float[?] y", "r = Slice(c, m, n, z, m)"),
    ("slice_nothing", "float[?] y", "r = Slice(c, z, z)"),
    ("slice_every_second", "float[?] y", "t = Constant<value_ints = [2]>() "
     "e = Constant<value_ints = [3]>() r = Slice(c, z, e, z, t)"),
    ("floor_division_of_large_integers", "int64[?] y", "r = Div(big, three)"),
    ("division_of_negative_floats", "float[?] y", "r = Div(c, half)"),
    ("product_over_two_axes", "float[?] y", "a = Constant<value_ints = [0, 1]>() "
     "r = ReduceProd<keepdims = 0>(cube, a)"),
    ("product_of_nothing", "float[?] y", "a = Constant<value_ints = [1]>() "
     "r = ReduceProd<keepdims = 0>(hollow, a)"),
    ("range_without_elements", "int64[?] y", "r = Range(i, i, k)"),
    ("maximum_of_no_number", "float[?] y", "r = Max(c, nans)"),
    ("scalar_index", "float[?] y", "r = Gather(rows, i)"),
    ("empty_concat", "float[?] y", "r = Concat<axis = 0>(none, none)"),
]  # fmt: skip
GRAPH = """g (TYPE x) => (TYPE_OF_Y) <float[3] c = {1, -2, 3}, int64[1] m = {-1},
    int64[1] n = {-9223372036854775807}, int64[1] z = {0}, int64[2] big = {9007199254740993, -7},
    int64 three = {3}, float half = {-0.5}, float[2, 2, 2] cube = {1, 2, 3, 4, 5, 6, 7, 8},
    float[2, 0] hollow = {}, int64 i = {1}, int64 k = {1}, float[3] nans = {nan, nan, 1},
    float[2, 3] rows = {1, 2, 3, 4, 5, 6}, float[0] none = {}> { NODES y = Identity(r) }"""


@pytest.mark.parametrize(
    ("result", "body"), [row[1:] for row in STRANGE], ids=[row[0] for row in STRANGE]
)
def test_weak_spot_2_values_are_those_of_onnx(result: str, body: str) -> None:
    element = result.partition("[")[0]
    text = GRAPH.replace("TYPE_OF_Y", result).replace("TYPE", element).replace("NODES", body)
    module, _ = compiled(text, **{"fold.graphOutputs": True})
    assert op_types(module) == []
    same_values(text, module, {"x": np.zeros((), element.replace("float", "float32"))})


@pytest.mark.parametrize(
    "body",
    [
        "r = Range(i, i, k) s = Cast<to = 1>(r) y = Add(s, x)",
        "r = Concat<axis = 0>(none, none) y = Add(r, x)",
        "s = ConstantOfShape(zero) r = Cast<to = 1>(s) y = Add(r, x)",
        "r = Unsqueeze(x, axes) y = Squeeze(r, axes)",
        "s = Shape<start = 0, end = 0>(x) t = Cast<to = 1>(s) y = Add(t, x)",
    ],
    ids=["range", "concat", "fill", "axes_from_outside", "empty_shape"],
)
def test_weak_spot_3_what_cannot_be_folded_does_not_end_the_compile(body: str) -> None:
    """Hard errors of GE's kernels: they are empty results and inputs that are not known."""
    text = f"""g (float[1] x, int64[1] axes) => (float[?] y)
    <int64 i = {{1}}, int64 k = {{1}}, float[0] none = {{}}, int64[1] zero = {{0}}> {{ {body} }}"""
    module, _ = compiled(text)
    same_values(text, module, {"x": np.float32([2]), "axes": np.int64([0])})


def test_weak_spot_3_an_index_out_of_range_is_a_remark() -> None:
    module, report = compiled("""g (float[1] x) => (float[1] y)
    <float[2] c = {1, 2}, int64[1] i = {7}> { r = Gather(c, i) y = Add(r, x) }""")
    assert op_types(module) == ["Gather", "Add"]
    assert any("it fails when run" in r.message for r in report.remarks if r.kind == "declined")


def test_weak_spot_4_overflow_folds_to_what_would_be_computed() -> None:
    text = """g (int8[2] x, float[2] z) => (int8[2] y, float[2] v)
    <int8[2] c = {127, -128}, int8[2] d = {1, 1}, float[2] f = {3e38, -3e38}> {
        a = Add(c, d) b = Sub(c, d) e = Add(a, b) y = Add(e, x) g = Add(f, f) v = Mul(g, z)
    }"""
    module, _ = compiled(text)
    assert op_types(module) == ["Add", "Mul"]
    same_values(text, module, {"x": np.int8([1, 2]), "z": np.float32([1, -0.5])})


def test_weak_spot_18_equal_nodes_on_equal_constants_are_one() -> None:
    """GE merges equal constants only after it has looked for equal nodes."""
    text = """g (float[2] x) => (float[2] y) <float[2] c = {1, 2}, float[2] d = {1, 2}> {
        a = Add(x, c) b = Add(x, d) s = Sqrt(a) t = Sqrt(b) y = Mul(s, t)
    }"""
    module, _ = compiled(text)
    assert op_types(module) == ["Add", "Sqrt", "Mul"]
    same_values(text, module, {"x": np.float32([3, np.nan])})


POTENTIAL = {
    "Cast_and_Sqrt": "c = Cast<to = 1>(s) r = Sqrt(c) e = ReduceSum<keepdims = 0>(r) y = Mul(z, e)",
    "ConstantOfShape": "e = ConstantOfShape<value = float[1] {2}>(s) y = Mul(z, e)",
    "Expand": "e = Expand(half, s) y = Mul(z, e)",
    "OneHot": "h = OneHot<axis = 0>(s, five, values) e = ReduceSum<keepdims = 0>(h) y = Mul(z, e)",
    "Trilu": "o = Expand(half, s) e = Trilu(o) y = Mul(z, e)",
    "NonZero": "p = NonZero(s) q = Cast<to = 1>(p) e = ReduceSum<keepdims = 0>(q) y = Mul(z, e)",
}
"""Computed by constant-folding from a potential constant: no dimension kernel does floats."""
FROM_SHAPE = """g (float[2, 3] x, float[2, 3] z) => (float[2, 3] y)
<float half = {0.5}, int64 five = {5}, float[2] values = {0, 3}> { s = Shape(x) NODES }"""
FEED = {
    "x": np.zeros((2, 3), np.float32),
    "z": np.float32([[1, -0.0, np.nan], [np.inf, 1e-40, 3]]),
}


def row_of(report: Report, source: str) -> MarkRow:
    return next((row for row in report.marks if row.source == source), MarkRow(source))


@pytest.mark.parametrize("body", POTENTIAL.values(), ids=POTENTIAL.keys())
def test_what_is_computed_from_a_potential_constant_is_one_and_takes_effect(body: str) -> None:
    text = FROM_SHAPE.replace("NODES", body)
    module, report = compiled(text)
    assert op_types(module) == ["Mul"]
    marks = row_of(report, "constant-folding")
    assert marks.made > 0
    assert marks.taken == {"stage1": marks.made}
    assert row_of(report, "dimension-compute").taken["stage1"] >= 1
    same_values(text, module, FEED)
    assert report.to_json()["marks"] == [
        {
            "source": row.source,
            "made": row.made,
            "taken": row.taken,
            "dropped": row.dropped,
        }
        for row in report.marks
    ]


def test_what_is_computed_from_a_marked_output_takes_effect() -> None:
    """The output stays a node; whoever reads it goes on from its value."""
    text = """g (float[2] x) => (float[2] a, float[2] y) <float[2] w = {1, 4}> {
        a = Sqrt(w) b = Neg(a) c = Abs(b) y = Mul(c, x) }"""
    module, report = compiled(text)
    assert op_types(module) == ["Sqrt", "Mul"]
    assert row_of(report, "constant-folding") == MarkRow(
        "constant-folding", made=3, taken={"stage1": 2}
    )
    same_values(text, module, {"x": np.float32([1, np.nan])})


def test_without_potential_const_taken_effect_these_tests_fail(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nothing(self: Any, *, are_stale: bool = False) -> None: ...

    monkeypatch.setattr(potential_const_taken_effect._Visitor, "finish", nothing)  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(PassFailed, match="breaks the promise of the stage"):
        test_what_is_computed_from_a_marked_output_takes_effect()
    for body in POTENTIAL.values():
        with pytest.raises((AssertionError, KeyError)):
            test_what_is_computed_from_a_potential_constant_is_one_and_takes_effect(body)


def test_marks_that_stay_are_counted_as_neither_taken_nor_dropped() -> None:
    text = """g (float[2, 3] x) => (int64[2] s, float[2] y) {
        s = Shape(x) c = Cast<to = 1>(s) y = Sqrt(c) }"""
    module, report = compiled(text)
    left = [op for op in nodes(module) if mark_of(op) is not None]
    assert [op.op_type for op in left] == ["Shape", "Sqrt"]
    made = sum(row.made for row in report.marks)
    gone = sum(sum(row.taken.values()) + row.dropped for row in report.marks)
    assert made == gone + len(left)
