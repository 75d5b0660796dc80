"""qdq: a product between DequantizeLinear and QuantizeLinear becomes one of integers.

    QuantizeLinear(Conv(DequantizeLinear(x), DequantizeLinear(W), bias))   ->   QLinearConv
    QuantizeLinear(MatMul(DequantizeLinear(a), DequantizeLinear(b)))       ->   QLinearMatMul
    QuantizeLinear(Gemm(DequantizeLinear(a), DequantizeLinear(b), C))      ->   QLinearGemm

The bias of a Conv is a constant, dequantised or not, that becomes integers of the scale of the
product, and so is C. Gemm has no alpha, beta and transA, and counts as MatMul without C; a constant
b is transposed for transB. QLinearGemm is of the fused dialect: files get its parts.
A Relu or Clip before QuantizeLinear goes where saturation does the same. Scales and zero points are
constants, of 8-bit tensors, one each, or for W one a map and for b one a column. Results differ by
one quantum at most, as floats round where integers do not. Left alone: what is quantised in blocks,
to other types or in another precision; results that something else reads as floats; and what ONNX
Runtime would not load: codes of other types than those of the first input, except for uint8 with
int8 weights. A DequantizeLinear that others read stays for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from xdsl.ir import SSAValue

from foldline.dialects.onnx.attributes import ReferenceAttr
from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.math import ClipOp
from foldline.dialects.onnx.nn import ConvOp, GemmOp
from foldline.dialects.onnx.op import NodeOp, plain_value
from foldline.dialects.onnx.quantisation import QuantizeLinearOp
from foldline.dialects.onnx.tensor import Array
from foldline.dialects.onnx.types import dims_of, rank
from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.quantised import Codes, dequantised, quantised
from foldline.stages.rewrite.rule_pass import RulePass, built_in
from foldline.stages.rewrite.transform import Transform
from foldline.support.passes import PASSES

BIAS_ERROR = 1 / 64
"""By so many quanta of the result a bias may move when it is rounded to integers."""


def _pattern() -> Pattern:
    pattern = Pattern()
    product = pattern.node(["Conv", "MatMul", "Gemm"], name="product")
    limit = pattern.node(["Relu", "Clip"], name="limit", optional=True)
    quantise = pattern.node("QuantizeLinear", name="quantise")
    pattern.edge(product, limit, 0)
    pattern.edge(limit, quantise, 0)
    pattern.results = [(quantise, 0)]
    return pattern


def _can_quantise(match: Match) -> bool:
    product, quantise = match.op("product"), match.op("quantise")
    assert isinstance(quantise, QuantizeLinearOp)
    x, w = (dequantised(value) for value in product.operands[:2])
    y = quantised(quantise)
    for what, found in (("the input", x), ("the weight", w), ("the result", y)):
        if isinstance(found, str):
            return match.refuse(f"{what}: {found}")
    assert isinstance(x, Codes)
    assert isinstance(w, Codes)
    assert isinstance(y, Codes)
    problem = (
        _types_problem(x, w, y)
        or _limit_problem(match["limit"], y)
        or (_conv_problem if isinstance(product, ConvOp) else _matmul_problem)(match, x, w, y)
    )
    match.notes.update(x=x, w=w, y=y)
    return problem is None or match.refuse(problem)


def _types_problem(x: Codes, w: Codes, y: Codes) -> str | None:
    if x.axis is not None:
        return "the input has a scale for each index of an axis"
    if y.dtype != x.dtype:
        return f"the codes of the result are {y.dtype.name}, those of the input {x.dtype.name}"
    if w.dtype != x.dtype and x.dtype == np.int8:
        return f"the codes of the input are int8, those of the weight {w.dtype.name}"
    return None


def _limit_problem(limit: NodeOp | None, y: Codes) -> str | None:
    """Why saturation does not do what a Relu or Clip does."""
    if limit is None:
        return None
    low, high = 0.0, np.inf
    if isinstance(limit, ClipOp):
        bounds = limit.bounds()
        if bounds is None:
            return "the bounds of Clip are not constants of one element"
        low = -np.inf if bounds.minimum is None else float(bounds.minimum)
        high = np.inf if bounds.maximum is None else float(bounds.maximum)
        if low > high:
            return f"Clip has bounds {low:g} and {high:g}"
    info, zero, scale = np.iinfo(y.dtype), int(y.zero_array), y.scale.reshape(())
    with np.errstate(over="ignore"):
        least, most = (float(np.rint(np.float32(bound) / scale)) + zero for bound in (low, high))
    if least > info.min or most < info.max:
        return f"{limit.op_type} limits the codes to {least:g} and {most:g}, which are not the ends"
    return None


def _conv_problem(match: Match, x: Codes, w: Codes, y: Codes) -> str | None:
    conv = match.op("product")
    if any(isinstance(given, ReferenceAttr) for given in conv.onnx_attributes.values()):
        return "the window is a parameter of a function"
    if w.axis not in (None, 0):
        return f"the weight has a scale for each index of axis {w.axis}"
    if w.zero_array.size and (w.zero_array != w.zero_array.flat[0]).any():
        return "the zero points of the maps differ"
    codes = None if w.value is None else constant_tensor(w.value)
    if codes is None:
        return "the weight is not constant"
    sums = _absolute(codes.array, w).reshape(len(codes.array), -1).sum(axis=1)
    bias = conv.operand(2)
    found = None if bias is None else _integers(bias, x, w, y)
    match.notes["bias"] = found
    return found if isinstance(found, str) else _overflow(sums, x, found)


def _overflow(sums: Array, x: Codes, bias: Array | None) -> str | None:
    """Why sums of products may wrap around; `sums` are those of the weights."""
    largest = sums * _largest(x) + (0 if bias is None else np.abs(bias))
    return "sums of products may not fit into int32" if (largest >= 1 << 31).any() else None


def _sum_problem(
    match: Match, C: SSAValue, a: Codes, b: Codes, y: Codes, columns: int
) -> str | None:
    """Why C cannot be added to a product of integers."""
    codes = None if b.value is None else constant_tensor(b.value)
    if codes is None:
        return "C is added, and the second factor is not constant"
    shape, count = dims_of(C.type), codes.array.shape[columns]
    if shape not in ((count,), (1, count)):
        return f"C is not one number for each of {count} columns"
    found = _integers(C, a, b, y)
    match.notes["bias"] = found
    if isinstance(found, str):
        return found
    weights = np.moveaxis(codes.array, columns, 0)
    return _overflow(_absolute(weights, b).sum(axis=1), a, found)


def _absolute(codes: Array, w: Codes) -> Array:
    zero = w.zero_array.astype(np.int64)
    return np.abs(codes - (zero if zero.ndim == 0 else zero.reshape(-1, *[1] * (codes.ndim - 1))))


def _largest(x: Codes) -> int:
    info, zero = np.iinfo(x.dtype), int(x.zero_array)
    return max(info.max - zero, zero - info.min)


def _integers(bias: SSAValue, x: Codes, w: Codes, y: Codes) -> Array | str:
    """The bias in int32 of the scale of the product, held as int64."""
    given = _numbers(bias)
    if isinstance(given, str):
        return f"the bias: {given}"
    numbers = given.reshape(-1)
    scale = x.scale.reshape(()).astype(np.float64) * w.scale.astype(np.float64).reshape(-1)
    whole = np.rint(numbers / scale)
    if not (np.isfinite(whole).all() and (np.abs(whole) < 1 << 31).all()):
        return "the bias does not fit into int32"
    error = np.max(np.abs(whole * scale - numbers), initial=0) / float(y.scale.reshape(()))
    if error > BIAS_ERROR:
        return f"the bias would move by {error:.3g} quanta of the result"
    return whole.astype(np.int64)


def _numbers(bias: SSAValue) -> Array | str:
    tensor = constant_tensor(bias)
    if tensor is not None:
        return np.asarray(tensor.array, np.float64)
    codes = dequantised(bias, np.int32)
    if isinstance(codes, str):
        return codes
    integers = None if codes.value is None else constant_tensor(codes.value)
    if integers is None:
        return "it is not constant"
    centred = integers.array.astype(np.float64) - codes.zero_array
    return np.asarray(centred * codes.scale.astype(np.float64))


def _matmul_problem(match: Match, a: Codes, b: Codes, y: Codes) -> str | None:
    product = match.op("product")
    axes = [rank(value.type) for value in product.operands[:2]]
    if None in axes or 1 in axes or 0 in axes:
        return "a factor is not known to have two axes or more"
    columns = (axes[1] or 0) - 1
    if isinstance(product, GemmOp):
        if (problem := _gemm_problem(product, b)) is not None:
            return problem
        columns = 0 if product.int_of("transB") else 1
    if b.axis is not None and (axes[1] != 2 or b.axis != columns):
        return f"the second factor has a scale for each index of axis {b.axis}, not a column"
    if not isinstance(product, GemmOp) or product.C is None:
        return None
    return _sum_problem(match, product.C, a, b, y, columns)


def _gemm_problem(gemm: GemmOp, b: Codes) -> str | None:
    if any(isinstance(given, ReferenceAttr) for given in gemm.properties.values()):
        return "its attributes are parameters of a function"
    alpha = gemm.value_of("alpha")
    if alpha != 1:
        return f"alpha is {alpha}, not 1"
    if gemm.int_of("transA"):
        return "transA is set"
    if gemm.C is not None and gemm.value_of("beta") != 1:
        return f"beta is {gemm.value_of('beta')}, not 1"
    if gemm.int_of("transB") and (b.value is None or constant_tensor(b.value) is None):
        return "what is transposed is not constant"
    return None


def _quantise(build: RuleBuilder, match: Match) -> SSAValue:
    product = match.op("product")
    x, w, y = (match.notes[name] for name in ("x", "w", "y"))
    weights: SSAValue = w.value
    if isinstance(product, GemmOp) and product.C is not None:
        return _gemm(build, match, product)
    if isinstance(product, GemmOp) and product.int_of("transB"):
        tensor = constant_tensor(weights)
        assert tensor is not None
        weights = build.constant(np.ascontiguousarray(tensor.array.T))
    zero = _zero(build, w)
    inputs = [x.value, x.scale_value, x.zero_in(build), weights, w.scale_value, zero]
    inputs += [y.scale_value, y.zero_in(build)]
    if not isinstance(product, ConvOp):
        return build.op("QLinearMatMul", *inputs)
    if match.notes["bias"] is not None:
        assert product.B is not None
        inputs.append(_bias(build, product.B, match.notes["bias"]))
    given = product.onnx_attributes.items()
    window: dict[str, Any] = {name: plain_value(value) for name, value in given}
    return build.op("QLinearConv", *inputs, **window)


def _gemm(build: RuleBuilder, match: Match, gemm: GemmOp) -> SSAValue:
    x, w, y = (match.notes[name] for name in ("x", "w", "y"))
    assert gemm.C is not None
    return build.fused(
        "QLinearGemm",
        *(x.value, x.scale_value, x.zero_in(build)),
        *(w.value, w.scale_value, _zero(build, w)),
        *(y.scale_value, y.zero_in(build)),
        *(_bias(build, gemm.C, match.notes["bias"]), gemm.C),
        transB=gemm.int_of("transB") or None,
    )


def _zero(build: RuleBuilder, w: Codes) -> SSAValue:
    """The zero point of the weights: of the shape of the scale, or one for all."""
    if w.zero is None:
        return build.constant(np.zeros(w.scale.shape, w.dtype))
    return w.zero_in(build)


def _bias(build: RuleBuilder, bias: SSAValue, integers: Array) -> SSAValue:
    """The bias as int32: what is dequantised, where it is that."""
    codes = dequantised(bias, np.int32)
    if isinstance(codes, Codes) and codes.value is not None:
        tensor = constant_tensor(codes.value)
        if tensor is not None and np.array_equal(tensor.array, integers):
            return codes.value
    return build.constant(integers.astype(np.int32))


TRANSFORM = built_in("qdq", _pattern(), _quantise, _can_quantise)


@dataclass(frozen=True)
class Qdq(RulePass):
    """Form QLinearConv and QLinearMatMul."""

    name = "qdq"
    INFO: ClassVar = PASSES["qdq"]

    @property
    def transform(self) -> Transform:
        """The rule."""
        return TRANSFORM
