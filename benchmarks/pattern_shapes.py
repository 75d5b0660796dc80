"""The shapes of patterns: each function says which nodes an operation stands for, None for none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from foldline.dialects.fused import FUSED_DOMAIN
from foldline.dialects.onnx.constant import constant_tensor
from foldline.dialects.onnx.op import NodeOp
from foldline.stages.replacing import only_reader

Found: TypeAlias = "list[NodeOp] | None"
"""The nodes of an instance, the one that stands for it first and its last one last."""

CONVOLUTIONS = ("Conv", "ConvTranspose")
PRODUCTS = ("MatMul", "Gemm")
ACTIVATIONS = (
    *("Clip", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Relu", "Sigmoid", "Swish", "Tanh"),
)
FUSED_ACTIVATIONS = ("Gelu", "HardSwish", "Mish", "Swish")
SCALING = ("Add", "Div", "Mul", "Sub")
BETWEEN_PRODUCTS = (*SCALING, "Cast", "Dropout", "Max", "Reshape", "Transpose", "Where")
MOST_BETWEEN = 6


def batch_normalised(op: NodeOp) -> Found:
    """Conv and BatchNormalization of constants."""
    conv = _maker(op.operands[0], *CONVOLUTIONS) if _is(op, "BatchNormalization") else None
    if conv is None or _reader(conv, "BatchNormalization") is not op:
        return None
    return [op, conv, op] if all(map(_is_constant, op.operands[1:])) else None


def activated(op: NodeOp) -> Found:
    """Conv, what is folded into it, and an activation of one node or several."""
    if op.op_type not in CONVOLUTIONS or op.attribute_values().get("activation"):
        return None
    if op.operand(3) is not None:
        return None  # It has taken another sum in, which stood between.
    nodes = [op]
    while True:
        scaling = _reader(nodes[-1], "BatchNormalization", *SCALING)
        if scaling is None:
            break
        others = [value for value in scaling.operands if value.owner is not nodes[-1]]
        if not others or not all(map(_is_channels, others)):
            break
        nodes.append(scaling)
    for last in range(len(nodes) - 1, -1, -1):
        found = _activation_of(nodes[last].results[0])
        if found is not None:
            return [*nodes[: last + 1], *found]
    return None


def _is_channels(value: SSAValue) -> bool:
    """Whether a constant has at most one axis that is longer than 1, and no number alone."""
    tensor = constant_tensor(value)
    return tensor is not None and sum(size > 1 for size in tensor.array.shape) == 1


def _activation_of(value: SSAValue) -> Found:
    """The activation that all readers of a value belong to."""
    readers = {use.operation for use in value.uses}
    for op in readers:
        if not isinstance(op, NodeOp):
            return None
        for kind in (swish, hard_swish, gelu):
            nodes = next((n for root in _roots(op) if (n := kind(root)) is not None), None)
            if nodes is not None and readers.issubset(nodes):
                return nodes
    only = only_reader(value)
    alone = isinstance(only, NodeOp) and _is_activation(only) and only.operands[0] is value
    return [only] if alone and isinstance(only, NodeOp) and _bounds_are_known(only) else None


def _is_activation(op: NodeOp) -> bool:
    return _is(op, *ACTIVATIONS) or (op.domain == FUSED_DOMAIN and op.op_type in FUSED_ACTIVATIONS)


def _roots(op: NodeOp) -> Iterator[NodeOp]:
    """The operator and what reads it alone: nodes that may stand for an activation."""
    for _ in range(3):
        yield op
        reader = only_reader(op.results[0])
        if not isinstance(reader, NodeOp):
            return
        op = reader


def _bounds_are_known(op: NodeOp) -> bool:
    return all(_is_constant(value) for value in op.operands[1:] if op.op_type == "Clip")


def swish(op: NodeOp) -> Found:
    """x Sigmoid(x), x Sigmoid(c x)."""
    product = _reader(op, "Mul") if _is(op, "Sigmoid") else None
    if product is None:
        return None
    x = op.operands[0]
    scaling = _maker(x, "Mul")
    candidates = [x]
    if scaling is not None and any(_number(v) is not None for v in scaling.operands):
        candidates += scaling.operands
    others = [value for value in product.operands if value.owner is not op]
    if not others or others[0] not in candidates:
        return None
    return [op, product] if others[0] is x or scaling is None else [op, scaling, product]


def hard_swish(op: NodeOp) -> Found:
    """x Clip(x + 3, 0, 6) / 6, x HardSigmoid(x)."""
    if _is(op, "HardSigmoid"):
        product = _reader(op, "Mul")
        slope = op.attribute_values().get("alpha")
        is_one = isinstance(slope, float) and abs(slope - 1 / 6) < 1e-4
        whole = product is not None and op.operands[0] in product.operands and is_one
        return [op, product] if product is not None and whole else None
    shifted = _maker(op.operands[0], "Add") if _is(op, "Clip", "Min") else None
    x = None if shifted is None else _with_number(shifted, 3.0)
    first = None if x is None else _reader(op, "Mul", "Div")
    second = None if first is None else _reader(first, "Mul", "Div")
    if shifted is None or first is None or second is None:
        return None
    whole = any(x is value for node in (first, second) for value in node.operands)
    return [op, shifted, first, second] if whole else None


def gelu(op: NodeOp) -> Found:
    """x/2 (1 + Erf(x / sqrt(2))), and with Tanh for Erf."""
    if not _is(op, "Erf", "Tanh"):
        return None
    shifted = _reader(op, "Add")
    product = None if shifted is None else _reader(shifted, "Mul")
    if shifted is None or product is None or _with_number(shifted, 1.0) is None:
        return None
    inner = _maker(op.operands[0], "Mul", "Div")
    if inner is None:
        return None
    nodes = [op, inner, shifted, product]
    halved = _reader(product, "Mul", "Div")
    half = None if halved is None else (_with_number(halved, 0.5) or _with_number(halved, 2.0))
    if halved is not None and half is not None:
        return [*nodes, halved]
    following = None if halved is None or halved.op_type == "Div" else halved
    has_half = any(_with_number(m, 0.5) is not None for m in _makers(product, "Mul"))
    return nodes if has_half or following is None else [*nodes, following]


def _is_root(op: NodeOp) -> bool:
    """Whether a node takes a square root, or the inverse of one."""
    exponent = _number(op.operands[1]) if _is(op, "Pow") else None
    return _is(op, "Sqrt") or exponent in (0.5, -0.5)


def _normalised(op: NodeOp) -> tuple[NodeOp, NodeOp, SSAValue] | None:
    """What adds epsilon, the mean of the squares, and what is squared."""
    added = _maker(op.operands[0], "Add") if _is_root(op) else None
    if added is None or all(_number(value) is None for value in added.operands):
        return None
    mean = next(_makers(added, "ReduceMean"), None)
    squared = None if mean is None else _maker(mean.operands[0], "Mul", "Pow")
    if mean is None or squared is None:
        return None
    by_itself = squared.op_type == "Mul" and squared.operands[0] is squared.operands[1]
    is_square = by_itself or _number(squared.operands[1]) == 2
    return (added, mean, squared.operands[0]) if is_square else None


def layer_normalised(op: NodeOp) -> Found:
    found = _normalised(op)
    if found is None:
        return None
    centred = _maker(found[2], "Sub")
    middle = None if centred is None else next(_makers(centred, "ReduceMean"), None)
    return None if middle is None else [op, *found[:2], middle]


def rms_normalised(op: NodeOp) -> Found:
    found = _normalised(op)
    return None if found is None or layer_normalised(op) is not None else [op, *found[:2]]


def attention(op: NodeOp) -> Found:
    """MatMul, what scales and masks, Softmax, MatMul."""
    if not _is(op, "Softmax"):
        return None
    scores = _scores(op.operands[0], MOST_BETWEEN)
    nodes = [op]
    while (reader := _reader(nodes[-1], "MatMul", *BETWEEN_PRODUCTS, "IsNaN")) is not None:
        nodes.append(reader)
        if reader.op_type == "MatMul" or len(nodes) > MOST_BETWEEN:
            break
    ends = {use.operation for use in op.results[0].uses}
    if len(ends) == 2:
        guard = next((e for e in ends if isinstance(e, NodeOp) and _is(e, "Where")), None)
        out = None if guard is None else _reader(guard, "MatMul")
        nodes += [] if guard is None or out is None else [guard, out]
    if not scores or not _is(nodes[-1], "MatMul") or len(nodes) == 1:
        return None
    return [op, *scores, *nodes[1:]]


def _scores(value: SSAValue, steps: int) -> Found:
    """The way from a product of two computed matrices to a value."""
    op = _maker(value, "MatMul", *BETWEEN_PRODUCTS)
    if op is None or steps == 0:
        return None
    if op.op_type == "MatMul":
        return [op] if not any(map(_is_constant, op.operands)) else None
    for operand in op.operands:
        found = None if constant_tensor(operand) is not None else _scores(operand, steps - 1)
        if found is not None:
            return [*found, op]
    return None


def biased(op: NodeOp) -> Found:
    """MatMul with constant weights, and Add of a constant vector."""
    product = next(_makers(op, "MatMul"), None) if _is(op, "Add") else None
    if product is None or _reader(product, "Add") is not op:
        return None
    others = [constant_tensor(value) for value in op.operands if value.owner is not product]
    is_vector = all(t is not None and max(t.array.shape[:-1], default=1) == 1 for t in others)
    return [op, product] if is_vector and _is_constant(product.operands[1]) else None


def gemm(op: NodeOp) -> Found:
    return [op] if _is(op, "Gemm") and _is_constant(op.operands[1]) else None


def of_integers(product: str) -> Callable[[NodeOp], Found]:
    def find(op: NodeOp) -> Found:
        """A product of integers that becomes floats and is scaled."""
        if not _is(op, product):
            return None
        cast = _reader(op, "Cast")
        added = None if cast is not None else _reader(op, "Add")
        cast = cast if added is None else _reader(added, "Cast")
        scaled = None if cast is None else _reader(cast, "Mul")
        nodes = (op, added, cast, scaled)
        return None if scaled is None else [node for node in nodes if node is not None]

    return find


def quantised(op: NodeOp) -> Found:
    """A product of what is dequantised, which is quantised."""
    if not _is(op, "Conv", *PRODUCTS):
        return None
    codes = [_maker(value, "DequantizeLinear") for value in op.operands[:2]]
    limit = _reader(op, "Relu", "Clip")
    last = _reader(op if limit is None else limit, "QuantizeLinear")
    return None if last is None or None in codes else [op, last]


def _maker(value: SSAValue, *operators: str) -> NodeOp | None:
    """What makes a value, if it is one of these operators of ONNX."""
    op = value.owner
    return op if isinstance(op, NodeOp) and _is(op, *operators) else None


def _reader(op: NodeOp, *operators: str) -> NodeOp | None:
    """The only reader of a node, if it is one of these operators."""
    reader = only_reader(op.results[0])
    return reader if isinstance(reader, NodeOp) and _is(reader, *operators) else None


def _makers(op: NodeOp, *operators: str) -> Iterator[NodeOp]:
    """The operands' makers that are one of these operators."""
    return (found for value in op.operands if (found := _maker(value, *operators)) is not None)


def _is(op: NodeOp, *operators: str) -> bool:
    return op.domain == "" and op.op_type in operators


def _is_constant(value: SSAValue) -> bool:
    """Whether a value is a constant, or one that was quantised."""
    while constant_tensor(value) is None:
        op = _maker(value, "Cast", "DequantizeLinear", "Mul", "Reshape", "Transpose")
        if op is None or (op.op_type == "Mul" and not _is_constant(op.operands[1])):
            return False
        value = op.operands[0]
    return True


def _number(value: SSAValue) -> float | None:
    tensor = constant_tensor(value)
    one = tensor is not None and tensor.array.size == 1 and tensor.array.dtype.kind in "fViu"
    return float(tensor.array.reshape(())) if tensor is not None and one else None


def _with_number(op: NodeOp, number: float) -> SSAValue | None:
    """The other operand of a node of two, one of which is a number."""
    for place, value in enumerate(op.operands[:2]):
        found = _number(value)
        if found is not None and np.isclose(found, number, rtol=1e-3):
            return op.operands[1 - place]
    return None
