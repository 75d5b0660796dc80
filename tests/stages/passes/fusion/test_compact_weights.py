import numpy as np
import pytest

from foldline.dialects.fold.compact import is_compact
from foldline.stages.passes.fusion.compact_weights import CompactWeights
from tests.stages.check import constant as of
from tests.stages.check import nodes, parse, run_pass, splat

INPUTS = "%x: tensor<?x32xf32>"
T = "tensor<?x?xf32>"


def weight(rows=32, columns=32, value=None):
    array = np.random.default_rng(0).standard_normal((rows, columns)).astype(np.float32)
    if value is not None:
        array[0, 0] = value
    return of(array, np.float32)


def marked(text, storage="Binary16", inputs=INPUTS):
    module = parse(text, inputs)
    run_pass(CompactWeights(storage=storage), module)
    return [is_compact(op.results[0]) for op in nodes(module) if op.op_type == "Constant"]


def product(constant):
    return f"%w = {constant}\n%y = onnx.MatMul(%x, %w) : {T}\nreturn(%y)"


@pytest.mark.parametrize("storage", ["Binary16", "BFloat16"])
def test_weights_are_marked(storage):
    assert marked(product(weight()), storage) == [True]


def test_nothing_is_marked_by_default():
    assert marked(product(weight()), "Float32") == [False]


def test_marks_that_no_longer_hold_are_taken_back():
    module = parse(product(weight()), INPUTS)
    run_pass(CompactWeights(storage="Binary16"), module)
    run_pass(CompactWeights(), module)
    assert not any(is_compact(op.results[0]) for op in nodes(module))


@pytest.mark.parametrize(
    "text",
    [
        product(weight(32, 31)),
        product(weight(value=7e4)),
        product(weight(value=np.nan)),
        product(splat(1.5, (32, 32), np.float32)),
        f"%w = {weight()}\n%y = onnx.MatMul(%w, %x) : {T}\nreturn(%y)",
        f"%w = {weight()}\n%y = onnx.MatMul(%x, %w) : {T}\nreturn(%y, %w)",
        f"%w = {weight()}\n%h = onnx.MatMul(%x, %w) : {T}\n%y = onnx.Add(%h, %w) : {T}\nreturn(%y)",
        f"%w = {weight()}\nreturn(%x)",
    ],
)
def test_what_does_not_qualify_is_not_marked(text):
    assert marked(text) == [False]


def test_double_weights_are_not_marked():
    text = product(of(np.ones((32, 32)), np.float64)).replace("f32", "f64")
    assert marked(text, inputs="%x: tensor<?x32xf64>") == [False]


def test_only_matrices_of_gemm_are_weights():
    text = f"""%w = {weight()}
    %c = {weight()}
    %y = onnx.Gemm(%x, %w, %c) {{transB = 1 : i64}} : {T}
    return(%y)"""
    assert marked(text) == [True, False]
