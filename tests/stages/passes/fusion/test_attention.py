"""attention, spec runtime-rewrites row 3.6."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.onnx.op import NodeOp
from foldline.exporter import export_model
from foldline.kernels.registry import GRADES
from foldline.lowering import lower
from foldline.session import Session
from foldline.stages.context import PassContext
from foldline.stages.passes.fusion.attention import Attention
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.support.passes import PASSES
from tests.stages.check import Array, check_unchanged, from_onnx, op_types, run_pass
from tests.stages.passes.fusion.attentions import LAYOUTS, Case, bound
from tests.stages.passes.fusion.fused import file_results, results, session_values
from tests.stages.passes.fusion.graphs import normal, only, operand

PASS = Attention()

MASKS = ("none", "s t", "b 1 1 t", "b h s t", "scalar", "boolean")


def typed(text: str) -> ModuleOp:
    """A module from ONNX's text, with the types of all values."""
    module = from_onnx(text)
    InferShapes().run(PassContext(module))
    return module


def mask_of(kind: str, case: Case) -> Array | None:
    b, h, s, t = case.batch, case.heads, case.queries, case.keys
    shapes: dict[str, tuple[int, ...]] = {
        "s t": (s, t),
        "b 1 1 t": (b, 1, 1, t),
        "b h s t": (b, h, s, t),
        "scalar": (),
    }
    if kind == "boolean":
        return np.asarray(normal(b, 1, s, t, seed=9) > -0.5)
    return None if kind == "none" else np.asarray(normal(*shapes[kind], seed=9), case.dtype)


def check(case: Case) -> None:
    """One operator, with the values of the parts, in session and file."""
    module = case.module()
    before = len(op_types(module))
    feed, limit = case.feed, bound(case)
    for run in (results, file_results):
        copy = module.clone()
        run(PASS, copy, feed).check(limit)
        fused = [name for name in op_types(copy) if name not in ("Identity", "Relu")]
        assert fused == ["Attention"]
        written = [n for n in export_model(copy).graph.node if n.op_type != "Constant"]
        assert len(written) <= before


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("scale", ["Mul", "Div", "", "both"])
def test_row_3_6_every_layout_mask_and_scale(layout: str, mask: str, scale: str) -> None:
    case = Case(layout=layout, scale=scale, keys=7, batch=2, size=4)
    check(replace(case, mask=mask_of(mask, case)))


@pytest.mark.parametrize("size", [1, 7, 8, 64])
@pytest.mark.parametrize("lengths", [(1, 1), (1, 33), (33, 1), (33, 40)])
@pytest.mark.parametrize("mask", ["none", "b 1 1 t"])
def test_row_3_6_head_sizes_and_lengths(size: int, lengths: tuple[int, int], mask: str) -> None:
    case = Case(queries=lengths[0], keys=lengths[1], size=size)
    check(replace(case, mask=mask_of(mask, case)))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_transposes_become_attributes(layout: str) -> None:
    module = Case(layout=layout).module()
    run_pass(PASS, module)
    found = only(module, "Attention").attribute_values()
    order = LAYOUTS[layout][1]
    expected = None if tuple(order) == (0, 1, 2, 3) else tuple(order)
    assert [found.get(f"{n}_perm") for n in ("query", "key", "value")] == [expected] * 3
    assert found["output_perm"] == (0, 2, 1, 3)


def test_keys_stored_transposed_are_read_as_they_are() -> None:
    module = typed(
        "g (float[2,3,5,4] q, float[2,3,4,6] k, float[2,3,6,4] v) => (float[2,3,5,4] y)"
        "{ s = MatMul(q, k) p = Softmax <axis = -1> (s) y = MatMul(p, v) }"
    )
    feed = {"q": normal(2, 3, 5, 4), "k": normal(2, 3, 4, 6, seed=1), "v": normal(2, 3, 6, 4)}
    results(PASS, module, feed).check(2e-6)
    assert only(module, "Attention").attribute_values()["key_perm"] == (0, 1, 3, 2)
    assert [n.op_type for n in export_model(module).graph.node] == ["MatMul", "Softmax", "MatMul"]


def test_a_scale_of_the_queries_is_that_of_the_scores() -> None:
    check(Case(scale="queries"))


def test_scales_are_one_number() -> None:
    module = Case(scale="both", size=16).module()
    run_pass(PASS, module)
    assert only(module, "Attention").attribute_values()["scale"] == pytest.approx(0.25, rel=1e-6)
    muls = [n for n in export_model(module).graph.node if n.op_type == "Mul"]
    assert len(muls) == 1


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_floats(dtype: Any) -> None:
    case = Case(dtype=dtype, scale="Mul", factor=np.asarray(0.25))
    got = results(PASS, case.module(), case.feed)
    got.check(bound(case) + 4 * float(np.finfo(dtype).eps))


def test_a_scale_that_float32_does_not_hold_stays_in_float64() -> None:
    case = Case(dtype=np.float64, factor=np.asarray(0.1))
    check_unchanged(PASS, case.module(), "the scale 0.1 is not kept by a float32")


@pytest.mark.parametrize("is_first", [True, False])
def test_a_boolean_mask_keeps_either_branch(is_first: bool) -> None:
    branches = "low, s" if is_first else "s, low"
    module = typed(
        "g (float[2,3,5,4] q, float[2,3,4,6] k, float[2,3,6,4] v, bool[2,1,5,6] m)"
        " => (float[2,3,5,4] y) <float low = {-inf}>"
        f"{{ s = MatMul(q, k) w = Where(m, {branches}) p = Softmax <axis = -1> (w)"
        " y = MatMul(p, v) }"
    )
    mask = normal(2, 1, 5, 6, seed=3) > 0
    mask[0, 0, 0], mask[1, 0, 1] = True, False
    feed = {"q": normal(2, 3, 5, 4), "k": normal(2, 3, 4, 6), "v": normal(2, 3, 6, 4), "m": mask}
    for run in (results, file_results):
        copy = module.clone()
        got = run(PASS, copy, feed)
        got.check(1e-5)
        assert np.isnan(got.fused[0 if is_first else 1, :, 0 if is_first else 1]).all()
        found = only(copy, "Attention").attribute_values()
        assert found["mask_keeps"] == int(not is_first)
        assert found["mask_value"] == -np.inf


def test_a_mask_of_the_run_that_enlarges_the_scores_is_applied_all_the_same() -> None:
    module = typed(
        "g (float[1,3,1,4] q, float[1,3,4,6] k, float[1,3,6,4] v, float[B,1,S,6] m)"
        " => (float[B,3,S,4] y)"
        "{ s = MatMul(q, k) w = Add(m, s) p = Softmax <axis = -1> (w) y = MatMul(p, v) }"
    )
    feed = {"q": normal(1, 3, 1, 4), "k": normal(1, 3, 4, 6), "v": normal(1, 3, 6, 4)}
    results(PASS, module, {**feed, "m": normal(2, 1, 5, 6)}).check(1e-5)
    assert op_types(module) == ["Attention"]


@pytest.mark.parametrize("low", [-np.inf, -1e9, np.finfo(np.float32).min])
@pytest.mark.parametrize("guarded", [True, False])
def test_row_3_6_rows_that_are_masked_throughout(low: float, guarded: bool) -> None:
    mask = np.zeros((2, 1, 5, 5), np.float32)
    mask[0, 0, 2] = low
    case = Case(mask=mask, guarded=guarded)
    for run in (results, file_results):
        got = run(PASS, case.module(), case.feed)
        got.check(bound(case))
        row = got.fused[0, 2]
        if low == -np.inf:
            assert (row == 0).all() if guarded else np.isnan(row).all()
        elif low == np.finfo(np.float32).min:
            mean = case.feed["v"][0].mean(0)
            np.testing.assert_allclose(row, mean, rtol=1e-5, atol=1e-6)


def test_a_guard_against_nan_is_part_of_it() -> None:
    module = Case(guarded=True).module()
    run_pass(PASS, module)
    assert op_types(module) == ["Attention"]
    assert only(module, "Attention").attribute_values()["guarded"] == 1
    types = [n.op_type for n in export_model(module).graph.node]
    assert types.count("IsNaN") == types.count("Where") == 1


def test_a_guard_with_another_number_stays() -> None:
    module = typed(
        "g (float[2,5,4] q, float[2,4,6] k, float[2,6,4] v) => (float[2,5,4] y)"
        "<float one = {1.0}>"
        "{ s = MatMul(q, k) p = Softmax <axis = -1> (s) n = IsNaN(p) w = Where(n, one, p)"
        " y = MatMul(w, v) }"
    )
    check_unchanged(PASS, module)


def test_dropout_that_drops_nothing_is_left_out() -> None:
    module = typed(
        "g (float[2,5,4] q, float[2,4,6] k, float[2,6,4] v) => (float[2,5,4] y)"
        "{ s = MatMul(q, k) p = Softmax <axis = -1> (s) d = Dropout(p) y = MatMul(d, v) }"
    )
    run_pass(PASS, module)
    assert op_types(module) == ["Attention"]


@pytest.mark.parametrize(
    ("opset", "axis", "is_last"),
    [(12, 3, True), (12, -1, True), (12, 1, False), (11, 2, False), (13, 2, False), (13, -1, True)],
)
def test_row_3_6_softmax_below_13_flattens(opset: int, axis: int, is_last: bool) -> None:
    case = Case(opset=opset, softmax={"axis": axis})
    if is_last:
        check(case)
    else:
        check_unchanged(PASS, case.module(), f"Softmax is along axis {axis} of 4")


def test_row_3_6_the_default_axis_below_13_is_1() -> None:
    check_unchanged(PASS, Case(opset=11, softmax={}).module(), "Softmax is along axis 1 of 4")
    check(Case(opset=13, softmax={}))


def test_row_3_6_scores_read_elsewhere() -> None:
    more = [("Relu", "s", "z")]
    check_unchanged(PASS, Case(more=more, outputs=("y", "z")).module(), "read by others")


def test_row_3_6_shares_read_elsewhere() -> None:
    case = Case(more=[("Relu", "p", "z")], outputs=("y", "z"))
    check_unchanged(PASS, case.module())


def test_row_3_6_scores_that_are_an_output() -> None:
    check_unchanged(PASS, Case(outputs=("y", "scaled")).module(), "read by others")


@pytest.mark.parametrize("scale", ["Mul", "Div"])
def test_row_3_6_a_scale_that_is_not_constant(scale: str) -> None:
    module = typed(
        "g (float[2,5,4] q, float[2,4,6] k, float[2,6,4] v, float c) => (float[2,5,4] y)"
        f"{{ s = MatMul(q, k) t = {scale}(s, c) p = Softmax <axis = -1> (t) y = MatMul(p, v) }}"
    )
    check_unchanged(PASS, module, f"the scale in {scale} is not a constant of one element")


def test_a_scale_for_each_head_is_none() -> None:
    case = Case(factor=np.ones((3, 1, 1)))
    check_unchanged(PASS, case.module(), "is not a constant of one element")


@pytest.mark.parametrize("factor", [0.0, np.inf, np.nan, 1e-60])
def test_a_scale_must_be_a_number_other_than_0(factor: float) -> None:
    case = Case(dtype=np.float64, factor=np.asarray(factor))
    check_unchanged(PASS, case.module(), "is not kept by a float32")


def test_row_3_6_a_mask_of_more_axes_than_the_scores() -> None:
    case = Case(mask=np.zeros((1, 1, 1, 1, 5), np.float32), merge=None)
    check_unchanged(PASS, case.module(), "have ranks [4, 4, 4], scores 5")


def test_row_3_6_a_wrong_permutation_stays() -> None:
    module = typed(
        "g (float[2,5,4,3] q, float[2,3,4,6] k, float[2,3,6,4] v) => (float[2,3,5,4] y)"
        "{ h = Transpose <perm = [0, 3, 1, 2]> (q) s = MatMul(h, k)"
        " p = Softmax <axis = -1> (s) y = MatMul(p, v) }"
    )
    run_pass(PASS, module)
    assert op_types(module) == ["Transpose", "Attention"]


def test_row_3_6_a_transpose_read_elsewhere_stays() -> None:
    case = Case(more=[("Relu", "kt", "z")], outputs=("y", "z"))
    module = case.module()
    results(PASS, module, case.feed).check(bound(case))
    assert op_types(module) == ["Transpose", "Attention", "Relu"]
    assert len([n for n in export_model(module).graph.node if n.op_type == "Transpose"]) == 4


def test_a_merge_read_with_what_it_merges_stays() -> None:
    case = Case(more=[("Relu", "o", "z")], outputs=("y", "z"))
    module = case.module()
    run_pass(PASS, module)
    assert op_types(module) == ["Attention", "Transpose", "Relu"]


def test_scores_of_something_else_than_a_product() -> None:
    module = typed(
        "g (float[2,5,6] x, float[2,6,4] v) => (float[2,5,4] y)"
        "{ s = Neg(x) p = Softmax <axis = -1> (s) y = MatMul(p, v) }"
    )
    check_unchanged(PASS, module, "the scores are made by Neg, not by MatMul")


def test_products_of_different_ranks() -> None:
    module = typed(
        "g (float[2,5,4] q, float[4,6] k, float[2,6,4] v) => (float[2,5,4] y)"
        "{ s = MatMul(q, k) p = Softmax <axis = -1> (s) y = MatMul(p, v) }"
    )
    check_unchanged(PASS, module, "have ranks [3, 2, 3]")


def test_dynamic_sizes() -> None:
    case = Case(dynamic=True, keys=9, mask=normal(1, 9))
    module = case.module()
    results(PASS, module, case.feed).check(bound(case))
    assert op_types(module) == ["Attention"]


@pytest.mark.parametrize("sizes", [(0, 5, 5), (2, 0, 5), (2, 5, 0)])
def test_empty_batch_queries_and_keys(sizes: tuple[int, int, int]) -> None:
    batch, queries, keys = sizes
    case = Case(batch=batch, queries=queries, keys=keys)
    parts = results(PASS, case.module(), case.feed)
    assert parts.fused.shape == (batch, queries, 3, 8)
    assert (parts.fused == 0).all()


FLATTENED = """
g (float[N,S,12] k, float[N,3,T,4] q, float[N,3,S,4] v) => (float[N,3,T,4] y)
<int64[4] split = {{0, 0, 3, 4}}, int64[1] minus = {{-1}}, int64[1] three = {{3}},
 int64[1] four = {{4}}>
{{ k3 = Reshape(k, split) k4 = Transpose <perm = [0, 2, 1, 3]> (k3)
   n = Shape <start = 0, end = 1> (k) s = Shape <start = 1, end = 2> (k)
   flat = Concat <axis = 0> (minus, {last}) back = Concat <axis = 0> (n, three, four, s)
   f = Reshape(k4, flat) t = Transpose <perm = [0, 2, 1]> (f) kt = Reshape(t, back)
   w = MatMul(q, kt) p = Softmax <axis = -1> (w) y = MatMul(p, v) }}
"""


def test_keys_transposed_with_batch_and_heads_as_one_axis() -> None:
    module = typed(FLATTENED.format(last="s, four"))
    feed = {"k": normal(2, 6, 12), "q": normal(2, 3, 5, 4), "v": normal(2, 3, 6, 4)}
    results(PASS, module, feed).check(1e-5)
    assert op_types(module) == ["Reshape", "Attention"]
    assert only(module, "Attention").attribute_values()["key_perm"] == (0, 2, 1, 3)


def test_keys_that_are_flattened_otherwise_stay() -> None:
    module = typed(FLATTENED.format(last="four, s"))
    run_pass(PASS, module)
    assert op_types(module).count("Reshape") == 3


APART = """
g (float[S,N,12] x, float[S,N,12] k) => (float[N,3,S,4] y)
<int64[1] three = {{3}}, int64[1] four = {{4}}, int64[1] minus = {{-1}}>
{{ s = Shape <start = 0, end = 1> (x) n = Shape <start = 1, end = 2> (x) r = Mul(n, three)
   flat = Concat <axis = 0> (s, r, four) whole = Concat <axis = 0> (n, {heads}, s, four)
   q1 = Reshape(x, flat) q2 = Transpose <perm = [1, 0, 2]> (q1) q = Reshape(q2, whole)
   v1 = Reshape(x, flat) v2 = Transpose <perm = [1, 0, 2]> (v1) v = Reshape(v2, whole)
   kt = Transpose <perm = [0, 1, 3, 2]> (q)
   w = MatMul(q, kt) p = Softmax <axis = -1> (w) y = MatMul(p, v) }}
"""


def test_heads_that_were_one_axis_with_the_batch() -> None:
    module = typed(APART.format(heads="three"))
    feed = {"x": normal(5, 2, 12), "k": normal(5, 2, 12)}
    for run in (results, file_results):
        copy = module.clone()
        run(PASS, copy, feed).check(1e-5)
        assert only(copy, "Attention").attribute_values()["value_perm"] == (1, 2, 0, 3)
    copy = module.clone()
    run_pass(PASS, copy)
    assert len(op_types(copy)) < len(op_types(module)) - 4
    assert np.array_equal(operand(producer(only(copy, "Attention"), 2), 1), [0, 0, 3, 4])


def test_heads_whose_number_follows_and_heads_of_unknown_number() -> None:
    module = typed(APART.format(heads="minus"))
    run_pass(PASS, module)
    assert "value_perm" in only(module, "Attention").attribute_values()
    module = typed(APART.format(heads="minus").replace("12]", "H]"))
    run_pass(PASS, module)
    assert "value_perm" not in only(module, "Attention").attribute_values()


def producer(op: NodeOp, place: int) -> NodeOp:
    found = op.operands[place].owner
    assert isinstance(found, NodeOp)
    return found


SHARED = """
g (float[N,6,T,4] q, float[N,2,S,4] k, float[N,2,S,4] v, float[1,1,T,S] m) => (float[N,6,T,4] y)
<int64[1] two = {{2}}, int64[1] groups = {{3}}, int64[1] four = {{4}}, int64[1] six = {{6}}>
{{ n = Shape <start = 0, end = 1> (k) s = Shape <start = 2, end = 3> (k)
   wide = Concat <axis = 0> (n, two, groups, s, four) final = Concat <axis = 0> (n, six, s, four)
   k5 = Unsqueeze(k, two) ke = Expand(k5, wide) kr = Reshape(ke, final)
   v5 = Unsqueeze(v, {axis}) ve = Expand(v5, wide) vr = Reshape(ve, final)
   kt = Transpose <perm = [0, 1, 3, 2]> (kr)
   w = MatMul(q, kt) a = Add(w, m) p = Softmax <axis = -1> (a) y = MatMul(p, vr) }}
"""


VIEWED = """
g (float[2,3,T,4] q, float[2,3,S,4] k, float[2,3,S,4] v) => (float[] y)
<int64[4] shape = {{{shape}}}>
{{ kt = Transpose <perm = [0, 1, 3, 2]> (k) w = MatMul(q, kt) p = Softmax <axis = -1> (w)
   o = MatMul(p, v) r = Reshape(o, shape) y = Transpose <perm = [0, 2, 1, 3]> (r) }}
"""


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ("2, 3, -1, 4", ["Attention"]),
        ("0, 0, 0, 0", ["Attention"]),
        ("2, 1, -1, 12", ["Attention", "Reshape", "Transpose"]),
        ("-1, 3, 5, 4", ["Attention", "Reshape", "Transpose"]),
    ],
)
def test_a_reshape_before_the_merge(shape: str, expected: list[str]) -> None:
    module = typed(VIEWED.format(shape=shape))
    feed = {"q": normal(2, 3, 5, 4), "k": normal(2, 3, 6, 4), "v": normal(2, 3, 6, 4)}
    for run in (results, file_results):
        copy = module.clone()
        run(PASS, copy, feed).check(1e-5)
        assert op_types(copy) == expected


def test_heads_that_share_keys_and_values() -> None:
    module = typed(SHARED.format(axis="two"))
    feed = {"q": normal(2, 6, 5, 4), "k": normal(2, 2, 7, 4, seed=1), "m": normal(1, 1, 5, 7)}
    feed["v"] = normal(2, 2, 7, 4, seed=2)
    before = len(op_types(module))
    for run in (results, file_results):
        copy = module.clone()
        run(PASS, copy, feed).check(1e-5)
        assert op_types(copy) == ["Attention"]
    run_pass(PASS, module)
    found = only(module, "Attention").attribute_values()
    assert (found["groups"], found["kv_heads"]) == (3, 2)
    assert len([n for n in export_model(module).graph.node if n.op_type != "Constant"]) < before


LINED = """
g (float[B,H,T,4] q, float[B,2,S,4] k, float[B,2,S,4] v, float[1,1,T,S] m) => (float[B,T,6,4] y)
<int64[4] line = {0, 2, -1, 0}, int64[4] heads = {0, 6, -1, 0}, float eighth = {0.125}>
{ s = Mul(q, eighth) ql = Reshape(s, line) kt = Transpose <perm = [0, 1, 3, 2]> (k)
  a = MatMul(ql, kt) b = Reshape(a, heads) c = Add(b, m) p = Softmax <axis = -1> (c)
  pl = Reshape(p, line) z = MatMul(pl, v) o = Reshape(z, heads)
  y = Transpose <perm = [0, 2, 1, 3]> (o) }"""


def test_heads_that_share_keys_in_files_that_were_optimised_before() -> None:
    module = typed(LINED.replace("float[B,H,T,4] q", "float[B,6,T,4] q"))
    feed = {"q": normal(2, 6, 5, 4), "k": normal(2, 2, 7, 4, seed=1), "m": normal(1, 1, 5, 7)}
    feed["v"] = normal(2, 2, 7, 4, seed=2)
    before = len(op_types(module))
    for run in (results, file_results):
        copy = module.clone()
        run(PASS, copy, feed).check(1e-5)
        assert op_types(copy) == ["Attention"]
    run_pass(PASS, module)
    found = only(module, "Attention").attribute_values()
    assert (found["groups"], found["kv_heads"]) == (3, 2)
    assert (found["scale"], found["output_perm"]) == (0.125, (0, 2, 1, 3))
    written = [n for n in export_model(module).graph.node if n.op_type != "Constant"]
    assert len(written) == before, "and that is what files get again"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("[B,H,T,4]", "[B,H,T,4]", "there are [None, 2, 2] heads, not [6, 2, 2]"),
        ("[B,H,T,4]", "[B,12,T,4]", "there are [12, 2, 2] heads, not [6, 2, 2]"),
        ("heads = {0, 6, -1, 0}", "heads = {0, 5, -1, 0}", "line up no heads"),
        ("heads = {0, 6, -1, 0}", "heads = {0, 2, -1, 0}", "line up no heads"),
        ("Reshape(s, line)", "Reshape(s, other)", "queries are not lined up as the shares are"),
        ("Reshape(a, heads)", "Reshape(a, fixed)", "the scores are not taken apart"),
    ],
)
def test_heads_that_are_lined_up_otherwise(old: str, new: str, reason: str) -> None:
    text = LINED.replace(old, new).replace(
        "float[B,H", "float[B,6" if old[0] != "[" else "float[B,H"
    )
    text = text.replace(
        "<int64[4] line",
        "<int64[4] other = {0, 2, 18, 4}, int64[4] fixed = {0, 6, 5, 7}, int64[4] line",
    )
    check_unchanged(PASS, typed(text), reason)


def test_heads_that_share_keys_but_not_values_are_repeated() -> None:
    text = SHARED.format(axis="two").replace("MatMul(p, vr)", "MatMul(p, u)")
    module = typed(text.replace("float[1,1,T,S] m", "float[1,1,T,S] m, float[N,6,S,4] u"))
    run_pass(PASS, module)
    assert only(module, "Attention").attribute_values()["groups"] == 1


def test_opset_23_has_attention() -> None:
    case = Case(opset=23, scale="Mul", size=16)
    module = case.module()
    run_pass(PASS, module)
    written = [n for n in export_model(module).graph.node if n.op_type != "Constant"]
    assert [n.op_type for n in written].count("Attention") == 1
    assert {n.op_type for n in written} == {"Attention", "Transpose"}
    file_results(PASS, case.module(), case.feed).check(bound(case))


@pytest.mark.parametrize("low", [-np.inf, -1e4])
def test_opset_23_has_rules_of_its_own_for_rows_without_a_number(low: float) -> None:
    mask = np.zeros((5, 5), np.float32)
    mask[1] = low
    case = Case(opset=23, mask=mask)
    module = case.module()
    run_pass(PASS, module)
    types = [n.op_type for n in export_model(module).graph.node]
    assert ("Softmax" in types) == (low == -np.inf)
    file_results(PASS, case.module(), case.feed).check(bound(case))


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_row_3_6_threads_change_no_bit(threads: int) -> None:
    case = Case(queries=300, keys=350, heads=4, size=16)
    module = case.module()
    run_pass(PASS, module)
    expected = session_values(module, case.feed)[0]
    program = lower(module, grades=GRADES["fast"])
    (found,) = Session(program, threads).run(None, case.feed)
    np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))


def test_inside_a_body() -> None:
    module = typed(
        "g (bool c, float[2,5,4] q, float[2,4,6] k, float[2,6,4] v) => (float[2,5,4] y)"
        "{ y = If (c) <then_branch = t () => (float[2,5,4] a)"
        "{ s = MatMul(q, k) p = Softmax <axis = -1> (s) a = MatMul(p, v) },"
        " else_branch = e () => (float[2,5,4] b) { b = Identity(q) }> }"
    )
    run_pass(PASS, module)
    inside = [op.name for op in module.walk()]
    assert "fused.Attention" in inside
    assert "onnx.Softmax" not in inside


def test_it_runs_in_fast_mode_only() -> None:
    assert not PASSES["attention"].preserves_bits
    assert PASSES["attention"].level == "O3"
