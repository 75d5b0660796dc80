"""Fused Conv and ConvTranspose: the bits of the operators that they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import foldline.kernels  # noqa: F401
from foldline.kernels.parallel import use_threads
from foldline.kernels.registry import (
    GRADES,
    LATEST,
    Array,
    Grade,
    Kernel,
    Operand,
    find_kernel,
    run_once,
)

WAYS: dict[str, tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "pointwise": ("Conv", (1, 20, 40, 41), (40, 20, 1, 1), {}),
    "pointwise in groups and a batch": ("Conv", (2, 6, 5, 5), (4, 3, 1, 1), {"group": 2}),
    "gathered": ("Conv", (1, 3, 30, 30), (8, 3, 7, 7), {"strides": (2, 2), "pads": (3, 2, 3, 1)}),
    "gathered in bands": ("Conv", (1, 64, 60, 60), (64, 64, 3, 3), {"pads": (1, 1, 1, 1)}),
    "gathered in groups": ("Conv", (2, 6, 9, 9), (9, 2, 3, 3), {"group": 3, "dilations": (2, 1)}),
    "depthwise": ("Conv", (1, 33, 20, 20), (33, 1, 3, 3), {"group": 33, "pads": (1, 1, 1, 1)}),
    "depthwise with strides": ("Conv", (1, 8, 9, 9), (8, 1, 3, 3), {"group": 8, "strides": (2, 2)}),
    "Winograd": ("Conv", (1, 128, 14, 14), (130, 128, 3, 3), {"pads": (1, 1, 1, 1)}),
    "one axis": ("Conv", (2, 5, 40), (6, 5, 3), {"dilations": (2,)}),
    "three axes": ("Conv", (1, 2, 5, 6, 7), (3, 2, 2, 3, 2), {}),
    "no image": ("Conv", (0, 3, 8, 8), (4, 3, 3, 3), {}),
    "transposed": ("ConvTranspose", (2, 3, 9, 9), (3, 4, 3, 3), {"strides": (2, 2)}),
    "transposed in groups": ("ConvTranspose", (1, 4, 7, 7), (4, 3, 2, 2), {"group": 2}),
}
ACTIVATIONS: dict[str, tuple[str, Sequence[float], dict[str, Any], Sequence[float]]] = {
    "none": ("", (), {}, ()),
    "Relu": ("Relu", (), {}, ()),
    "Clip": ("Clip", (-0.5, 6.0), {}, (-0.5, 6.0)),
    "Clip above": ("Clip", (-np.inf, 0.25), {}, (-np.inf, 0.25)),
    "Clip with bounds that cross": ("Clip", (1.0, -1.0), {}, (1.0, -1.0)),
    "Clip at NaN": ("Clip", (np.nan, 1.0), {}, (np.nan, 1.0)),
    "HardSwish": ("HardSwish", (), {}, ()),
    "HardSigmoid": ("HardSigmoid", (0.25, 0.5), {"alpha": 0.25, "beta": 0.5}, ()),
    "Sigmoid": ("Sigmoid", (), {}, ()),
    "Gelu": ("Gelu", (0.0,), {"approximate": "none"}, ()),
    "Gelu by tanh": ("Gelu", (1.0,), {"approximate": "tanh"}, ()),
    "Tanh": ("Tanh", (), {}, ()),
    "LeakyRelu": ("LeakyRelu", (0.125,), {"alpha": 0.125}, ()),
    "Swish": ("Swish", (1.0,), {"alpha": 1.0}, ()),
}
"""Name and parameters in the fused operator; attributes and further inputs of the operator."""


LARGE = {
    way: ("none", "Relu", "HardSwish") for way in ("gathered in bands", "pointwise", "Winograd")
}
SMALL = ("pointwise in groups and a batch", "depthwise with strides", "transposed in groups")
CASES = [
    *((way, np.float32) for way in WAYS),
    *((way, dtype) for way in SMALL for dtype in (np.float64, np.float16, ml_dtypes.bfloat16)),
]


def found(op_type: str, grades: Sequence[Grade], domain: str = "") -> Kernel:
    entry = find_kernel(domain, op_type, LATEST - 1, grades)
    assert entry is not None
    return entry


def run(entry: Kernel, arrays: Sequence[Array | None], out: Array | None = None, **given: Any):
    if not entry.is_maker:
        return entry.function(*arrays, **given)
    operands = [None if a is None else Operand(a.shape, a.dtype) for a in arrays]
    keywords = {} if out is None else {"out": out}
    return run_once(entry.function(*operands, **given), arrays, **keywords)


def sample(way: str, dtype: Any, special: bool) -> list[Array]:
    """x, w, b, and numbers of the shape of the result, NaNs and infinities among them."""
    op_type, x_shape, w_shape, attributes = WAYS[way]
    random = np.random.default_rng(0)
    count = w_shape[1] * attributes.get("group", 1) if op_type != "Conv" else w_shape[0]
    x, w, b = (random.standard_normal(s).astype(dtype) for s in (x_shape, w_shape, (count,)))
    if special and x.size:
        x.flat[3], x.flat[40] = np.nan, np.inf
    y = run(found(op_type, GRADES["fast"]), [x, w, b], **attributes)
    z = random.standard_normal(y.shape).astype(dtype)
    if special and z.size:
        flat, sums = z.reshape(-1), y.reshape(-1)
        flat[:20], flat[20:40], flat[40], flat[41] = np.nan, -sums[20:40], np.inf, -np.inf
        # Which one of two NaNs is their sum hangs on where they lie in memory.
        flat[np.isnan(sums)] = 1
    return [x, w, b, z]


def summed(way: str, arrays: Sequence[Array | None], grades: Sequence[Grade]) -> Array:
    """The convolution and the addition, as single operators."""
    op_type, _, _, attributes = WAYS[way]
    x, w, b, z = arrays
    y = run(found(op_type, grades), [x, w, b], **attributes)
    return y if z is None else run(found("Add", grades), [y, z])


def activated(y: Array, activation: str, grades: Sequence[Grade]) -> Array:
    """The activation as a single operator."""
    name, _, given, inputs = ACTIVATIONS[activation]
    if not name:
        return y
    return run(found(name, grades), [y, *(np.array(i, y.dtype) for i in inputs)], **given)


def fused(
    way: str,
    arrays: Sequence[Array | None],
    activation: str,
    grades: Sequence[Grade],
    out: Array | None = None,
) -> Array:
    op_type, _, _, attributes = WAYS[way]
    name, params, _, _ = ACTIVATIONS[activation]
    return run(
        found(op_type, grades, "foldline"),
        arrays,
        out,
        activation=name,
        activation_params=params,
        **attributes,
    )


def check_bits(actual: Array, wanted: Array) -> None:
    assert actual.dtype == wanted.dtype
    assert actual.shape == wanted.shape
    np.testing.assert_array_equal(actual.view(np.uint8), wanted.view(np.uint8))


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize(("way", "dtype"), CASES)
def test_row_3_8_bits_are_those_of_one_operator_after_the_other(
    way: str, dtype: Any, special: bool
) -> None:
    x, w, b, z = sample(way, dtype, special)
    grades = GRADES["fast"]
    for arrays in ([x, w, b, None], [x, w, b, z], [x, w, None, z]):
        y = summed(way, arrays, grades)
        for activation in LARGE.get(way, ACTIVATIONS):
            wanted = activated(y, activation, grades)
            check_bits(fused(way, arrays, activation, grades), wanted)
    out = np.full_like(wanted, 7)
    assert fused(way, arrays, activation, grades, out) is out
    check_bits(out, wanted)


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("grade", ["exact", "reference"])
@pytest.mark.parametrize("way", ["pointwise in groups and a batch", "depthwise", "transposed"])
def test_row_3_8_bits_of_the_other_grades(way: str, grade: Grade, dtype: Any) -> None:
    x, w, b, z = sample(way, dtype, special=True)
    y = summed(way, [x, w, b, z], (grade,))
    for activation in ACTIVATIONS:
        wanted = activated(y, activation, (grade,))
        check_bits(fused(way, [x, w, b, z], activation, (grade,)), wanted)


@pytest.mark.parametrize("shape", [(1, 8, 1, 1), (7, 7), (2, 3, 8, 7, 7)])
def test_what_is_added_may_be_broadcast_either_way(shape: tuple[int, ...]) -> None:
    _, w, b, _ = sample("depthwise with strides", np.float32, special=False)
    x = np.random.default_rng(2).standard_normal((1, 8, 15, 15)).astype(np.float32)
    z = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    arrays = [x, w, b, z]
    grades = GRADES["fast"]
    wanted = activated(summed("depthwise with strides", arrays, grades), "Sigmoid", grades)
    check_bits(fused("depthwise with strides", arrays, "Sigmoid", grades), wanted)


@pytest.mark.parametrize("threads", [2, 3, 8])
@pytest.mark.parametrize("way", ["pointwise", "gathered in bands", "depthwise", "Winograd"])
def test_threads_change_nothing(way: str, threads: int) -> None:
    arrays = sample(way, np.float32, special=False)
    alone = fused(way, arrays, "Swish", GRADES["fast"])
    with use_threads(threads):
        check_bits(fused(way, arrays, "Swish", GRADES["fast"]), alone)


def test_an_unknown_activation_is_refused() -> None:
    entry = found("Conv", GRADES["fast"], "foldline")
    with pytest.raises(ValueError, match="unknown activation 'Selu'"):
        run(entry, sample("one axis", np.float32, False), activation="Selu", dilations=(2,))
