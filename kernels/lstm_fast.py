"""LSTM 1..22 as most models have it: sigmoid gates, tanh, all sequences of full length.

A step takes ten calls for both directions together:

    z = h @ R' + projected[t]    (gate, direction, batch, hidden), gates o, i, f with signs turned
    o, i, f = 1 / (1 + exp(z))   one sigmoid for three gates
    c = f c + i tanh(z)          one product: i and f, which are neighbours, times tanh(z) and c
    h = o tanh(c)                written where Y has it
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from foldline.kernels.lstm import lstm
from foldline.kernels.recurrent import directions
from foldline.kernels.recurrent_fast import (
    Form,
    Memory,
    Weights,
    is_plain,
    layer_step,
    left_to,
    sigmoid_of_turned,
)
from foldline.kernels.registry import Array, Operand, Step, maker
from foldline.kernels.ufuncs import constant

_PLAIN = ("sigmoid", "tanh", "tanh")


@maker("LSTM")
def lstm_in_place(
    x: Operand,
    w: Operand,
    r: Operand,
    b: Operand | None = None,
    sequence_lens: Operand | None = None,
    initial_h: Operand | None = None,
    initial_c: Operand | None = None,
    p: Operand | None = None,
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
    out: Array | None = None,
) -> Callable[..., Any] | Step:
    """LSTM 1/7/14/22 without allocations in its loop; the reference for what is rare."""
    reverse = directions(direction)
    plain = _PLAIN * len(reverse)
    if (
        tuple(name.lower() for name in activations or plain) == plain
        and p is None
        and not input_forget
        and is_plain(x, w, r, sequence_lens, len(reverse), clip, layout)
    ):
        return layer_step(_FORM, reverse, x, w, r, b)
    return left_to(
        lstm,
        activation_alpha=activation_alpha,
        activation_beta=activation_beta,
        activations=activations,
        clip=clip,
        direction=direction,
        hidden_size=hidden_size,
        input_forget=input_forget,
        layout=layout,
    )


def _loop(weights: Weights, memory: Memory, states: Sequence[Array]) -> Array:
    (h, last), (recurrence,), (recurred,) = states, weights.recurrence, memory.recurred
    (by_gate,), multiply = memory.by_gate, memory.multiply
    gates, factors, products = memory.work[:4], memory.work[4:6], memory.work[6:]
    sigmoids, o, i_and_f, new = gates[:3], gates[0], gates[1:3], gates[3]
    hyperbolic, c = factors
    added, kept = products
    one = constant(1, h.dtype)
    np.copyto(c, last)
    for inputs, output in zip(memory.inputs, memory.outputs, strict=True):
        multiply(h, recurrence, recurred)
        np.add(by_gate, inputs, gates)
        sigmoid_of_turned(sigmoids, one)
        np.tanh(new, hyperbolic)
        np.multiply(i_and_f, factors, products)
        np.add(kept, added, c)
        np.tanh(c, hyperbolic)
        h = np.multiply(o, hyperbolic, output)
    np.copyto(last, c)
    return h


_FORM = Form(_loop, products=(4,), turned=3, work=8, states=2, swapped=(0, 1))
