"""The fused dialect: single operators for groups that fusion forms and kernels compute at once."""

from __future__ import annotations

from xdsl.ir import Dialect

from foldline.dialects.fused.element_wise import ElementWiseOp
from foldline.dialects.fused.signatures import FUSED_DOMAIN, SIGNATURES
from foldline.dialects.onnx.generate import declared

OPERATORS = {
    **declared(SIGNATURES, "fused"),
    (FUSED_DOMAIN, ElementWiseOp.OP_TYPE): ElementWiseOp,
}
"""The class of each operator by domain and name."""

FUSED = Dialect("fused", list(OPERATORS.values()), [])

__all__ = ["FUSED", "FUSED_DOMAIN", "OPERATORS"]
