"""The activation functions that RNN, GRU and LSTM name in `activations`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from foldline.kernels.activation import (
    elu,
    hard_sigmoid,
    leaky_relu,
    relu,
    sigmoid,
    softplus,
    softsign,
)
from foldline.kernels.registry import Array

Activation = Callable[[Array], Array]


@dataclass(frozen=True)
class _Family:
    """A function of `x`, `alpha` and `beta`, and the defaults of those it has."""

    function: Callable[[Array, float, float], Array]
    alpha: float | None = None
    beta: float | None = None


_FAMILIES: dict[str, _Family] = {
    "relu": _Family(lambda x, a, b: relu(x)),
    "tanh": _Family(lambda x, a, b: np.tanh(x)),
    "sigmoid": _Family(lambda x, a, b: sigmoid(x)),
    "affine": _Family(lambda x, a, b: a * x + b, 1.0, 0.0),
    "leakyrelu": _Family(lambda x, a, b: leaky_relu(x, alpha=a), 0.01),
    "thresholdedrelu": _Family(lambda x, a, b: np.where(x >= a, x, x.dtype.type(0)), 1.0),
    "scaledtanh": _Family(lambda x, a, b: a * np.tanh(b * x), 1.0, 1.0),
    "hardsigmoid": _Family(lambda x, a, b: hard_sigmoid(x, alpha=a, beta=b), 0.2, 0.5),
    "elu": _Family(lambda x, a, b: elu(x, alpha=a), 1.0),
    "softsign": _Family(lambda x, a, b: softsign(x)),
    "softplus": _Family(lambda x, a, b: softplus(x)),
}


def named_activations(
    names: Sequence[str] | None,
    alphas: Sequence[float] | None,
    betas: Sequence[float] | None,
    defaults: Sequence[str],
    directions: int,
    replaced: Mapping[str, Activation] | None = None,
) -> list[list[Activation]]:
    """The activations of each direction, as many as there are `defaults`, which `names` replaces.

    A function that has an alpha takes the next of `alphas`, and likewise with beta; when they are
    used up, the default of the ONNX operator of that name. Case is ignored. `replaced`: functions
    by name, in small letters, that take the place of those here. ValueError when there are too few
    names or one is unknown.
    """
    names = names or (*defaults,) * directions
    count = len(defaults)
    if len(names) < count * directions:
        raise ValueError(f"activations={tuple(names)}, expected {count} for each direction")
    next_alphas, next_betas = iter(alphas or ()), iter(betas or ())

    def bound(name: str) -> Activation:
        if replaced and name.lower() in replaced:
            return replaced[name.lower()]
        family = _FAMILIES.get(name.lower())
        if family is None:
            raise ValueError(f"unknown activation {name!r}")
        alpha = 0.0 if family.alpha is None else next(next_alphas, family.alpha)
        beta = 0.0 if family.beta is None else next(next_betas, family.beta)
        return lambda x: family.function(x, alpha, beta)

    functions = [bound(name) for name in names[: count * directions]]
    return [functions[d * count : (d + 1) * count] for d in range(directions)]
