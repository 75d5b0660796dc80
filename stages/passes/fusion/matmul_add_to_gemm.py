"""matmul-add-to-gemm: a product of matrices and what is added to it become one Gemm.

    Add(MatMul(A, B), C)   ->   Gemm(A, B, C)
    Add(Gemm(A, B), C)     ->   Gemm(A, B, C)

A and B are known to be matrices of floats, and C is known to broadcast to their product. Requires
that nothing else reads the product. Runtimes may add C before the products instead of after them,
so last bits may move.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.ir import SSAValue

from foldline.dialects.onnx.nn import GemmOp
from foldline.dialects.onnx.op import NodeOp, opset_versions
from foldline.dialects.onnx.schema import signature
from foldline.dialects.onnx.types import dims_of, element_of, element_type, rank
from foldline.stages.replacing import is_parametric
from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.rule_pass import RulePass, built_in
from foldline.stages.rewrite.transform import Transform
from foldline.support.passes import PASSES

BROADCASTS = 7
"""From this version on, Add and Gemm broadcast without being told."""

FLOATS = ("float", "double", "float16", "bfloat16")


def _pattern(operator: str) -> Pattern:
    pattern = Pattern()
    product, add = pattern.node(operator, name="product"), pattern.node("Add", name="add")
    if operator == "Gemm":
        pattern.no_operand(product, 2)
    pattern.edge(product, add)
    pattern.results = [(add, 0)]
    return pattern


def _can_join(match: Match) -> bool:
    product, add = match.op("product"), match.op("add")
    version = opset_versions(product).get("", 0)
    if version < BROADCASTS:
        return match.refuse(
            f"operators of version {version} broadcast only where attributes say so"
        )
    if is_parametric(product):
        return match.refuse("its attributes are given by the callers of the function")
    ranks = [rank(value.type) for value in product.operands[:2]]
    if ranks != [2, 2]:
        shown = " and ".join("unknown" if r is None else str(r) for r in ranks)
        return match.refuse(f"the factors have rank {shown}, not 2")
    element = element_type(product.operands[0].type)
    known = None if element is None else element_of(element)
    gemm = signature("", "Gemm", version)
    assert gemm is not None
    if (
        known is None
        or known.name not in FLOATS
        or f"tensor({known.name})" not in gemm.inputs[0].types
    ):
        return match.refuse(f"Gemm of version {version} takes no such products")
    added = _added(product, add)
    if added is None:
        return match.refuse("the product is added to itself")
    return _broadcasts(match, added, product)


def _broadcasts(match: Match, C: SSAValue, product: NodeOp) -> bool:
    """Whether C is known to take the shape of the product."""
    dims = dims_of(C.type)
    if dims is None or len(dims) > 2:
        return match.refuse("what is added is not known to have at most two axes")
    left, right = (dims_of(value.type) for value in product.operands[:2])
    assert left is not None
    assert right is not None
    is_left, is_right = (
        isinstance(product, GemmOp) and product.int_of(name) for name in ("transA", "transB")
    )
    shape = (left[1 if is_left else 0], right[0 if is_right else 1])
    for size, wanted in zip(reversed(dims), reversed(shape), strict=False):
        if size != 1 and not (isinstance(size, int) and size == wanted and size >= 0):
            return match.refuse(f"what is added has sizes {list(dims)}, the product {list(shape)}")
    return True


def _added(product: NodeOp, add: NodeOp) -> SSAValue | None:
    """What is added to the product; None if that is the product."""
    return next((value for value in add.operands if value.owner is not product), None)


def _join(build: RuleBuilder, match: Match) -> SSAValue:
    product = match.op("product")
    A, B = product.operands[:2]
    added = _added(product, match.op("add"))
    kept: dict[str, Any] = {}
    if isinstance(product, GemmOp):
        kept = {name: product.value_of(name) for name in ("alpha", "transA", "transB")}
    return build.op("Gemm", A, B, added, **kept)


TRANSFORM = built_in("matmul-add-to-gemm", [_pattern("MatMul"), _pattern("Gemm")], _join, _can_join)


@dataclass(frozen=True)
class MatmulAddToGemm(RulePass):
    """Join products of matrices and additions."""

    name = "matmul-add-to-gemm"
    INFO: ClassVar = PASSES["matmul-add-to-gemm"]

    @property
    def transform(self) -> Transform:
        """The rule."""
        return TRANSFORM
