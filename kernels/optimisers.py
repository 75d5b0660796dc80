"""Adagrad, Adam and Momentum 1 of ai.onnx.preview.training.

The tensors come as all values, then all gradients, then all accumulators of each kind; the new
values and accumulators go in the same order. Attributes and the rate are scalars of the tensor's
dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from foldline.kernels.exact_bits import canonical
from foldline.kernels.registry import Array, kernel

DOMAIN = "ai.onnx.preview.training"

Update = Callable[..., tuple[Array, ...]]
"""(value, gradient, *accumulators) -> (new value, *new accumulators)"""


def _updated(tensors: Sequence[Array], kinds: int, update: Update) -> tuple[Array, ...]:
    count, rest = divmod(len(tensors), kinds)
    if rest:
        raise ValueError(f"{len(tensors)} tensors are not {kinds} for each optimised one")
    results = [update(*tensors[i::count]) for i in range(count)]
    return tuple(
        canonical(np.array(result, tensors[0].dtype))
        for column in zip(*results, strict=True)
        for result in column
    )


def _power(base: float, exponent: int) -> float:
    """By repeated squaring, which rounds alike everywhere."""
    result = 1.0
    while exponent:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result


@kernel("Adagrad", domain=DOMAIN, exact=True)
def adagrad(
    rate: Array,
    count: Array,
    *tensors: Array,
    decay_factor: float = 0.0,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
) -> tuple[Array, ...]:
    """Adagrad 1: steps divided by the root of the sum of squared gradients.

    ValueError when the tensors are not three for each optimised one.
    """
    step = rate.item() / (1 + count.item() * decay_factor)

    def update(x: Array, gradient: Array, squares: Array) -> tuple[Array, ...]:
        regularised = norm_coefficient * x + gradient
        squares = squares + regularised * regularised
        return x - step * regularised / (np.sqrt(squares) + epsilon), squares

    return _updated(tensors, 3, update)


@kernel("Adam", domain=DOMAIN, exact=True)
def adam(
    rate: Array,
    count: Array,
    *tensors: Array,
    alpha: float = 0.9,
    beta: float = 0.999,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
    norm_coefficient_post: float = 0.0,
) -> tuple[Array, ...]:
    """Adam 1: averages of gradients and of their squares, corrected for their bias.

    ValueError when the tensors are not four for each optimised one.
    """
    step, t = rate.item(), count.item()
    if t > 0:
        step = np.divide(step * np.sqrt(1 - _power(beta, t)), 1 - _power(alpha, t)).item()

    def update(x: Array, gradient: Array, mean: Array, squares: Array) -> tuple[Array, ...]:
        regularised = norm_coefficient * x + gradient
        mean = alpha * mean + (1 - alpha) * regularised
        squares = beta * squares + (1 - beta) * (regularised * regularised)
        x = x - step * (mean / (np.sqrt(squares) + epsilon))
        return (1 - norm_coefficient_post) * x, mean, squares

    return _updated(tensors, 4, update)


@kernel("Momentum", domain=DOMAIN, exact=True)
def momentum(
    rate: Array,
    count: Array,
    *tensors: Array,
    alpha: float,
    beta: float,
    mode: str,
    norm_coefficient: float,
) -> tuple[Array, ...]:
    """Momentum 1: `mode` "standard", or "nesterov", which looks a step ahead.

    ValueError for another mode, or when the tensors are not three for each optimised one.
    """
    if mode not in ("standard", "nesterov"):
        raise ValueError(f"mode is {mode!r}, expected 'standard' or 'nesterov'")
    step = rate.item()
    share = beta if count.item() > 0 else 1.0

    def update(x: Array, gradient: Array, velocity: Array) -> tuple[Array, ...]:
        regularised = norm_coefficient * x + gradient
        velocity = alpha * velocity + share * regularised
        direction = regularised + alpha * velocity if mode == "nesterov" else velocity
        return x - step * direction, velocity

    return _updated(tensors, 3, update)
