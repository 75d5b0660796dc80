"""LSTM 1..22, on the loop of `recurrent`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from foldline.kernels.precision import widened
from foldline.kernels.recurrent import (
    Cell,
    Multiplier,
    Product,
    State,
    Step,
    biases,
    by_matmul,
    clipper,
    directions,
    run_layer,
)
from foldline.kernels.recurrent_activations import Activation, named_activations
from foldline.kernels.registry import Array, kernel


@kernel("LSTM")
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
    """LSTM 1/7/14/22: input, output, forget and cell gates; gives Y, Y_h and Y_c.

    `p` are peepholes (input, output, forget). With `input_forget` the forget gate is 1 minus the
    input gate.
    """
    functions = named_activations(
        activations,
        activation_alpha,
        activation_beta,
        ("Sigmoid", "Tanh", "Tanh"),
        len(directions(direction)),
    )
    return lstm_layer(
        x, w, r, b, sequence_lens, initial_h, initial_c, p, functions, by_matmul,
        clip, direction, layout, input_forget,
    )  # fmt: skip


def lstm_layer(
    x: Array,
    w: Array,
    r: Array,
    b: Array | None,
    lengths: Array | None,
    initial_h: Array | None,
    initial_c: Array | None,
    p: Array | None,
    functions: Sequence[Sequence[Activation]],
    multiplier: Multiplier,
    clip: float | None,
    direction: str,
    layout: int,
    input_forget: int,
) -> tuple[Array, ...]:
    """LSTM with given activations for each direction and a given product of matrices."""
    size = r.shape[-1]

    def cell(d: int) -> Cell:
        step = lstm_step(
            multiplier(widened(r[d]).T),
            functions[d],
            clipper(clip),
            None if p is None else widened(p[d]).reshape(3, size),
            input_forget,
        )
        bias_w, bias_r = biases(b, d, r.shape[1])
        return Cell(bias_w + bias_r, step, multiplier(widened(w[d]).T))

    return run_layer(x, w, [initial_h, initial_c], lengths, cell, size, direction, layout)


def lstm_step(
    recur: Product,
    functions: Sequence[Activation],
    clipped: Activation,
    peep: Array | None,
    input_forget: int,
) -> Step:
    """The step of a cell; `recur` takes the last output to what it adds to the gates.

    `functions` are those of the gates, the cell and the output; `peep` is `(3, hidden)`.
    """
    f, g, h = functions

    def step(projected: Array, state: State) -> State:
        last, c = state
        size = c.shape[1]
        gates = recur(last)
        np.add(gates, projected, out=gates)
        i, o, forget = (gates[:, n * size : (n + 1) * size] for n in range(3))
        if peep is None:
            iof = f(clipped(gates[:, : 3 * size]))
            i, o, forget = (iof[:, n * size : (n + 1) * size] for n in range(3))
        else:
            i = f(clipped(i + peep[0] * c))
            forget = f(clipped(forget + peep[2] * c))
        forget = 1 - i if input_forget else forget
        c = forget * c + i * g(clipped(gates[:, 3 * size :]))
        if peep is not None:
            o = f(clipped(o + peep[1] * c))
        return o * h(c), c

    return step
