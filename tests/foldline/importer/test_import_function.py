from __future__ import annotations

import pytest
from onnx import FunctionProto, helper

from foldline.dialects.onnx.op import NodeOp, OnnxOp
from foldline.importer import import_function
from foldline.support.errors import InvalidModel


def function(**changed: str) -> FunctionProto:
    nodes = [helper.make_node(changed.get("op_type", "Neg"), ["x"], [changed.get("result", "y")])]
    return helper.make_function("here", "Twice", ["x"], ["y"], nodes, [helper.make_opsetid("", 17)])


def test_a_function_that_stands_alone() -> None:
    op = import_function(function())
    assert (op.domain.data, op.op_type.data) == ("here", "Twice")
    (node,) = [each for each in op.body.block.ops if isinstance(each, NodeOp)]
    assert isinstance(node, OnnxOp)
    assert node.since == 13
    assert node.operands[0] is op.body.block.args[0]


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(
        InvalidModel, match="function 'here::Twice': nothing defines the output 'y'"
    ):
        import_function(function(result="z"))
