from __future__ import annotations

import pytest
from xdsl.ir import Operation

from foldline.dialects.onnx.structure import main_graph
from foldline.dialects.onnx.traits import is_deterministic, is_pure
from tests.dialects.ir import graph

F = "tensor<2xf32>"


def first(ops: str, opset: int = 17) -> Operation:
    module = graph(ops, f"%x: {F}, %c: tensor<i1>", '"x", "c"', opsets=f'"" : {opset}, "my" : 1')
    return next(op for op in main_graph(module).body.block.ops if not op.name.endswith("none"))


def conditional(op: str) -> str:
    end = 'onnx.return(%p) {interface = #onnx.interface<"b", [], ["p"], []>}'
    return f"""%y = onnx.If(%c) {{graph_names = #onnx.texts<"else_branch", "then_branch">}} ({{
      %p = {op}
      {end}
    }}, {{
      %p = onnx.Relu(%x) : {F}
      {end}
    }}) : {F}"""


CUSTOM = (
    f'onnx.custom(%x) {{domain = #onnx.text<"my">, op_type = #onnx.text<"Op">, given = {{}}}} : {F}'
)


@pytest.mark.parametrize(
    ("op", "pure", "deterministic"),
    [
        (f"onnx.Relu(%x) : {F}", True, True),
        (f"onnx.RandomNormalLike(%x) : {F}", False, False),
        (f"onnx.Dropout(%x) : {F}", True, True),
        (f"onnx.Dropout(%x, %x, %c) : {F}", False, False),
        (CUSTOM, False, True),
    ],
)
def test_an_operation_alone_and_in_a_body(op: str, pure: bool, deterministic: bool) -> None:
    for found in (first(f"%y = {op}"), first(conditional(op))):
        assert is_pure(found) == pure
        assert is_deterministic(found) == deterministic


@pytest.mark.parametrize(
    ("text", "opset", "trains"),
    [
        (f"%y = onnx.Dropout(%x) : {F}", 6, True),
        (f"%y = onnx.Dropout(%x) {{is_test = 1 : i64}} : {F}", 6, False),
        (f"%y = onnx.Dropout(%x) {{ratio = 0.9 : f32}} : {F}", 10, False),
    ],
)
def test_old_dropouts_say_whether_they_train(text: str, opset: int, trains: bool) -> None:
    assert is_deterministic(first(text, opset)) != trains
