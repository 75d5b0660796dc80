"""constant-folding: how large a result may be, and whose memory it is."""

from __future__ import annotations

import numpy as np
import pytest

from foldline.dialects.onnx.op import result_names
from foldline.stages.context import PassContext
from foldline.stages.passes.folding.constant_folding import ConstantFolding
from tests.stages.check import check_pass, check_unchanged, constant, op_types, parse, splat
from tests.stages.passes.folding.folds import FOLD, folded, inferred, only_constant

LARGE = """g (float[256, 128] x) => (float[256, 128] y)
<int64[2] s = {256, 128}, float[1] w = {2}> { a = Expand(w, s) y = Add(a, x) }"""


@pytest.mark.parametrize("limit", [None, 131072])
def test_row_3_3_a_result_within_the_limit_folds(limit: int | None) -> None:
    assert op_types(folded(LARGE, ConstantFolding(max_bytes=limit))) == ["Add"]


@pytest.mark.parametrize(("columns", "folds"), [(16384, True), (16385, False)])
def test_row_3_3_the_limit_is_65536_bytes(columns: int, folds: bool) -> None:
    """A Tile of float32 that is as large as the limit, and one that is 4 bytes larger."""
    text = f"""g (float[{columns}] x) => (float[{columns}] y)
    <int64[1] r = {{{columns}}}, float[1] w = {{2}}> {{
        a = Tile(w, r) y = Add(a, x) }}"""
    assert (op_types(folded(text)) == ["Add"]) == folds


def test_row_3_3_a_larger_result_of_larger_inputs_folds() -> None:
    text = f"""%w = {constant(np.arange(60000).reshape(300, 200), np.float32)}
    %s = {constant([200, 300])}
    %r = onnx.Reshape(%w, %s) : tensor<200x300xf32>
    %y = onnx.Add(%r, %x) : tensor<200x300xf32>
    return(%y)"""
    module = parse(text, "%x: tensor<200x300xf32>")
    FOLD.run(PassContext(module))
    assert op_types(module) == ["Add"]
    assert only_constant(module).nbytes == 240_000


VIEWS = {
    "Reshape": "a = Reshape(w, s)",
    "Transpose": "a = Transpose(w)",
    "Slice": "a = Slice(w, one, two)",
    "Unsqueeze": "a = Unsqueeze(w, one)",
}


@pytest.mark.parametrize("view", VIEWS)
def test_row_3_3_a_view_of_a_constant_becomes_an_array_of_its_own(view: str) -> None:
    """Contiguous and without the constant that it was taken from, which is released."""
    module = folded(f"""g (float x) => (float y)
    <float[2, 3] w = {{1, 2, 3, 4, 5, 6}}, int64[2] s = {{3, 2}}, int64[1] one = {{1}},
     int64[1] two = {{2}}> {{ {VIEWS[view]} y = Add(a, x) }}""")
    found = only_constant(module)
    assert found.flags.c_contiguous
    owner = found
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    assert owner.nbytes == found.nbytes
    assert not any(result_names(op) == ("w",) for op in module.walk())


def test_row_3_3_a_result_as_large_as_its_inputs_folds() -> None:
    text = f"""%w = {constant(np.arange(30000).reshape(300, 100), np.float32)}
    %t = onnx.Transpose(%w) : tensor<100x300xf32>
    %y = onnx.Add(%t, %x) : tensor<100x300xf32>
    return(%y)"""
    module = parse(text, "%x: tensor<100x300xf32>")
    FOLD.run(PassContext(module))
    assert op_types(module) == ["Add"]
    assert only_constant(module).flags.c_contiguous


def test_splats_are_made_and_computed_on_for_nothing() -> None:
    huge = (100_000, 100_000)
    before = parse(
        f"""%s = {constant(huge)}
        %a = onnx.ConstantOfShape(%s) {{value = #onnx.tensor<"float", [1], "00000040">}}
            : tensor<100000x100000xf32>
        %b = onnx.Mul(%a, %a) : tensor<100000x100000xf32>
        %h = onnx.Cast(%b) {{to = 10 : i64}} : tensor<100000x100000xf16>
        %y = onnx.Add(%h, %x) : tensor<100000x100000xf16>
        return(%y)""",
        "%x: tensor<100000x100000xf16>",
    )
    after = parse(
        f"""%h = {splat(4, huge, np.float16)}
        %y = onnx.Add(%h, %x) : tensor<100000x100000xf16>
        return(%y)""",
        "%x: tensor<100000x100000xf16>",
    )
    check_pass(FOLD, before, after)


def test_a_splat_larger_than_any_memory_is_left() -> None:
    module = inferred("""g (float x) => (float[?, ?, ?] y) <int64[3] s =
    {4611686018427387904, 2, 1}> { a = ConstantOfShape(s) y = Add(a, x) }""")
    check_unchanged(FOLD, module, "is larger than any memory")


def test_a_huge_splat_is_not_read_element_by_element() -> None:
    text = """g (float x) => (float y) <int64[2] s = {{4194304, 4194304}}> {{
        a = ConstantOfShape(s) b = {reader}(a) y = Add(b, x)
    }}"""
    module = folded(text.format(reader="ReduceMax<keepdims = 0>"))
    assert op_types(module) == ["ReduceMax", "Add"]
    check_unchanged(FOLD, module, "it would read all 70368744177664 bytes")
    text = """g (int64 x) => (int64 y) <int64[2] s = {4194304, 4194304}> {
        a = ConstantOfShape(s) b = Size(a) y = Add(b, x)
    }"""
    assert only_constant(folded(text)) == 1 << 44


def test_row_3_3_results_of_a_size_that_data_decides_are_bounded_by_the_inputs() -> None:
    text = """g (int64 x) => (int64[1, ?] y) <float[4] w = {0, 5, 0, 7}> {
        a = NonZero(w) y = Add(a, x)
    }"""
    np.testing.assert_array_equal(only_constant(folded(text)), [[1, 3]])
    check_unchanged(ConstantFolding(max_bytes=16), inferred(text), "32 bytes")


def test_a_result_of_unknown_size_is_left() -> None:
    text = f"""%w = {constant([1.0, 2.0], np.float32)}
    %a = onnx.Neg(%w) : tensor<*xf32>
    %y = onnx.Add(%a, %x) : tensor<*xf32>
    return(%y)"""
    check_unchanged(FOLD, parse(text), "the size of its result of type tensor<*xf32> is not known")
