"""RNN, GRU and LSTM in exact mode: the loops of `recurrent` on exact products and functions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from foldline.kernels.exact_arithmetic import hard_sigmoid, leaky_relu, relu, softsign
from foldline.kernels.exact_bits import canonicalised
from foldline.kernels.exact_functions import EXPM1, SIGMOID, SOFTPLUS, TANH
from foldline.kernels.exact_products import multiplier
from foldline.kernels.lstm import lstm_layer
from foldline.kernels.recurrent import directions, gru_layer, rnn_layer
from foldline.kernels.recurrent_activations import Activation, Family, chosen_of
from foldline.kernels.registry import Array, kernel


def _elu(x: Array, alpha: float) -> Array:
    return np.where(x < 0, EXPM1(x) * x.dtype.type(alpha), x)


def _scaled_tanh(x: Array, alpha: float, beta: float) -> Array:
    return x.dtype.type(alpha) * TANH(np.asarray(x.dtype.type(beta) * x))


_FAMILIES: dict[str, Family] = {
    "relu": Family(lambda x, a, b: relu(x)),
    "tanh": Family(lambda x, a, b: TANH(np.asarray(x))),
    "sigmoid": Family(lambda x, a, b: SIGMOID(np.asarray(x))),
    "affine": Family(lambda x, a, b: x.dtype.type(a) * x + x.dtype.type(b), 1.0, 0.0),
    "leakyrelu": Family(lambda x, a, b: leaky_relu(x, alpha=a), 0.01),
    "thresholdedrelu": Family(lambda x, a, b: np.where(x >= a, x, x.dtype.type(0)), 1.0),
    "scaledtanh": Family(_scaled_tanh, 1.0, 1.0),
    "hardsigmoid": Family(lambda x, a, b: hard_sigmoid(x, alpha=a, beta=b), 0.2, 0.5),
    "elu": Family(lambda x, a, b: _elu(x, a), 1.0),
    "softsign": Family(lambda x, a, b: softsign(x)),
    "softplus": Family(lambda x, a, b: SOFTPLUS(np.asarray(x))),
}


def chosen(
    names: Sequence[str] | None,
    alphas: Sequence[float] | None,
    betas: Sequence[float] | None,
    defaults: Sequence[str],
    direction: str,
) -> list[list[Activation]]:
    """The exact activations of each direction, see `named_activations`."""
    return chosen_of(_FAMILIES, names, alphas, betas, defaults, len(directions(direction)))


@kernel("RNN", grade="exact")
@canonicalised
def rnn(
    x: Array,
    w: Array,
    r: Array,
    b: Array | None = None,
    sequence_lens: Array | None = None,
    initial_h: Array | None = None,
    *,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
    output_sequence: int = 0,
) -> tuple[Array, ...]:
    """RNN 1/7/14/22: `H' = f(X W' + H R' + biases)`; gives Y and Y_h."""
    functions = chosen(activations, activation_alpha, activation_beta, ("Tanh",), direction)
    return rnn_layer(
        x, w, r, b, sequence_lens, initial_h, functions, multiplier, clip, direction, layout
    )


@kernel("GRU", grade="exact")
@canonicalised
def gru(
    x: Array,
    w: Array,
    r: Array,
    b: Array | None = None,
    sequence_lens: Array | None = None,
    initial_h: Array | None = None,
    *,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
    linear_before_reset: int = 0,
    output_sequence: int = 0,
) -> tuple[Array, ...]:
    """GRU 1/3/7/14/22: update, reset and hidden gates; gives Y and Y_h."""
    defaults = ("Sigmoid", "Tanh")
    functions = chosen(activations, activation_alpha, activation_beta, defaults, direction)
    after = bool(linear_before_reset)
    return gru_layer(
        x, w, r, b, sequence_lens, initial_h, functions, multiplier, clip, direction, layout, after
    )


@kernel("LSTM", grade="exact")
@canonicalised
def lstm(
    x: Array,
    w: Array,
    r: Array,
    b: Array | None = None,
    sequence_lens: Array | None = None,
    initial_h: Array | None = None,
    initial_c: Array | None = None,
    p: Array | None = None,
    *,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
    layout: int = 0,
    output_sequence: int = 0,
) -> tuple[Array, ...]:
    """LSTM 1/7/14/22: input, output, forget and cell gates; gives Y, Y_h and Y_c."""
    defaults = ("Sigmoid", "Tanh", "Tanh")
    functions = chosen(activations, activation_alpha, activation_beta, defaults, direction)
    return lstm_layer(
        x, w, r, b, sequence_lens, initial_h, initial_c, p, functions, multiplier,
        clip, direction, layout, input_forget,
    )  # fmt: skip
