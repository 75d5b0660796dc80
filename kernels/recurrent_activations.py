"""The activation functions that RNN, GRU and LSTM name in `activations`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from foldline.kernels.activation import (
    hard_sigmoid,
    leaky_relu,
    relu,
    sigmoid,
    softplus,
    softsign,
)
from foldline.kernels.exponential_units import elu
from foldline.kernels.registry import Array

Activation = Callable[[Array], Array]


@dataclass(frozen=True)
class Family:
    """A function of `x`, `alpha` and `beta`, and the defaults of those it has."""

    function: Callable[[Array, float, float], Array]
    alpha: float | None = None
    beta: float | None = None


_FAMILIES: dict[str, Family] = {
    "relu": Family(lambda x, a, b: relu(x)),
    "tanh": Family(lambda x, a, b: np.tanh(x)),
    "sigmoid": Family(lambda x, a, b: sigmoid(x)),
    "affine": Family(lambda x, a, b: a * x + b, 1.0, 0.0),
    "leakyrelu": Family(lambda x, a, b: leaky_relu(x, alpha=a), 0.01),
    "thresholdedrelu": Family(lambda x, a, b: np.where(x >= a, x, x.dtype.type(0)), 1.0),
    "scaledtanh": Family(lambda x, a, b: a * np.tanh(b * x), 1.0, 1.0),
    "hardsigmoid": Family(lambda x, a, b: hard_sigmoid(x, alpha=a, beta=b), 0.2, 0.5),
    "elu": Family(lambda x, a, b: elu(x, alpha=a), 1.0),
    "softsign": Family(lambda x, a, b: softsign(x)),
    "softplus": Family(lambda x, a, b: softplus(x)),
}


def named_activations(
    names: Sequence[str] | None,
    alphas: Sequence[float] | None,
    betas: Sequence[float] | None,
    defaults: Sequence[str],
    directions: int,
) -> list[list[Activation]]:
    """The activations of each direction, as many as there are `defaults`, which `names` replaces.

    A function that has an alpha takes the next of `alphas`, and likewise with beta; when they are
    used up, the default of the ONNX operator of that name. Case is ignored. ValueError when there
    are too few names or one is unknown.
    """
    return chosen_of(_FAMILIES, names, alphas, betas, defaults, directions)


def chosen_of(
    families: Mapping[str, Family],
    names: Sequence[str] | None,
    alphas: Sequence[float] | None,
    betas: Sequence[float] | None,
    defaults: Sequence[str],
    directions: int,
) -> list[list[Activation]]:
    """`named_activations` among `families`, by names in small letters."""
    names = names or (*defaults,) * directions
    count = len(defaults)
    if len(names) < count * directions:
        raise ValueError(f"activations={tuple(names)}, expected {count} for each direction")
    next_alphas, next_betas = iter(alphas or ()), iter(betas or ())

    def bound(name: str) -> Activation:
        family = families.get(name.lower())
        if family is None:
            raise ValueError(f"unknown activation {name!r}")
        alpha = 0.0 if family.alpha is None else next(next_alphas, family.alpha)
        beta = 0.0 if family.beta is None else next(next_betas, family.beta)
        return lambda x: family.function(x, alpha, beta)

    functions = [bound(name) for name in names[: count * directions]]
    return [functions[d * count : (d + 1) * count] for d in range(directions)]
