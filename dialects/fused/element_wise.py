"""Chains of element-wise operators as one operation, with the operators as its body."""

from __future__ import annotations

from onnx import AttributeProto
from xdsl.irdl import traits_def
from xdsl.traits import RecursiveMemoryEffect

from foldline.dialects.fused.signatures import FUSED_DOMAIN
from foldline.dialects.onnx.op import BodyArity, OnnxOp, onnx_op
from foldline.dialects.onnx.schema import AttributeSchema, Parameter, Signature, declare
from foldline.support.dtypes import ELEMENT_TYPES

_ANY = frozenset(f"tensor({row.name})" for row in ELEMENT_TYPES)
_BODY = AttributeSchema("body", AttributeProto.GRAPH, True, None)

declare(
    [
        Signature(
            FUSED_DOMAIN,
            "ElementWise",
            since=1,
            inputs=(),
            outputs=(Parameter("Y", _ANY, "T", False, False, True),),
            attributes={"body": _BODY},
            min_inputs=0,
            max_inputs=0,
            min_outputs=1,
            max_outputs=1,
            is_deprecated=False,
            has_function=False,
        )
    ]
)


@onnx_op("ElementWise", FUSED_DOMAIN, name="fused.ElementWise")
class ElementWiseOp(OnnxOp):
    """Element-wise operators that run together: on each part of the data in turn, where that pays.

    The body reads values from outside directly, as that of an If does, and has one result. It is
    what the operation stands for: lowering and files take the operators out again.
    """

    traits = traits_def(RecursiveMemoryEffect())

    def body_arity(self, name: str) -> BodyArity:
        """No inputs, one output."""
        del name
        return BodyArity(0, 1)
