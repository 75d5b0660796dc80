"""Random convolutions and products of matrices with what folds into them or stands behind them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.stages.passes.drawing import Array
from tests.stages.passes.fusion.random_graphs import Family, Graph

ACTIVATIONS = ("Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid", "Clip", "Softplus", "")
LIMITS: dict[Any, float] = {np.float32: 1e-4, np.float64: 1e-11, np.float16: 2e-2}
WIDE = (np.float32, np.float32, np.float32, np.float64)


def image(g: Graph, channels: int, *, special: float = 0.3) -> tuple[str, tuple[int, ...]]:
    """An image of one to three axes, and its sizes."""
    space = tuple(g.pick((3, 4, 5)) for _ in range(g.pick((1, 2, 2, 2, 3))))
    shape = (0 if g.chance(0.02) else g.pick((1, 2)), channels, *space)
    axes = range(1, len(shape)) if g.chance(0.5) else (1,)
    return g.chain(g.input(g.normal(*shape), fixed=axes, special=g.chance(special)), 1), shape


def window(g: Graph, kernel: tuple[int, ...], *, transposed: bool = False) -> dict[str, Any]:
    """Attributes of a convolution."""
    axes = len(kernel)
    found: dict[str, Any] = {}
    if g.chance(0.3):
        found["strides"] = [g.pick((1, 2)) for _ in kernel]
    if g.chance(0.2):
        found["dilations"] = [g.pick((1, 2)) for _ in kernel]
    if g.chance(0.15) and not transposed and "dilations" not in found:
        found["auto_pad"] = g.pick(("SAME_UPPER", "SAME_LOWER", "VALID"))
    elif g.chance(0.5):
        found["pads"] = [g.pick((0, 1)) for _ in range(2 * axes)]
    if g.chance(0.3):
        found["kernel_shape"] = kernel
    return found


def convolution(
    g: Graph, x: str, shape: tuple[int, ...], kind: str = "Conv", size: int = 2
) -> tuple[str, int]:
    """A convolution with constant weights, and how many maps it gives."""
    group = 2 if shape[1] % 2 == 0 and g.chance(0.3) else 1
    each = g.pick((1, 2, 3))
    maps = group * each
    kernel = tuple(g.pick((1, size, size)) for _ in shape[2:])
    transposed = kind == "ConvTranspose"
    sizes = (shape[1], each) if transposed else (maps, shape[1] // group)
    weights = g.normal(*sizes, *kernel)
    if g.chance(0.1):
        weights = np.full_like(weights, weights.flat[0])
    inputs = [x, g.constant(weights)]
    if g.chance(0.5):
        inputs.append(g.constant(g.normal(maps)))
    given = window(g, kernel, transposed=transposed)
    return g.op(kind, *inputs, group=group, **given), maps


def norm(g: Graph, x: str, channels: int) -> str:
    """BatchNormalization with constant statistics."""
    held = [g.normal(channels) for _ in range(3)]
    names = [g.constant(array) for array in (*held, g.positive(channels))]
    return g.op("BatchNormalization", x, *names, epsilon=g.pick((1e-5, 1e-3)))


def arithmetic(g: Graph, x: str, channels: int, after: int) -> str:
    """Mul, Add, Sub or Div with a constant: one number, one a channel, or something else."""
    kind = g.pick(("Mul", "Mul", "Add", "Sub", "Div"))
    own = (channels, *(1,) * after)
    own = g.pick((own, own, own, (1, *own), (), (1,)))
    array = g.positive(*own) * g.pick((1, 1, -1))
    pair = (x, g.constant(np.asarray(array, g.dtype)))
    swapped = g.chance(0.4 if kind in ("Mul", "Add") else 0.2)
    return g.op(kind, *(pair[::-1] if swapped else pair))


def norms(g: Graph) -> str:
    """What folds into weights, behind a convolution or a product of matrices."""
    if g.chance(0.3):
        rows, inner, columns = g.pick((1, 2, 3)), g.pick((1, 2, 4)), g.pick((1, 2, 3))
        x = g.chain(g.input(g.normal(rows, inner), fixed=(1,)), 1)
        if g.chance(0.5):
            y = g.op("MatMul", x, g.constant(g.normal(inner, columns)))
            if g.chance(0.4):
                y = g.both("Add", y, g.constant(g.normal(columns)))
        else:
            flip = g.pick((0, 1))
            shape = (columns, inner) if flip else (inner, columns)
            given = [x, g.constant(g.normal(*shape)), g.constant(g.normal(columns))]
            given = given if g.opset < 11 or g.chance(0.7) else given[:2]
            y = g.op("Gemm", *given, transB=flip, alpha=g.pick((1.0, 0.5)), beta=g.pick((1.0, 2.0)))
        after = 0
    else:
        kind = g.pick(("Conv", "Conv", "ConvTranspose"))
        x, shape = image(g, g.pick((1, 2, 4)))
        if kind == "Conv" and g.chance(0.3):
            x = arithmetic(g, x, shape[1], len(shape) - 2)
        y, columns = convolution(g, x, shape, kind)
        after = len(shape) - 2
    for _ in range(g.pick((1, 1, 2, 3))):
        y = norm(g, y, columns) if g.chance(0.4) else arithmetic(g, y, columns, after)
    return y


def pads(g: Graph) -> str:
    """Pad before a convolution or a pool, of which ONNX Runtime's is not sure of NaN."""
    is_conv = g.chance(0.5)
    x, shape = image(g, g.pick((1, 2)), special=0.3 * is_conv)
    axes = len(shape) - 2
    sizes = [0, 0, *(g.pick((0, 1, 1, 2)) for _ in range(axes))]
    sizes += [0, 0, *(g.pick((0, 1, 1)) for _ in range(axes))]
    if g.chance(g.slips):
        place = g.pick((0, 1, 2))
        sizes[place] = -1 if shape[place] > 1 and g.chance(0.5) else 1
    if is_conv and sum(sizes[:2]) == 0:
        padded = g.pad(x, sizes, 0.0 if g.chance(0.9) else 1.0)
        wide = (*shape[:2], *(n + 2 for n in shape[2:]))
        return convolution(g, padded, wide)[0]
    kind = g.pick(("AveragePool", "MaxPool"))
    if kind == "MaxPool" and g.chance(0.5):
        x = g.op("Relu", x)
    value = g.pick((0.0, 0.0, -np.inf)) if kind == "MaxPool" else 0.0
    kernel = tuple(g.pick((2, 3)) for _ in range(axes))
    given: dict[str, Any] = {"kernel_shape": kernel}
    if g.chance(0.3):
        given["strides"] = [g.pick((1, 2)) for _ in kernel]
    if g.chance(0.3):
        given["pads"] = [g.pick((0, 1)) for _ in range(2 * axes)]
    if kind == "AveragePool" and g.chance(0.5):
        given["count_include_pad"] = 1
    if g.opset >= 10 and g.chance(0.1):
        given["ceil_mode"] = 1
    return g.op(kind, g.pad(x, sizes, value), **given)


def activated(g: Graph, y: str) -> str:
    """One of the operators that activate, or none."""
    match g.pick(ACTIVATIONS):
        case "":
            return y
        case "Clip":
            return g.clip(y, *g.pick(((0.0, 6.0), (-1.0, 1.0), (0.0, 0.0))))
        case "LeakyRelu":
            return g.op("LeakyRelu", y, alpha=g.pick((0.1, 0.01, -1.0)))
        case "Sigmoid" if g.chance(0.5):
            return g.both("Mul", y, g.op("Sigmoid", y))
        case kind:
            return g.op(kind, y)


def sums(g: Graph) -> str:
    """A convolution, what is added to it, and an activation."""
    kind = g.pick(("Conv", "Conv", "ConvTranspose"))
    x, shape = image(g, g.pick((1, 2, 4)))
    y, maps = convolution(g, x, shape, kind)
    if g.chance(0.6):
        match int(g.rng.integers(4)):
            case 0:
                other = g.op("Neg", y)
            case 1:
                other = convolution(g, x, shape, kind)[0] if g.chance(0.3) else g.op("Abs", y)
            case 2:
                own = (maps, *(1,) * (len(shape) - 2))
                other = g.constant(g.normal(*g.pick((own, (1, *own), ()))))
            case _:
                other = g.input(g.normal(1, maps, *(1 for _ in shape[2:])), fixed=(1,))
        if other.startswith("v") and not _alike(g, y, other):
            other = g.op("Tanh", y)
        y = g.op("Sum", y, other) if g.chance(0.2) else g.both("Add", y, other)
    if g.chance(0.2):
        g.outputs.append(g.op("Shape", y))
    return activated(g, y)


def _alike(g: Graph, a: str, b: str) -> bool:
    """Whether one value is made of the other, so that shapes are the same."""
    made = next(node for node in g.nodes if b in node.output)
    return a in made.input


def linear(g: Graph) -> str:
    """A product of matrices, what is added, and an activation."""
    inner, columns = g.size(1, 2, 3, 4), g.size(1, 2, 3)
    lead = g.shape(1, 2) if g.chance(0.4) else (g.size(),)
    weights: Array = g.normal(inner, columns)
    is_constant = g.chance(0.8)
    if len(lead) == 1 and g.chance(0.5):
        turned = [g.pick((0, 0, 0, 1)), g.pick((0, 1))]
        x = g.input(g.normal(*(lead[0], inner)[:: -1 if turned[0] else 1]), special=True)
        shape = weights.T.copy() if turned[1] else weights
        given = [x, g.constant(shape) if is_constant else g.input(shape, fixed=(0, 1))]
        if g.opset < 11 or g.chance(0.6):
            own = g.pick(((columns,), (1, columns), (1,), (lead[0], columns), (lead[0], 1)))
            given.append(g.constant(g.normal(*own)))
        scale = {"alpha": g.pick((1.0, 1.0, 0.5)), "beta": g.pick((1.0, 1.0, 0.5, 0.0))}
        y = g.op("Gemm", *given, transA=turned[0], transB=turned[1], **scale)
    else:
        x = g.chain(g.input(g.normal(*lead, inner), special=True), 1)
        y = g.op(
            "MatMul", x, g.constant(weights) if is_constant else g.input(weights, fixed=(0, 1))
        )
    if g.chance(0.6):
        own = g.pick(
            ((columns,), (columns,), (1, columns), (), (1, 1, columns), (lead[-1], columns))
        )
        array = g.normal(*own)
        y = g.both("Add", y, g.constant(array) if g.chance(0.7) else g.input(array, fixed=(0, 1)))
    return activated(g, y)


FAMILIES = {
    "norms": Family(
        norms,
        (
            *("conv-batchnorm-fold", "conv-transpose-batchnorm-fold", "gemm-batchnorm-fold"),
            *("conv-scale-fold", "matmul-scale-fold", "batchnorm-scale-fold", "scale-into-conv"),
        ),
        dtypes=WIDE,
        limits=LIMITS,
    ),
    "pads": Family(pads, ("pad-into-conv", "pad-into-pool"), limits=LIMITS),
    "sums": Family(sums, ("conv-activation",), limits=LIMITS),
    "linear": Family(linear, ("linear-pack-fuse", "matmul-add-to-gemm"), limits=LIMITS),
}
