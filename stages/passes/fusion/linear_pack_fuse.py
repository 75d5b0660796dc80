"""linear-pack-fuse: a product with constant weights, its bias and its activation become one Linear.

    MatMul(A, B)                      ->   Linear(A, B)
    Relu(Add(MatMul(A, B), bias))     ->   Linear(A, B, bias) with activation Relu
    Tanh(Gemm(A, B, C) with transB)   ->   Linear(A, B, C) with transB and activation Tanh

B is a constant matrix of float32, or one dequantised of constants, which a session computes once;
for MatMul also of float16 or bfloat16, while Gemm of these rounds less often. A has two axes or
more. The bias is a constant, of one element
a column or one for all, that does not raise the rank. Gemm without alpha and transA; its beta is
multiplied into C here, as its kernel would. Requires that nothing else reads what lies between.
What cannot go along stays behind the Linear, with a remark. Bits are kept: the product, the one
rounded addition and the activation are those of the operators one by one, a tile at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import ml_dtypes
import numpy as np
from xdsl.ir import SSAValue

from foldline.dialects.fold.compact import is_compact
from foldline.dialects.fused.expand_linear import annotate
from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.nn import GemmOp, MatMulOp
from foldline.dialects.onnx.op import NodeOp, opset_versions
from foldline.dialects.onnx.tensor import Array, splat
from foldline.dialects.onnx.types import rank, static_shape
from foldline.stages.replacing import is_parametric
from foldline.stages.rewrite.activations import (
    ACTIVATION_OPERATORS,
    Activation,
    IsActivation,
    activation_of,
)
from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.quantised import is_dequantised_constant
from foldline.stages.rewrite.rule_pass import RulePass, built_in
from foldline.stages.rewrite.stand_in import element_of_value
from foldline.stages.rewrite.transform import Transform
from foldline.support.passes import PASSES

BROADCASTS = 7
"""From this version on, Add and Gemm broadcast without being told."""


GEMM_FLOATS = (np.dtype(np.float32),)
MATMUL_FLOATS = (*GEMM_FLOATS, np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
"""Types in which Linear rounds as often as the operators one by one."""


def weights_problem(op: NodeOp) -> str | None:
    """Why the product of an operator is not one with constant weights."""
    weights = op.operands[1]
    shape, element = static_shape(weights.type), element_of_value(weights)
    if constant_tensor(weights) is None and not is_dequantised_constant(weights):
        return "B is not constant"
    if shape is None or element is None:
        return "the type of B is not known"
    if len(shape) != 2:
        return f"B has shape {list(shape)}, and is no matrix"
    if element.numpy not in (GEMM_FLOATS if isinstance(op, GemmOp) else MATMUL_FLOATS):
        return f"B of {op.op_type} is {element.numpy.name}"
    if is_compact(op.operands[1]):
        return "B is held in a half type"
    axes = rank(op.operands[0].type)
    if axes is None:
        return "the rank of A is not known"
    return "A is a vector" if axes < 2 else None


def gemm_problem(op: GemmOp) -> str | None:
    """Why a Gemm is more than a product and a bias."""
    if is_parametric(op):
        return "its attributes are given by the callers of the function"
    alpha = op.value_of("alpha")
    if op.since < BROADCASTS:
        return f"Gemm of version {op.since} broadcasts only where an attribute says so"
    if alpha != 1:
        return f"alpha is {alpha}, not 1"
    if op.int_of("transA"):
        return "transA is set"
    return None if op.C is None else bias_problem(op.C, op)


def bias_problem(value: SSAValue, product: NodeOp) -> str | None:
    """Why a value is no bias of a product."""
    tensor = constant_tensor(value)
    if tensor is None:
        return "what is added is not constant"
    shape, columns = tensor.array.shape, _columns(product)
    if len(shape) > (rank(product.operands[0].type) or 0):
        return f"a bias of shape {list(shape)} raises the rank"
    if tensor.array.size != 1 and (shape[-1] != columns or tensor.array.size != columns):
        return f"a bias of shape {list(shape)} is no vector of {columns} columns"
    return None


def _columns(product: NodeOp) -> int | None:
    """The columns of B."""
    shape = static_shape(product.operands[1].type)
    is_transposed = isinstance(product, GemmOp) and product.int_of("transB")
    return None if shape is None else shape[0 if is_transposed else -1]


class _AddsBias:
    """The predicate that an Add adds a bias to a product."""

    def __call__(self, op: NodeOp) -> bool:
        return self.complaint(op) is None

    def complaint(self, op: NodeOp) -> str | None:
        """Why it does not."""
        products = [value.owner for value in op.operands if _is_product(value)]
        if len(products) != 1:
            return "it does not add something to one product"
        (product,) = products
        assert isinstance(product, NodeOp)
        version = opset_versions(op).get("", 0)
        if version < BROADCASTS:
            return f"Add of operator set {version} broadcasts only where an attribute says so"
        if isinstance(product, GemmOp):
            return "Gemm adds by itself"
        if weights_problem(product) is not None:
            return "the product is none with constant weights"
        other = next(value for value in op.operands if value.owner is not product)
        why = bias_problem(other, product)
        if why is None and op.operands[0] is other and _has_nan(other):
            return "a NaN of the bias comes first, and would give its bits to the sum"
        return why


def _is_product(value: SSAValue) -> bool:
    return isinstance(value.owner, MatMulOp | GemmOp)


def _has_nan(value: SSAValue) -> bool:
    tensor = constant_tensor(value)
    return tensor is not None and bool(np.isnan(tensor.array).any())


_ADDS_BIAS, _IS_ACTIVATION = _AddsBias(), IsActivation()


def _pattern() -> Pattern:
    pattern = Pattern()
    product = pattern.node(["MatMul", "Gemm"], name="product")
    add = pattern.node("Add", where=_ADDS_BIAS, name="add", optional=True)
    activation = pattern.node(
        ACTIVATION_OPERATORS, where=_IS_ACTIVATION, name="activation", optional=True
    )
    pattern.edge(product, add)
    pattern.edge(add, activation, 0)
    pattern.results = [(activation, 0)]
    return pattern


def _can_fuse(match: Match) -> bool:
    product = match.op("product")
    problem = weights_problem(product)
    if problem is None and isinstance(product, GemmOp):
        problem = gemm_problem(product)
    if problem is not None:
        return match.refuse(problem)
    if match["activation"] is None:
        _explain(match)
    return True


def _explain(match: Match) -> None:
    """Say why what comes next, if it could have been part of the Linear, is not."""
    last = match.ordered[-1]
    uses = list(last.results[0].uses)
    for op in dict.fromkeys(use.operation for use in uses):
        if not isinstance(op, NodeOp):
            continue
        if op.op_type == "Add" and match["add"] is None:
            why = _ADDS_BIAS.complaint(op)
        elif (op.domain, op.op_type) in _ACTIVATION_KEYS:
            why = _IS_ACTIVATION.complaint(op)
        else:
            continue
        match.leave(f"{op.op_type} stays: {why or 'others read what it reads as well'}")


_ACTIVATION_KEYS = {
    (domain, name) for domain, _, name in (key.rpartition("::") for key in ACTIVATION_OPERATORS)
}


def _fuse(build: RuleBuilder, match: Match) -> SSAValue:
    product, add, activation = match.op("product"), match["add"], match["activation"]
    A, B = product.operands[:2]
    applied = Activation("") if activation is None else activation_of(activation)
    assert isinstance(applied, Activation)
    bias = product.operand(2) if isinstance(product, GemmOp) else None
    if add is not None:
        bias = next(value for value in add.operands if value.owner is not product)
    elif bias is not None and isinstance(product, GemmOp):
        bias = _scaled(build, bias, product)
    is_transposed = isinstance(product, GemmOp) and product.int_of("transB")
    linear: SSAValue = build.fused(
        "Linear",
        *(A, B, *([] if bias is None else [bias])),
        product=product.op_type,
        transB=1 if is_transposed else None,
        activation=applied.name or None,
        activation_params=applied.params or None,
    )
    annotate(build.made[-1], product)
    return linear


def _scaled(build: RuleBuilder, bias: SSAValue, gemm: GemmOp) -> SSAValue:
    """C times beta, by the multiplication of the kernel."""
    beta, tensor = gemm.value_of("beta"), constant_tensor(bias)
    assert tensor is not None
    if beta == 1:
        return bias
    array: Array = tensor.array
    factor = array.dtype.type(beta)
    with np.errstate(all="ignore"):
        if tensor.data.is_splat:
            return build.constant(splat(array.flat[0] * factor, array.shape, array.dtype))
        return build.constant(array * factor)


TRANSFORM = built_in("linear-pack-fuse", _pattern(), _fuse, _can_fuse)


@dataclass(frozen=True)
class LinearPackFuse(RulePass):
    """Form Linear of products with constant weights."""

    name = "linear-pack-fuse"
    INFO: ClassVar = PASSES["linear-pack-fuse"]

    @property
    def transform(self) -> Transform:
        """The rule."""
        return TRANSFORM
