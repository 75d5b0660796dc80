"""Classes for the operators that no file writes by hand, made from their signatures."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.irdl import traits_def
from xdsl.traits import OpTrait, Pure

from foldline.dialects.onnx.math import ELEMENT_WISE
from foldline.dialects.onnx.op import OnnxOp, onnx_op
from foldline.dialects.onnx.schema import Signature, declare, operators
from foldline.dialects.onnx.traits import ElementWise, HoldsCache

CACHES: dict[tuple[str, str], tuple[int, ...]] = {
    ("", "Attention"): (4, 5),
    ("", "CausalConvWithState"): (3,),
    ("", "LinearAttention"): (3,),
    ("com.microsoft", "Attention"): (4,),
    ("com.microsoft", "GroupQueryAttention"): (3, 4),
    ("com.microsoft", "MultiHeadAttention"): (6, 7),
    ("com.microsoft", "QAttention"): (8,),
}
"""Inputs that carry keys and values, or states, of earlier runs."""


def complete(written: tuple[type[OnnxOp], ...]) -> dict[tuple[str, str], type[OnnxOp]]:
    """One class for each operator of the installed onnx: those written by hand, and the rest."""
    table = {(cls.DOMAIN, cls.OP_TYPE): cls for cls in written}
    for domain, op_type in operators():
        if (domain, op_type) not in table:
            table[domain, op_type] = _generated(domain, op_type)
    return table


def declared(signatures: Iterable[Signature], dialect: str) -> dict[tuple[str, str], type[OnnxOp]]:
    """One class for each declared operator, named `dialect.Operator`."""
    return {
        (entry.domain, entry.op_type): _generated(
            entry.domain, entry.op_type, f"{dialect}.{entry.op_type}"
        )
        for entry in declare(signatures)
    }


def _generated(domain: str, op_type: str, name: str | None = None) -> type[OnnxOp]:
    doc = f"ONNX `{op_type}` of domain `{domain or 'ai.onnx'}`, made from its schema."
    extra: list[OpTrait] = []
    if not domain and op_type in ELEMENT_WISE:
        extra.append(ElementWise())
    if (domain, op_type) in CACHES:
        extra.append(HoldsCache(CACHES[domain, op_type]))
    traits = traits_def(Pure(), *extra)
    members = {"__doc__": doc, "__module__": __name__, "traits": traits}
    return onnx_op(op_type, domain, name=name)(type(f"{op_type}Op", (OnnxOp,), members))
