from __future__ import annotations

import numpy as np
import pytest
from xdsl.ir import Operation

from foldline.dialects.onnx import OPERATORS
from foldline.dialects.onnx.math import ELEMENT_WISE
from foldline.dialects.onnx.schema import signature
from foldline.dialects.onnx.structure import main_graph
from foldline.dialects.onnx.traits import ElementWise, is_deterministic, is_pure
from foldline.kernels.registry import compute, find_kernel
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


def test_what_is_called_element_wise_is_an_operator_with_that_trait() -> None:
    for op_type in ELEMENT_WISE:
        assert OPERATORS["", op_type].has_trait(ElementWise)
    assert not OPERATORS["", "Softmax"].has_trait(ElementWise)


ARGUMENTS: dict[str, dict[str, object]] = {"BitShift": {"direction": "LEFT"}}
TYPES: dict[str, type[np.generic]] = {
    **dict.fromkeys(("And", "Or", "Xor", "Not"), np.bool_),
    **dict.fromkeys(("BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"), np.uint8),
    "Mod": np.int32,
}


@pytest.mark.parametrize("op_type", sorted(ELEMENT_WISE))
def test_element_wise_results_follow_their_elements(op_type: str) -> None:
    """Where elements are moved and repeated, results are, bit for bit."""
    newest = signature("", op_type, 25)
    assert newest is not None
    found = find_kernel("", op_type, newest.since)
    assert found is not None
    count = 2 if newest.max_inputs > 1 else 1
    random = np.random.default_rng(0)
    wide = (random.random((count, 3, 130)) * 5 + 1).astype(TYPES.get(op_type, np.float32))
    moved = np.ascontiguousarray(wide.transpose(0, 2, 1))
    row = np.ascontiguousarray(wide[-1][:1])
    keywords = ARGUMENTS.get(op_type, {})
    with np.errstate(all="ignore"):
        plain = compute(found, list(wide), **keywords)
        again = compute(found, list(moved), **keywords)
        assert plain.T.tobytes() == again.tobytes()
        if count == 2:
            broadcast = compute(found, [wide[0], row], **keywords)
            expanded = compute(found, [wide[0], np.repeat(row, 3, 0)], **keywords)
            assert broadcast.tobytes() == expanded.tobytes()
