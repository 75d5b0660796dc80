"""Random attention, and random pairs turned by angles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.stages.passes.fusion.random_graphs import Family, Graph

FIRST = (0, 2, 1, 3)


def attention(g: Graph) -> str:
    """Attention of inputs, or of products with weights."""
    heads, size = g.pick((1, 2, 3)), g.pick((1, 2, 4))
    batch, queries = g.size(1, 2), g.size(1, 3, 4)
    g.unnamed = False
    is_cross = g.chance(0.3)
    keys = g.size(1, 2, 5) if is_cross else queries
    sources = _projected if g.chance(0.5) else _given
    q, k, v = sources(g, batch, (queries, keys), heads, size, is_cross)
    q, k, scores_scale = _scaled(g, q, k, size)
    scores = g.op("MatMul", q, k)
    if scores_scale == "Mul":
        scores = g.both("Mul", scores, g.number(1 / math.sqrt(size)))
    elif scores_scale == "Div":
        scores = g.op("Div", scores, g.number(math.sqrt(size)))
    scores = _masked(g, scores, batch, queries, keys)
    axis = 3 if g.opset < 13 or g.chance(0.5) else -1
    if g.chance(g.slips):
        axis = 2
    shares = g.op("Softmax", scores, axis=axis)
    if g.chance(0.1):
        shares = g.op("Where", g.op("IsNaN", shares), g.number(0), shares)
    y = g.op("MatMul", shares, v)
    if g.chance(0.7):
        y = g.op("Transpose", y, perm=FIRST if g.chance(0.9) else (0, 3, 1, 2))
        if 0 not in (batch, queries, keys) and g.chance(0.7):
            y = g.reshaped(y, 0, -1 if batch and queries else queries, heads * size)
    return y


def _scaled(g: Graph, q: str, k: str, size: int) -> tuple[str, str, str]:
    match where := g.pick(("Mul", "Div", "", "q", "both")):
        case "q":
            return g.both("Mul", q, g.number(1 / math.sqrt(size))), k, ""
        case "both":
            root = size**-0.25
            return g.both("Mul", q, g.number(root)), g.both("Mul", k, g.number(root)), ""
        case _:
            return q, k, where


def _masked(g: Graph, scores: str, batch: int, queries: int, keys: int) -> str:
    shape = g.pick(
        ((batch, 1, queries, keys), (queries, keys), (1, 1, 1, keys), (batch, 1, 1, keys))
    )
    hidden = g.rng.random(shape) < 0.3
    match int(g.rng.integers(4)):
        case 0:
            low = np.where(hidden, g.pick((-np.inf, -1e4)), 0).astype(g.dtype)
            return g.both("Add", scores, g.constant(low) if g.chance(0.5) else g.input(low))
        case 1:
            low = g.number(g.pick((-1e4, -np.inf)))
            mask = g.constant(hidden) if g.chance(0.5) else g.input(hidden)
            return g.op("Where", mask, *g.pick(((low, scores), (scores, low))))
        case _:
            return scores


def _given(
    g: Graph, batch: int, lengths: tuple[int, int], heads: int, size: int, is_cross: bool
) -> tuple[str, str, str]:
    """Queries, turned keys and values of inputs, stored in one of three orders."""
    del is_cross
    order = g.pick((FIRST, (0, 1, 2, 3), (1, 2, 0, 3)))
    found: list[str] = []
    for place in range(3):
        shape = (batch, heads, lengths[place > 0], size)
        back = tuple(int(axis) for axis in np.argsort(order))
        stored = g.normal(*shape).transpose(back).copy()
        x = g.input(stored, fixed=(order[1], 3))
        turned = (*order[:2], order[3], order[2])
        if place == 1 and g.chance(0.6):
            found.append(g.op("Transpose", x, perm=turned))
            continue
        if order != (0, 1, 2, 3) or g.chance(0.2):
            x = g.op("Transpose", x, perm=order)
        found.append(g.op("Transpose", x, perm=(0, 1, 3, 2)) if place == 1 else x)
    return found[0], found[1], found[2]


def _projected(
    g: Graph, batch: int, lengths: tuple[int, int], heads: int, size: int, is_cross: bool
) -> tuple[str, str, str]:
    """Queries, turned keys and values of products with weights."""
    width, inner = heads * size, g.pick((2, 3))
    x = g.input(g.normal(batch, lengths[0], inner), fixed=(2,))
    other = g.input(g.normal(batch, lengths[1], inner), fixed=(2,)) if is_cross else x
    biased = g.chance(0.5)
    found: list[str] = []
    for place in range(3):
        weights = g.constant(g.normal(inner, width))
        y = g.op("MatMul", other if place else x, weights)
        if biased or g.chance(0.1):
            y = g.both("Add", y, g.constant(g.normal(width)))
        fits = 0 not in (batch, lengths[0], lengths[1])
        y = g.reshaped(y, 0, g.pick((0, -1)) if fits else 0, heads, size)
        found.append(g.op("Transpose", y, perm=(0, 2, 3, 1) if place == 1 else FIRST))
    return found[0], found[1], found[2]


def rotary(g: Graph) -> str:
    """Pairs turned by cosines and sines; halves, or neighbours."""
    half = g.pick((1, 2, 4))
    shape = (*g.shape(1, 3), 2 * half)
    rank = len(shape)
    g.unnamed = False
    x = g.chain(g.input(g.normal(*shape), fixed=(-1,), special=True), 1)
    axis = g.pick((-1, rank - 1)) if g.opset >= 11 else rank - 1
    if g.chance(g.slips):
        axis = 0 if shape[0] == 2 * half else axis
    if interleaved := g.chance(0.3):
        first, second = (g.cut(x, start, 2 * half, rank - 1, 2) for start in (0, 1))
        left, right = (_unsqueeze(g, v, rank) for v in (g.op("Neg", second), first))
        pairs = g.op("Concat", left, right, axis=g.pick((-1, rank)) if g.opset >= 11 else rank)
        named = g.op("Shape", x) if g.chance(0.5) else None
        turned = g.op("Reshape", pairs, named or g.ints(*shape))
    else:
        if g.chance(0.5):
            first, second = g.split(x, half, half, axis=axis)
        else:
            end = g.pick((2 * half, 2**31 - 1, 2**63 - 1))
            first, second = g.cut(x, 0, half, axis), g.cut(x, half, end, axis)
        turned = g.op("Concat", g.op("Neg", second), first, axis=axis)
    angles = [_angle(g, shape, interleaved) for _ in range(2)]
    return g.both("Add", g.both("Mul", x, angles[0]), g.both("Mul", turned, angles[1]))


def _unsqueeze(g: Graph, x: str, axis: int) -> str:
    if g.opset >= 13:
        return g.op("Unsqueeze", x, g.ints(axis))
    return g.op("Unsqueeze", x, axes=[axis])


def _angle(g: Graph, shape: tuple[int, ...], interleaved: bool) -> str:
    del interleaved
    own: Any = g.pick((shape, shape[-2:], shape[-1:], (1, *shape[1:])))
    array = g.normal(*own)
    return g.constant(array) if g.chance(0.5) else g.input(array, fixed=(-1,))


FAMILIES = {
    "attention": Family(
        attention,
        ("attention", "attention-scale-fold", "qkv-merge"),
        opsets=(10, 11, 12, 13, 14, 17, 18, 20, 21, 23, 24),
        limits={np.float32: 1e-4, np.float64: 1e-11, np.float16: 2e-2},
    ),
    "rotary": Family(
        rotary,
        ("rotary-embedding",),
        opsets=(10, 11, 12, 13, 14, 17, 18, 20, 21, 23, 24),
        limits={np.float32: 1e-6, np.float64: 1e-14, np.float16: 2e-3},
    ),
}
