"""Types of the fused Linear."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute

from foldline.dialects.onnx.op import OnnxOp
from foldline.dialects.onnx.types import dims_of, with_dims


def linear(
    op: OnnxOp, types: Sequence[Attribute], constants: object
) -> tuple[Attribute, ...] | None:
    """The axes of A, the last one as long as B has columns (with transB: rows)."""
    a, b = (dims_of(type_) for type_ in types[:2])
    if a is None or b is None:
        return None
    return (with_dims(types[0], (*a[:-1], b[0 if op.int_of("transB") else 1])),)
