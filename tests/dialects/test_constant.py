from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, IntegerAttr, f32, i64
from xdsl.ir import Attribute

from foldline.dialects.onnx.attributes import Reference, ReferenceAttr
from foldline.dialects.onnx.constant import ConstantOp, constant_tensor, is_constant
from foldline.dialects.onnx.structure import InitializerOp, main_graph
from foldline.dialects.onnx.tensor import Array, SparseTensorAttr, TensorAttr
from foldline.dialects.onnx.text import ResidualAttr, TextAttr, TextsAttr
from foldline.dialects.onnx.types import UNKNOWN
from tests.dialects.ir import graph

FORMS: list[tuple[str, Attribute, Array]] = [
    ("value", TensorAttr.of(np.arange(3)), np.arange(3)),
    ("value_int", IntegerAttr(3, i64), np.array(3)),
    ("value_ints", DenseArrayBase.from_list(i64, [1, 2]), np.array([1, 2])),
    ("value_ints", DenseArrayBase.from_list(i64, []), np.array([], np.int64)),
    ("value_float", FloatAttr(0.5, f32), np.array(0.5, np.float32)),
    ("value_floats", DenseArrayBase.from_list(f32, [0.5]), np.array([0.5], np.float32)),
    ("value_string", TextAttr("ö"), np.array("ö", object)),
    ("value_strings", TextsAttr(("a", "")), np.array(["a", ""], object)),
    (
        "sparse_value",
        SparseTensorAttr(TensorAttr.of(np.eye(2)), ResidualAttr(b"")),
        np.eye(2),
    ),
]


@pytest.mark.parametrize(("name", "attribute", "expected"), FORMS)
def test_every_form_of_a_constant(name: str, attribute: Attribute, expected: Array) -> None:
    op = ConstantOp.create(result_types=[UNKNOWN], properties={name: attribute})
    tensor = constant_tensor(op.results[0])
    assert tensor is not None
    assert tensor.array.dtype == expected.dtype
    assert tensor.array.shape == expected.shape
    assert tensor.array.tolist() == expected.tolist()
    assert is_constant(op)


@pytest.mark.parametrize("name", ["value", "value_float", "value_ints"])
def test_a_parameter_of_a_function_is_not_known(name: str) -> None:
    reference = ReferenceAttr(Reference("v", 4))
    op = ConstantOp.create(result_types=[UNKNOWN], properties={name: reference})
    assert op.tensor() is None


def test_initializers_are_constants_and_other_values_are_not() -> None:
    module = graph(
        """%w = onnx.initializer() {value = #onnx.tensor<"float", [1], "0000803f">} : tensor<1xf32>
        %y = onnx.Add(%x, %w) : tensor<1xf32>""",
        "%x: tensor<1xf32>",
        '"x"',
    )
    block = main_graph(module).body.block
    initializer, add, _ = block.ops
    assert isinstance(initializer, InitializerOp)
    found = constant_tensor(initializer.output)
    assert found is not None
    assert found.array.tolist() == [1.0]
    assert constant_tensor(add.results[0]) is None
    assert constant_tensor(block.args[0]) is None
    assert is_constant(initializer)
    assert not is_constant(add)
