"""attention: one operator for softmax(Q K') V with its scale, its mask and its transposes.

    MatMul(Softmax(Add(Mul(MatMul(q, k'), 0.125), mask)), v)
        ->   fused Attention(q, k, v, mask) {scale = 0.125}

The scale may stand on the scores, or on queries and keys. The mask is added, or chosen by Where
with a constant. Transposes before and after become attributes, as the kernel reads and writes any
order of axes; one that something else reads stays, and so does one after which the axis stored
last is none of a matrix. Keys and values of which several heads are copies are read uncopied;
files that were optimised before have no copies, but queries and scores reshaped to longer heads.
Where(IsNaN(shares), 0, shares), which some exporters write, is part of it.

Last bits move: scores are computed in tiles, the scale goes to the queries, the division last.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.ir import SSAValue

from foldline.dialects.onnx.nn import DropoutOp
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.shape import ReshapeOp, TransposeOp
from foldline.dialects.onnx.types import element_of, element_type, rank
from foldline.stages.replacing import only_reader
from foldline.stages.rewrite.attention_scores import scores_of
from foldline.stages.rewrite.attention_source import (
    Lined,
    Source,
    counts_heads,
    has_shape,
    lined_up,
    reshaped,
    source_of,
)
from foldline.stages.rewrite.building import RuleBuilder
from foldline.stages.rewrite.match import Match
from foldline.stages.rewrite.pattern import Pattern
from foldline.stages.rewrite.rule_pass import RulePass, built_in
from foldline.stages.rewrite.tracing import is_near
from foldline.stages.rewrite.transform import Transform
from foldline.stages.symbols.expression import Expr
from foldline.support.dtypes import BY_NAME
from foldline.support.passes import PASSES

REAL = frozenset(BY_NAME[name] for name in ("float", "double", "float16", "bfloat16"))


def _pattern(guarded: bool, lined: bool = False) -> Pattern:
    """From the shares on; what is before them has too many forms, see `scores_of`.

    `lined`: heads that share keys are lined up, see `Lined`.
    """
    pattern = Pattern()
    shares = pattern.node("Softmax", name="softmax")
    if guarded:
        where = pattern.node("Where", name="guard")
        test = pattern.node("IsNaN", name="isnan")
        pattern.edge(shares, test, 0)
        pattern.edge(test, where, 0)
        pattern.constant(where, 1, is_near(0.0))
        pattern.edge(shares, where, 2)
        shares = where
    if lined:
        between = pattern.node("Reshape", where=counts_heads, name="together")
        view = pattern.node("Reshape", where=counts_heads, name="view")
    else:
        between = pattern.node("Dropout", where=_is_idle, name="dropout", optional=True)
        view = pattern.node("Reshape", where=_is_transposed, name="view", optional=True)
    out = pattern.node("MatMul", name="out")
    merge = pattern.node("Transpose", where=_moves, name="merge", optional=True)
    pattern.edge(shares, between, 0)
    pattern.edge(between, out, 0)
    pattern.edge(out, view, 0)
    pattern.edge(view, merge, 0)
    pattern.results = [(merge, 0)]
    return pattern


def _is_idle(op: NodeOp) -> bool:
    return isinstance(op, DropoutOp) and not op.may_train()


def _is_transposed(op: NodeOp) -> bool:
    """Whether all that reads a result is one Transpose."""
    return isinstance(only_reader(op.results[0]), TransposeOp)


def _moves(op: NodeOp) -> bool:
    """Whether a transpose leaves rows of the result whole."""
    perm = op.permutation() if isinstance(op, TransposeOp) else None
    return perm is not None and len(perm) - 1 in perm[-2:]


def _is_attention(match: Match) -> bool:
    softmax, out = match.op("softmax"), match.op("out")
    value = softmax.operands[0]
    axes, element = rank(value.type), element_type(value.type)
    if axes is None or axes < 2 or element is None:
        return match.refuse("the rank or the type of the scores is not known")
    if element_of(element) not in REAL:
        return match.refuse(f"scores of {element} are not computed at once")
    axis = softmax.attribute_values()["axis"]
    if axis not in (-1, axes - 1):
        return match.refuse(f"Softmax is along axis {axis} of {axes}, not along the last")
    together, lined = _named(match, "together"), None
    if together is not None:
        lined = lined_up(together, match.op("view"))
        if lined is None:
            return match.refuse("the reshapes around the product with values line up no heads")
    scores = scores_of(value, axes, lined)
    if isinstance(scores, str):
        return match.refuse(scores)
    q, k = scores.product.operands
    if lined is not None:
        q = reshaped(q, lined.together, value)
        if q is None:
            return match.refuse("queries are not lined up as the shares are")
    operands = (q, k, out.operands[1])
    ranks = [rank(operand.type) for operand in operands]
    if ranks != [axes] * 3:
        return match.refuse(f"queries, keys and values have ranks {ranks}, scores {axes}")
    masked = 0 if scores.mask is None else rank(scores.mask.type)
    if masked is None or masked > axes:
        return match.refuse(f"the mask has rank {masked}, the scores {axes}")
    if lined is not None and not _fit(match, operands, lined):
        return False
    q, k, v = _sources(match, operands, axes, lined)
    scale = scores.scale * q.scale * k.scale
    with np.errstate(over="ignore"):
        held = float(np.float32(scale))
    exact = element_of(element) is not BY_NAME["double"] or held == scale
    if not math.isfinite(held) or held == 0 or not exact:
        return match.refuse(f"the scale {scale!r} is not kept by a float32")
    match.notes.update(q=q, k=k, v=v, scale=held, scores=scores)
    return True


def _sources(
    match: Match, operands: Sequence[SSAValue], axes: int, lined: Lined | None
) -> tuple[Source, Source, Source]:
    q, k, v = operands
    known = match.knowledge
    query = source_of(q, axes, known)
    if lined is not None:
        key, value = source_of(k, axes, known), source_of(v, axes, known, scales=False)
        return query, lined.shared(key), lined.shared(value)
    for trusting in (match.lease.trusting, None):
        key = source_of(k, axes, known, trusting=trusting)
        value = source_of(v, axes, known, scales=False, trusting=trusting)
        if (key.groups, key.kv_heads) == (value.groups, value.kv_heads):
            return query, key, value
    raise AssertionError("without shared heads there are no groups")


def _fit(match: Match, operands: Sequence[SSAValue], lined: Lined) -> bool:
    """Whether queries have the heads that are lined up, and keys and values the shared ones.

    Equal names mean equal sizes here, as where heads were first found to be shared.
    """
    dims = [match.lease.trusting.dims(operand) for operand in operands]
    heads = [None if found is None else found[1].value for found in dims]
    wanted = [lined.heads, lined.kv_heads, lined.kv_heads]
    return heads == wanted or match.refuse(f"there are {heads} heads, not {wanted}")


def _named(match: Match, name: str) -> NodeOp | None:
    """The operation of a node that not all of the patterns have."""
    return match[name] if name in {node.name for node in match.pattern.nodes} else None


def _fused(build: RuleBuilder, match: Match) -> SSAValue:
    q, k, v, scores = (match.notes[name] for name in ("q", "k", "v", "scores"))
    view, merge = None if _named(match, "together") else match["view"], match["merge"]
    assert merge is None or isinstance(merge, TransposeOp)
    is_merged = merge is not None and (view is None or _is_idle_view(match, view))
    is_shared = k.groups > 1
    y = build.fused(
        "Attention",
        *(_stored(build, source) for source in (q, k, v)),
        scores.mask,
        groups=k.groups if is_shared else None,
        guarded=1 if _named(match, "guard") else None,
        key_perm=_given((*k.perm[:-2], k.perm[-1], k.perm[-2])),
        kv_heads=k.kv_heads if is_shared else None,
        mask_keeps=None if scores.mask_keeps else 0,
        mask_value=scores.mask_value,
        output_perm=merge.permutation() if merge is not None and is_merged else None,
        query_perm=_given(q.perm),
        scale=match.notes["scale"],
        value_perm=_given(v.perm),
    )
    for op in () if is_merged else (view, merge):
        y = y if op is None else build.like(op, [y, *op.operands[1:]])
    return y


def _is_idle_view(match: Match, view: NodeOp) -> bool:
    """Whether a Reshape gives the result the axes that it has: exporters write such ones."""
    known = match.knowledge
    dims: list[tuple[Expr, ...]] = []
    for name in ("q", "k", "v"):
        source: Source = match.notes[name]
        found = known.dims(source.value)
        if found is None or source.target is not None or source.groups > 1:
            return False
        dims.append(tuple(found[axis] for axis in source.perm))
    q, k, v = dims
    if not q[:-2] == k[:-2] == v[:-2] or not isinstance(view, ReshapeOp):
        return False
    return has_shape(view, (*q[:-1], v[-1]), known)


def _stored(build: RuleBuilder, source: Source) -> SSAValue:
    if source.target is None:
        return source.value
    return build.op("Reshape", source.value, shape=source.target)


def _given(perm: tuple[int, ...]) -> tuple[int, ...] | None:
    return None if perm == tuple(range(len(perm))) else perm


_PATTERNS = [_pattern(guarded, lined) for lined in (False, True) for guarded in (False, True)]
TRANSFORM = built_in("attention", _PATTERNS, _fused, _is_attention)


@dataclass(frozen=True)
class Attention(RulePass):
    """Make attention one operator."""

    name = "attention"
    INFO: ClassVar = PASSES["attention"]

    @property
    def transform(self) -> Transform:
        """The rule."""
        return TRANSFORM
