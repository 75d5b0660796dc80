"""Whether a model holds values of half precision, or narrower floats."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from foldline.dialects.onnx.types import element_of, element_type

NARROW = frozenset(
    """
    float16 bfloat16 float8e4m3fn float8e4m3fnuz float8e5m2 float8e5m2fnuz float8e8m0 float4e2m1
    float6e2m3 float6e3m2 int4 uint4 int2 uint2
    """.split()
)
"""Half types, and those that are narrower still."""


def narrow_value(module: ModuleOp) -> str | None:
    """The element type of the first value of NARROW, if there is any."""
    for op in module.walk():
        arguments = [a for region in op.regions for block in region.blocks for a in block.args]
        for value in (*op.results, *arguments):
            name = _element_name(value)
            if name in NARROW:
                return name
    return None


def _element_name(value: SSAValue) -> str:
    attribute = element_type(value.type)
    known = None if attribute is None else element_of(attribute)
    return "" if known is None else known.name
