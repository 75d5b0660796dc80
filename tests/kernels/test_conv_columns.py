"""A convolution bound to its arrays gives the bits of one that is not."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

from foldline.kernels.registry import Operand, Step, aligned_bytes, find_kernel

RANDOM = np.random.default_rng(0)


def _normal(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype(np.float32)


CASES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "pads": (_normal(1, 5, 9), _normal(7, 5, 3), {"pads": (1, 1)}),
    "strides": (_normal(1, 5, 9), _normal(7, 5, 3), {"strides": (2,), "pads": (2, 0)}),
    "dilations": (_normal(1, 5, 9), _normal(7, 5, 3), {"dilations": (3,)}),
    "one position": (_normal(1, 5, 3), _normal(7, 5, 3), {}),
    "pointwise": (_normal(1, 5, 9), _normal(7, 5, 1), {}),
    "batch": (_normal(2, 5, 9), _normal(7, 5, 3), {"pads": (1, 1)}),
    "groups": (_normal(1, 6, 9), _normal(4, 3, 3), {"group": 2}),
    "volume": (_normal(1, 2, 4, 5, 6), _normal(3, 2, 2, 2, 2), {"pads": (1,) * 6}),
    "askew": (_normal(9, 5, 1).T, _normal(7, 5, 3), {}),
    "many": (_normal(1, 8, 9000), _normal(16, 8, 1), {}),
}


def _step(domain: str, arrays: list[Any], keywords: dict[str, Any]) -> Step:
    kernel = find_kernel(domain, "Conv", 1, ["fast"])
    assert kernel is not None
    x, w, *others = [Operand(a.shape, a.dtype, None) for a in arrays]
    known = Operand(w.shape, w.dtype, arrays[1])
    made = kernel.function(x, known, *others, **keywords)
    return made if isinstance(made, Step) else Step(made)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("activation", ["", "Relu"])
@pytest.mark.parametrize("biased", [False, True])
def test_bound_steps_give_the_same_bits(case: str, activation: str, biased: bool) -> None:
    x, w, keywords = CASES[case]
    arrays = [x, w, _normal(len(w))] if biased else [x, w]
    if activation:
        keywords = {**keywords, "activation": activation}
    step = _step("foldline" if activation else "", arrays, keywords)
    assert step.bind is not None
    scratch = {"scratch": aligned_bytes(step.scratch_bytes)} if step.scratch_bytes else {}
    expected = step.run(*arrays, **scratch)
    out = np.full_like(expected, np.nan)
    bound = step.bind(*arrays, out=out, **scratch)
    for shift in (0, 1):
        # What is bound are places, not what they held; scratch may hold anything.
        np.add(x, np.float32(shift), out=x)
        for block in scratch.values():
            block.fill(255)
        bound()
        np.testing.assert_array_equal(out, step.run(*arrays, **scratch))
    np.subtract(x, np.float32(1), out=x)


@pytest.mark.parametrize("activation", ["", "HardSwish"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_bound_sums_give_the_same_bits(activation: str, order: Literal["C", "F"]) -> None:
    x, w, keywords = CASES["pads"]
    z, b = np.array(_normal(1, 7, 9), order=order), _normal(7)
    step = _step("foldline", [x, w, b, z], {**keywords, "activation": activation})
    assert step.bind is not None
    scratch = aligned_bytes(step.scratch_bytes)
    out = np.full((1, 7, 9), np.nan, np.float32)
    bound = step.bind(x, w, b, z, scratch=scratch, out=out)
    for shift in (0, 1):
        z += shift
        bound()
        np.testing.assert_array_equal(out, step.run(x, w, b, z, scratch=scratch))


def test_sums_that_are_broadcast_are_not_bound() -> None:
    x, w, keywords = CASES["pads"]
    assert _step("foldline", [x, w, _normal(7), _normal(9)], keywords).bind is None
