"""Random activations in parts, and random normalisations in parts."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tests.stages.passes.fusion.random_graphs import Family, Graph


def _rows(g: Graph, *, special: bool = True, reach: float = 3.0) -> tuple[str, int]:
    """An input of any shape, maybe behind other nodes; its rank."""
    shape = g.shape(0, 4)
    x = g.input(g.normal(*shape, reach=reach), special=special)
    return g.chain(x, 1), len(shape)


def _times(g: Graph, x: str, value: float, rank: int) -> str:
    """Times a number, by Mul or Div."""
    if g.chance(0.3):
        return g.op("Div", x, g.number(1 / value, rank))
    return g.both("Mul", x, g.number(value, rank))


def _product(g: Graph, x: str, core: str, factor: float, rank: int) -> str:
    """`x * core * factor` in any order."""
    match int(g.rng.integers(3)):
        case 0:
            return _times(g, g.both("Mul", x, core), factor, rank)
        case 1:
            return g.both("Mul", x, _times(g, core, factor, rank))
        case _:
            return g.both("Mul", _times(g, x, factor, rank), core)


def gelu(g: Graph) -> str:
    """Gelu by Erf."""
    x, rank = _rows(g)
    erf = g.op("Erf", _times(g, x, math.sqrt(0.5), rank))
    return _product(g, x, g.both("Add", erf, g.number(1, rank)), 0.5, rank)


def tanh_gelu(g: Graph) -> str:
    """Gelu by Tanh of a polynomial."""
    x, rank = _rows(g, reach=2.0)
    slope, cubic = math.sqrt(2 / math.pi), 0.044715
    if g.chance(0.3):
        square = g.both("Mul", x, x) if g.chance(0.5) else g.op("Pow", x, g.number(2, rank))
        inner = g.both("Add", g.both("Mul", square, g.number(cubic, rank)), g.number(1, rank))
        inner = g.both("Mul", x, inner)
    else:
        cube = g.op("Pow", x, g.number(3, rank))
        if g.chance(0.4):
            cube = g.both("Mul", x, g.both("Mul", x, x))
        inner = g.both("Add", x, g.both("Mul", cube, g.number(cubic, rank)))
    tanh = g.op("Tanh", g.both("Mul", inner, g.number(slope, rank)))
    return _product(g, x, g.both("Add", tanh, g.number(1, rank)), 0.5, rank)


def swish(g: Graph) -> str:
    """Swish, and the quick Gelu."""
    x, rank = _rows(g)
    inner = x
    if g.chance(0.7):
        inner = _times(g, x, g.pick((1.702, 1.702, 1.0, 0.5, -1.0, 0.0)) or 1e-9, rank)
    return g.both("Mul", x, g.op("Sigmoid", inner))


def hard(g: Graph) -> str:
    """HardSigmoid, or HardSwish."""
    x, rank = _rows(g)
    if g.chance(0.3):
        alpha, beta = g.pick(((0.2, 0.5), (1 / 6, 0.5), (-0.5, 0.25), (0.0, 2.0)))
        scaled = _times(g, x, alpha or 1e-3, rank)
        return g.clip(g.both("Add", scaled, g.number(beta, rank)), 0, 1)
    if g.chance(0.2):
        alpha = 0.2 if g.chance(g.slips) else 1 / 6
        return g.both("Mul", x, g.op("HardSigmoid", x, alpha=alpha, beta=0.5))
    shifted = g.both("Add", x, g.number(3, rank))
    within = g.clip(shifted, 0, 6)
    if g.chance(0.3):
        within = g.both("Min", g.op("Relu", shifted), g.number(6, rank))
    return _product(g, x, within, 1 / 6, rank) if g.chance(0.6) else _times(g, within, 1 / 6, rank)


def soft(g: Graph) -> str:
    """Softplus, or Mish. Where Exp overflows and at -inf they are what their parts only mean."""
    x, rank = _rows(g, special=False)
    softplus = g.op("Log", g.both("Add", g.op("Exp", x), g.number(1, rank)))
    if g.chance(0.3):
        softplus = g.op("Softplus", x)
    elif g.chance(0.4):
        return softplus
    return g.both("Mul", x, g.op("Tanh", softplus))


def _square(g: Graph, x: str) -> str:
    return g.op("Pow", x, g.number(2)) if g.chance(0.6) else g.op("Mul", x, x)


def _by_root(g: Graph, x: str, squares: str, epsilon: float, rank: int) -> str:
    inner = g.both("Add", squares, g.number(epsilon, rank))
    if g.chance(0.2):
        return g.both("Mul", x, g.op("Pow", inner, g.number(-0.5)))
    root = g.op("Pow", inner, g.number(0.5)) if g.chance(0.2) else g.op("Sqrt", inner)
    if g.chance(0.5):
        return g.op("Div", x, root)
    inverse = g.op("Reciprocal", root) if g.chance(0.5) else g.op("Div", g.number(1), root)
    return g.both("Mul", x, inverse)


def _centred(g: Graph, x: str, mean: Callable[[str], str]) -> tuple[str, str]:
    """Rows less their mean, and their variance."""
    middle = mean(x)
    centred = g.op("Sub", x, middle)
    if g.dtype == np.float16 or g.chance(0.6):
        again = g.op("Sub", x, middle) if g.chance(0.3) else centred
        return centred, mean(_square(g, again))
    variance = g.op("Sub", mean(_square(g, x)), _square(g, middle))
    return centred, g.both("Max", variance, g.number(0)) if g.chance(0.4) else variance


def rows(g: Graph) -> str:
    """LayerNormalization and RMSNormalization."""
    shape = (*g.shape(0, 3), g.size(1, 3, 4, 8))
    count = 1 if len(shape) == 1 or g.chance(0.7) else 2
    fixed = range(-count, 0) if g.chance(0.8) else ()
    x = g.chain(g.input(g.normal(*shape, reach=2), fixed=fixed, special=True), 1)
    rank = len(shape)
    given, kept = g.dtype, x
    if widened := given == np.float16 and g.chance(0.5):
        kept, g.dtype = g.op("Cast", x, to=1), np.float32
    axes = [axis if g.chance(0.7) else axis + rank for axis in range(-count, 0)]
    if g.chance(g.slips):
        axes = [0]

    def mean(value: str) -> str:
        return g.mean(value, *axes)

    epsilon = g.pick((1e-5, 1e-6, 1e-3))
    shifted = g.chance(0.5)
    centred, squares = _centred(g, kept, mean) if shifted else (kept, mean(_square(g, kept)))
    y = _by_root(g, centred, squares, epsilon, rank)
    early = g.chance(0.5)
    if widened and early:
        y, g.dtype = g.op("Cast", y, to=10), given
    for kind, among in (("Mul", 0.7), ("Add", 0.6 * shifted + 0.1)):
        if g.chance(among):
            own = shape[g.pick((-1, -count, -count)) :]
            own = g.pick((own, own, (), (1,), (1, *own)))
            y = g.both(kind, y, g.constant(g.normal(*own)))
    if widened and not early:
        y, g.dtype = g.op("Cast", y, to=10), given
    g.dtype = given
    return y


def groups(g: Graph) -> str:
    """GroupNormalization by InstanceNormalization."""
    count, each = g.pick((1, 2, 3)), g.pick((1, 2, 4))
    space = tuple(g.pick((2, 3, 4)) for _ in range(g.pick((1, 2, 2))))
    shape = (g.pick((1, 2)), count * each, *space)
    g.unnamed = False
    x = g.chain(g.input(g.normal(*shape, reach=2), fixed=(1,), special=True), 1)
    split = g.reshaped(x, 0, count, -1)
    ones, zeros = (
        g.constant(np.full(count, 2.0 * g.chance(g.slips) + value, g.dtype)) for value in (1, 0)
    )
    norm = g.op("InstanceNormalization", split, ones, zeros, epsilon=1e-5)
    if g.chance(0.5):
        y = g.op("Reshape", norm, g.op("Shape", x))
    else:
        y = g.reshaped(norm, *(n if i or g.chance(0.5) else 0 for i, n in enumerate(shape)))
    for kind in ("Mul", "Add"):
        own = (shape[1], *(1 for _ in space))
        own = g.pick((own, own, own, (1, *own), (1,)))
        y = g.both(kind, y, g.constant(g.normal(*own)))
    return y


FAMILIES = {
    "gelu": Family(gelu, ("gelu",), by_inputs=True),
    "tanh gelu": Family(tanh_gelu, ("tanh-gelu",), by_inputs=True),
    "swish": Family(swish, ("swish", "quick-gelu"), by_inputs=True),
    "hard": Family(hard, ("hard-sigmoid", "hard-swish"), by_inputs=True),
    "soft": Family(
        soft, ("softplus", "mish"), opsets=(18, 20, 21, 23, 24, 9, 11, 13, 17), by_inputs=True
    ),
    "rows": Family(
        rows,
        ("layer-normalization", "rms-normalization"),
        limits={np.float32: 1e-4, np.float64: 1e-11, np.float16: 3e-2},
    ),
    "groups": Family(
        groups,
        ("group-normalization",),
        limits={np.float32: 1e-4, np.float64: 1e-11, np.float16: 3e-2},
    ),
}
