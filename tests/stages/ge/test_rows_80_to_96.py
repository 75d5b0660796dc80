"""Options and whole compiles as GE's own tests describe them, rows 80 to 96."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.fold import is_kept, keep
from foldline.dialects.onnx.constant import ConstantOp
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.types import static_shape
from foldline.stages.run import run_pipeline
from foldline.support.errors import InvalidOption
from foldline.support.options import resolve
from foldline.support.passes import PASSES
from foldline.support.report import Report
from tests.stages.check import Array, from_onnx, named, nodes, op_types, values


def compiled(text: str, **options: Any) -> tuple[ModuleOp, Report]:
    module = from_onnx(text)
    given = {key.replace("__", "."): value for key, value in options.items()}
    return module, run_pipeline(module, resolve({"oo.level": "O2", **given}))


def constant_values(module: ModuleOp) -> list[Array]:
    found = [op.tensor() for op in nodes(module) if isinstance(op, ConstantOp)]
    return [tensor.array for tensor in found if tensor is not None]


RESHAPE = """g (float[2, 3, 4, 5] x, float[2, 3, 20] z) => (float[?, ?, ?] y) {
    s = Shape(z) r = Reshape(x, s) y = Relu(r)
}"""


def test_row_80_a_shape_becomes_a_constant_and_all_is_static() -> None:
    module, report = compiled(RESHAPE, oo__level="O1")
    assert op_types(module) == ["Reshape", "Relu"]
    assert [array.tolist() for array in constant_values(module)] == [[2, 3, 20]]
    assert static_shape(nodes(module)[-1].results[0].type) == (2, 3, 20)
    assert [(m.source, m.made, m.taken) for m in report.marks] == [
        ("dimension-compute", 1, {"stage1": 1})
    ]
    feed = {"x": np.arange(120, dtype=np.float32).reshape(2, 3, 4, 5)}
    feed["z"] = np.zeros((2, 3, 20), np.float32)
    before, after = values(from_onnx(RESHAPE), feed), values(module, feed)
    np.testing.assert_array_equal(before[0], after[0])


def test_row_81_without_folding_the_shape_stays() -> None:
    module, report = compiled(RESHAPE, oo__level="O1", oo__constantFolding="false")
    assert op_types(module) == ["Shape", "Reshape", "Relu"]
    assert not constant_values(module)
    assert not report.marks


def test_row_82_unknown_sizes_are_not_folded() -> None:
    text = RESHAPE.replace("float[2, 3, 20] z", "float[a, b, c] z")
    module, _ = compiled(text, oo__level="O1")
    assert op_types(module) == ["Shape", "Reshape", "Relu"]
    assert static_shape(nodes(module)[-1].results[0].type) is None


CONDITIONAL = """g (float[2] x) => (float[2] y) <bool c = {1}> {
    y = If(c) <then_branch = t () => (float[2] u) { u = Neg(x) },
               else_branch = e () => (float[2] v) { v = Abs(x) }>
}"""


def test_row_83_a_decided_branch_is_taken_unless_dead_code_is_kept() -> None:
    module, _ = compiled(CONDITIONAL, oo__level="O1")
    assert op_types(module) == ["Neg"]
    module, _ = compiled(CONDITIONAL, oo__level="O1", oo__deadCodeElimination=False)
    assert op_types(module) == ["If"]


@pytest.mark.parametrize("level", ["", "OvO", "o1", "O4"])
def test_row_84_other_levels_are_refused(level: str) -> None:
    with pytest.raises(InvalidOption, match=r"oo.level .*valid"):
        resolve({"oo.level": level})


@pytest.mark.parametrize("value", ["TRUE", "on", 1])
def test_row_85_switches_are_true_or_false(value: Any) -> None:
    with pytest.raises(InvalidOption, match="valid: true, false"):
        resolve({"oo.constantFolding": value})


def test_row_86_without_a_level_it_is_o3_and_what_the_user_says_holds() -> None:
    assert resolve().level == "O3"
    options = resolve({"oo.constantFolding": "false"})
    assert not options.enabled("constant-folding")
    assert not options.enabled("dimension-compute")
    assert options.enabled("common-subexpressions")


def test_row_87_a_level_runs_what_is_of_it_or_below_and_a_pass_may_be_named() -> None:
    options = resolve({"oo.level": "O1"})
    for name, row in PASSES.items():
        is_opt_in = row.opt_in or row.switch == "weightClip"
        assert options.enabled(name) is (row.level == "O1" and not is_opt_in), name
    options = resolve({"oo.level": "O1", "passes.enable": ["common-subexpressions"]})
    assert options.enabled("common-subexpressions")
    options = resolve({"oo.constantFolding": True, "passes.disable": ["infer-value-range"]})
    assert not options.enabled("infer-value-range")


@pytest.mark.parametrize("text", ["pass1", "constant-folding:on", "oo.level"])
def test_rows_88_and_89_what_is_no_pass_is_refused(text: str) -> None:
    with pytest.raises(InvalidOption, match="is not a pass"):
        resolve({"passes.disable": text})


def test_row_91_a_size_that_is_picked_is_a_constant() -> None:
    text = """g (float[2, 3] x, int64[1] z) => (int64[1] y) <int64[1] i = {INDEX}> {
        s = Shape(x) a = Gather(s, i) y = Add(a, z) }"""
    for index, expected in (("0", 2), ("1", 3), ("-1", 3)):
        module, _ = compiled(text.replace("INDEX", index))
        assert op_types(module) == ["Add"]
        assert [array.tolist() for array in constant_values(module)] == [[expected]]
    module, report = compiled(text.replace("INDEX", "2"))
    assert "Gather" in op_types(module)
    assert any("it fails when run: index 2 is out of bounds" in r.message for r in report.remarks)


@pytest.mark.parametrize(
    "node", ["Flatten(w)", "Squeeze(w, zero)", "Unsqueeze(w, zero)", "Squeeze(w)", "Identity(w)"]
)
def test_row_92_reshapings_of_constants_are_gone(node: str) -> None:
    module, _ = compiled(f"""g (float x) => (float[?, ?, ?, ?] y)
    <float[1, 2, 3] w = {{1, 2, 3, 4, 5, 6}}, int64[1] zero = {{0}}> {{
        a = {node} y = Mul(a, x) }}""")
    assert op_types(module) == ["Mul"]


@pytest.mark.parametrize(
    ("shape", "perm", "left"),
    [("1, 1, 3, 4", "1, 0, 2, 3", ["Neg"]), ("1, 2, 3, 4", "0, 2, 1, 3", ["Transpose", "Neg"])],
)
def test_row_93_a_transpose_that_moves_nothing_goes(shape: str, perm: str, left: list[str]) -> None:
    module, _ = compiled(f"""g (float[{shape}] x) => (float[?, ?, ?, ?] y) {{
        a = Transpose<perm = [{perm}]>(x) y = Neg(a) }}""")
    assert sorted(op_types(module)) == sorted(left)


def test_row_94_casts_of_constants_are_gone() -> None:
    module, _ = compiled("""g (int32[2] x) => (int32[2] y) <float16[2] w = {15872, 49152}> {
        a = Cast<to = 6>(w) y = Add(a, x) }""")
    assert op_types(module) == ["Add"]
    assert [array.tolist() for array in constant_values(module)] == [[1, -2]]
    text = """g (float16[2] x) => (float16[2] y) <float[2] w = {70000, -1e30}> {
        a = Cast<to = 10>(w) y = Add(a, x) }"""
    for clip, expected in ((True, 65504), (False, np.inf)):
        module, report = compiled(text, weightClip=clip)
        assert op_types(module) == ["Add"]
        assert [array.tolist() for array in constant_values(module)] == [[expected, -expected]]
        assert any(row.name == "constant-clip" for row in report.rows) is clip


def test_row_95_memory_priority_keeps_a_shared_constant_whole() -> None:
    text = """g (float[2, 5] x) => (float[2, 5] y, float[2, 5] z) <float[2, 5] w =
    {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, float v = {2}> { a = Add(w, v) y = Mul(a, x) z = Sub(w, x) }"""
    assert op_types(compiled(text, memoryPolicy="MemoryPriority")[0]) == ["Add", "Mul", "Sub"]
    assert op_types(compiled(text)[0]) == ["Mul", "Sub"]


def test_row_96_what_the_user_keeps_survives_with_its_flag() -> None:
    module = from_onnx("""g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
        [kept] a = Neg(w) y = Add(a, x) }""")
    keep(named(module, "kept"))
    run_pipeline(module, resolve())
    assert op_types(module) == ["Neg", "Add"]
    assert is_kept(named(module, "kept"))


def test_dumps_say_what_will_fold() -> None:
    module = from_onnx(RESHAPE)
    run_pipeline(module, resolve(), stop_after="prepare")
    shape = next(op for op in module.walk() if isinstance(op, NodeOp) and op.op_type == "Shape")
    assert '"dimension-compute"' in str(shape.attributes["fold.known"])
