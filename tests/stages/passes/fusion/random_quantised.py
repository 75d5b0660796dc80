"""Random quantised models: integers between DequantizeLinear and QuantizeLinear, and products."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.stages.passes.drawing import Array
from tests.stages.passes.fusion.random_graphs import Family, Graph
from tests.stages.passes.fusion.random_products import activated, norm, window

QUANTISED = (10, 11, 12, 13, 14, 17, 18, 19, 20, 21, 23, 24)
ONLY = (np.float32,)


def scale(g: Graph, count: int = 0, least: float = 0.02) -> Array:
    """A scale, or some."""
    shape = (count,) if count else ()
    return np.asarray(g.rng.uniform(least, 4 * least, shape), np.float32)


def zero(g: Graph, dtype: Any, count: int = 0) -> Array:
    """A zero point, or some, all alike."""
    middle = 0 if dtype == np.int8 else 128
    value = middle + (int(g.rng.integers(-20, 20)) if g.chance(0.4) else 0)
    return np.full((count,) if count else (), np.clip(value, *_ends(dtype)), dtype)


def _ends(dtype: Any) -> tuple[int, int]:
    info = np.iinfo(dtype)
    return info.min, info.max


def codes(g: Graph, *shape: int, dtype: Any, reach: int = 40) -> Array:
    """Integers around the middle."""
    middle = 0 if dtype == np.int8 else 128
    drawn = g.rng.integers(middle - reach, middle + reach, shape)
    return np.asarray(np.clip(drawn, *_ends(dtype)), dtype)


def dq(g: Graph, x: str, s: str, z: str | None, axis: int | None = None) -> str:
    """DequantizeLinear."""
    given = {} if axis is None or g.opset < 13 else {"axis": axis}
    return g.op("DequantizeLinear", x, s, *([] if z is None else [z]), **given)


def q(g: Graph, x: str, s: str, z: str | None) -> str:
    """QuantizeLinear."""
    return g.op("QuantizeLinear", x, s, *([] if z is None else [z]))


def activation_codes(g: Graph, array: Array, s: str, z: str) -> str:
    """Integers as an input, or floats that are quantised."""
    if g.chance(0.5):
        return g.input(array, fixed=range(1, array.ndim))
    floats = g.normal(*array.shape, reach=2)
    return q(g, g.input(floats, fixed=range(1, array.ndim)), s, z)


def result(g: Graph, y: str, dtype: Any, least: float) -> str:
    """The result quantised, and maybe dequantised again."""
    if g.chance(0.3):
        y = g.op("Relu", y) if g.chance(0.6) else g.clip(y, 0, g.pick((6, 1e6)))
    array = scale(g, least=least)
    s, z = g.constant(array), g.constant(zero(g, dtype))
    g.step = float(array)
    codes_of = q(g, y, s, z)
    if g.chance(0.5):
        g.outputs.append(codes_of)
        return dq(g, codes_of, s, z)
    return codes_of


def products(g: Graph) -> None:
    """Conv, MatMul and Gemm of dequantised integers; a quantum may move, as floats round."""
    dtype = g.pick((np.int8, np.uint8))
    kept = np.int8 if g.chance(0.7) else dtype
    sx, zx = scale(g), zero(g, dtype)
    x_s, x_z = g.constant(sx), g.constant(zx)
    kind = g.pick(("Conv", "MatMul", "Gemm"))
    if kind == "Conv":
        channels, maps = g.pick((1, 2, 3)), g.pick((1, 2, 4))
        space = tuple(g.pick((3, 4)) for _ in range(g.pick((1, 2))))
        shape: tuple[int, ...] = (g.pick((1, 2)), channels, *space)
        kernel = tuple(g.pick((1, 2)) for _ in space)
        weights = codes(g, maps, channels, *kernel, dtype=kept)
        axis, columns = 0, maps
    else:
        inner, columns = g.pick((1, 2, 5)), g.pick((1, 3))
        lead = (g.size(1, 2),) if kind == "Gemm" or g.chance(0.6) else (2, 3)
        shape = (*lead, inner)
        flip = kind == "Gemm" and g.chance(0.5)
        weights = codes(g, *((columns, inner) if flip else (inner, columns)), dtype=kept)
        axis = 0 if flip else 1
        kernel = ()
    each = columns if g.opset >= 13 and g.chance(0.5) else 0
    sw = scale(g, each)
    symmetric = np.zeros(sw.shape, kept) if kept == np.int8 else np.full(sw.shape, 128, kept)
    w = dq(g, g.constant(weights), g.constant(sw), g.constant(symmetric), axis if each else None)
    x = dq(g, activation_codes(g, codes(g, *shape, dtype=dtype), x_s, x_z), x_s, x_z)
    bias = None
    if kind != "MatMul" and (g.opset < 11 or g.chance(0.6)):
        whole = g.rng.integers(-500, 500, columns).astype(np.int32)
        product = np.asarray(sx * sw, np.float32)
        if g.opset >= 13 or each == 0:
            bias = dq(g, g.constant(whole), g.constant(product), None, 0 if each else None)
        if g.chance(0.3) or bias is None:
            bias = g.constant((whole * product).astype(np.float32))
    inputs = [x, w, *([] if bias is None else [bias])]
    if kind == "Conv":
        y = g.op("Conv", *inputs, **window(g, kernel))
    elif kind == "Gemm":
        y = g.op("Gemm", *inputs, transB=int(axis == 0), alpha=g.pick((1.0, 1.0, 1.0, 0.5)))
    else:
        y = g.op("MatMul", *inputs)
    g.outputs.append(result(g, y, dtype if g.chance(0.9) else np.uint8, 0.05))


def element_wise(g: Graph) -> None:
    """An activation, a norm, Add or Mul between dequantised and quantised integers."""
    dtype = g.pick((np.int8, np.uint8))
    shape = (*g.shape(0, 1), 3, g.pick((1, 2)))
    shape = shape if len(shape) == 2 else (shape[0], 3, 2)

    def operand(*sizes: int) -> str:
        s, z = g.constant(scale(g)), g.constant(zero(g, dtype))
        array = codes(g, *sizes, dtype=dtype, reach=128)
        given = g.constant(array) if g.chance(0.15) else activation_codes(g, array, s, z)
        return dq(g, given, s, z if g.chance(0.9) or dtype == np.int8 else None)

    x = operand(*shape)
    match int(g.rng.integers(4)):
        case 0 | 1:
            other = x if g.chance(0.1) else operand(*g.pick((shape, shape, shape[-1:], ())))
            y = g.both(g.pick(("Add", "Mul")), x, other)
        case 2:
            y = norm(g, x, shape[1])
        case _:
            y = activated(g, x)
    g.outputs.append(result(g, y, dtype, 0.02))


def movement(g: Graph) -> None:
    """What only moves elements between dequantised and quantised integers."""
    dtype = g.pick((np.int8, np.uint8))
    s_array, z_array = scale(g), zero(g, dtype)
    s, z = g.constant(s_array), g.constant(z_array)
    shape = (1, 4, g.pick((2, 4)), 2)
    given = activation_codes(g, codes(g, *shape, dtype=dtype, reach=128), s, z)
    y = dq(g, given, s, z)
    for _ in range(g.pick((0, 1, 1, 2))):
        y = _moved(g, y)
    if g.chance(0.3):
        s, z = g.constant(s_array), g.constant(z_array)
    if g.chance(0.25):
        s_array = scale(g)
        s = g.constant(s_array)
    g.step = float(s_array)
    y = q(g, y, s, z)
    g.outputs.append(dq(g, y, s, z) if g.chance(0.4) else y)


def _moved(g: Graph, x: str) -> str:
    """One operator that takes four axes and gives four."""
    match int(g.rng.integers(8)):
        case 0:
            return g.op("Transpose", x, perm=[int(axis) for axis in g.rng.permutation(4)])
        case 1:
            return g.reshaped(x, 1, -1, 2, 2)
        case 2:
            return g.cut(x, g.pick((0, 1)), 9, g.pick((1, 2, -1)), g.pick((1, 1, 2)))
        case 3:
            return g.op("Concat", x, x, axis=g.pick((1, 2)))
        case 4:
            return g.op("Gather", x, g.ints(0, -1), axis=g.pick((1, 2)))
        case 5:
            pads = [0, 0, 0, 1] if g.chance(0.5) else [0] * 4
            return g.op("MaxPool", x, kernel_shape=[1, 1 if pads[3] == 0 else 2], pads=pads)
        case 6:
            return g.op("Tile", x, g.ints(1, 2, 1, 1))
        case _:
            return g.op("Expand", x, g.ints(1, 1, 1, 1))


def _floats(g: Graph, y: str, columns: int, after: int) -> str:
    """Cast, scale and bias of a product of integers."""
    y = g.op("Cast", y, to=1)
    own = (columns, *(1,) * after)
    own = g.pick((own, own, (), (1,)))
    y = g.both("Mul", y, g.constant(scale(g) * np.ones(own, np.float32)))
    if g.chance(0.6):
        own = (columns, *(1,) * after)
        own = g.pick((own, own, (), (1, *own)))
        bias = g.normal(*own)
        y = g.both("Add", y, g.constant(bias) if g.chance(0.7) else g.input(bias, fixed=(0, 1)))
    return g.op("Relu", y) if g.chance(0.3) else y


def matmul_integer(g: Graph) -> str:
    """A product of integers, maybe of an input that is quantised as it comes."""
    inner, columns = g.pick((1, 2, 5)), g.pick((1, 2, 3))
    lead = (g.size(1, 2),) if g.chance(0.6) else (2, 2)
    kept = g.pick((np.int8, np.uint8))
    w = g.constant(codes(g, inner, columns, dtype=kept, reach=60))
    w_zero = [g.constant(zero(g, kept))] if g.chance(0.6) else []
    if 0 not in lead and g.opset >= 11 and g.chance(0.6):
        x = g.input(g.normal(*lead, inner), fixed=(-1,))
        given, x_scale, x_zero = g.ops("DynamicQuantizeLinear", x, results=3)
        y = g.op("Cast", g.op("MatMulInteger", given, w, x_zero, *w_zero), to=1)
        factor = g.both("Mul", x_scale, g.constant(scale(g, columns if g.chance(0.4) else 0)))
        y = g.both("Mul", y, factor)
        return g.both("Add", y, g.constant(g.normal(columns))) if g.chance(0.6) else y
    dtype = g.pick((np.int8, np.uint8))
    x = g.input(codes(g, *lead, inner, dtype=dtype), fixed=(-1,))
    x_zero = g.constant(zero(g, dtype)) if g.chance(0.6) or w_zero else ""
    given = [x, w, *([x_zero] if x_zero else []), *w_zero]
    return _floats(g, g.op("MatMulInteger", *given), columns, 0)


def conv_integer(g: Graph) -> str:
    """A convolution of integers that becomes floats."""
    channels, maps = g.pick((1, 2, 4)), g.pick((1, 2, 4))
    space = tuple(g.pick((3, 4)) for _ in range(g.pick((1, 2, 2))))
    kernel = tuple(g.pick((1, 2)) for _ in space)
    group = 2 if channels % 2 == 0 and maps % 2 == 0 and g.chance(0.3) else 1
    x = g.input(codes(g, g.pick((1, 2)), channels, *space, dtype=np.uint8), fixed=(1,))
    w = g.constant(codes(g, maps, channels // group, *kernel, dtype=np.uint8))
    given = [x, w]
    if g.chance(0.6):
        given.append(g.constant(zero(g, np.uint8)))
        if g.chance(0.5):
            given.append(g.constant(zero(g, np.uint8)))
    y = g.op("ConvInteger", *given, group=group, **window(g, kernel))
    if g.chance(0.3):
        own = g.pick(((maps, *(1,) * len(space)), (1, maps, *(1,) * len(space)), ()))
        y = g.both("Add", y, g.constant(g.rng.integers(-99, 99, own).astype(np.int32)))
    return _floats(g, y, maps, len(space))


def weights(g: Graph) -> str:
    """Integer weights that are cast and scaled; and weights that a session holds in half types."""
    if g.chance(0.2):
        g.options["weightStorage"] = "Binary16"
        x = g.input(g.normal(2, 32), fixed=(1,))
        return activated(g, g.op("MatMul", x, g.constant(g.normal(32, 40, reach=0.1))))
    dtype, inner, columns = g.pick((np.int8, np.uint8)), g.pick((2, 4)), g.pick((1, 3))
    w = g.op("Cast", g.constant(codes(g, inner, columns, dtype=dtype, reach=128)), to=1)
    if g.chance(0.5):
        w = g.op("Sub", w, g.number(g.pick((0, 3, 100)) + 0.5 * g.chance(g.slips), 2))
    own = g.pick(((), (1,), (columns,), (1, columns), (inner, 1)))
    w = g.both("Mul", w, g.constant(scale(g) * np.ones(own, np.float32)))
    x = g.chain(g.input(g.normal(2, inner), fixed=(1,)), 1)
    y = g.op("MatMul", x, w)
    return g.both("Add", y, g.constant(g.normal(columns))) if g.chance(0.5) else y


FAMILIES = {
    "quantised products": Family(products, ("qdq",), QUANTISED, ONLY),
    "quantised element-wise": Family(element_wise, ("qdq-element-wise",), QUANTISED, ONLY),
    "quantised movement": Family(movement, ("qdq-movement",), QUANTISED, ONLY),
    "matmul-integer": Family(
        matmul_integer, ("matmul-integer-fusion", "dynamic-quantize-matmul"), QUANTISED, ONLY
    ),
    "conv-integer": Family(conv_integer, ("conv-integer-fusion",), QUANTISED, ONLY),
    "weights": Family(
        weights, ("cast-mul-to-dequantize-linear",), QUANTISED, ONLY, limits={np.float32: 2e-3}
    ),
}
