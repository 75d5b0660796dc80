"""GRU and RNN 1..22 as most models have them: usual activations, sequences of full length.

A step of GRU takes twelve calls, whether it resets the last output or what is made of it:

    z, r = 1 / (1 + exp(h @ R' + projected[t]))    gates z and r with signs turned
    n = tanh(r (h @ R' + bias) + projected[t])     linear_before_reset
      = tanh((r h) @ R' + projected[t])            otherwise
    h = n + z (h - n)                              written where Y has it
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from foldline.kernels.recurrent import directions, gru, rnn
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
from foldline.kernels.ufuncs import constant, positive_part

_GRU_PLAIN = ("sigmoid", "tanh")
_RNN_FUNCTIONS: dict[str, Callable[[Array, Array], Any]] = {
    "tanh": np.tanh,
    "relu": positive_part,
}


@maker("GRU")
def gru_in_place(
    x: Operand,
    w: Operand,
    r: Operand,
    b: Operand | None = None,
    sequence_lens: Operand | None = None,
    initial_h: Operand | None = None,
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
    out: Array | None = None,
) -> Callable[..., Any] | Step:
    """GRU 1/3/7/14/22 without allocations in its loop; the reference for what is rare."""
    reverse = directions(direction)
    plain = _GRU_PLAIN * len(reverse)
    names = tuple(name.lower() for name in activations or plain)
    if names == plain and is_plain(x, w, r, sequence_lens, len(reverse), clip, layout):
        return layer_step(
            _RESET_AFTER if linear_before_reset else _RESET_BEFORE, reverse, x, w, r, b
        )
    return left_to(
        gru,
        activation_alpha=activation_alpha,
        activation_beta=activation_beta,
        activations=activations,
        clip=clip,
        direction=direction,
        hidden_size=hidden_size,
        layout=layout,
        linear_before_reset=linear_before_reset,
    )


@maker("RNN")
def rnn_in_place(
    x: Operand,
    w: Operand,
    r: Operand,
    b: Operand | None = None,
    sequence_lens: Operand | None = None,
    initial_h: Operand | None = None,
    *,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
    output_sequence: int = 0,
    out: Array | None = None,
) -> Callable[..., Any] | Step:
    """RNN 1/7/14/22 with Tanh or Relu, in three calls a step; the reference for what is rare."""
    reverse = directions(direction)
    names = {name.lower() for name in activations or ("tanh",)}
    enough = activations is None or len(activations) == len(reverse)
    if (
        enough
        and len(names) == 1
        and names <= _RNN_FUNCTIONS.keys()
        and is_plain(x, w, r, sequence_lens, len(reverse), clip, layout)
    ):
        (name,) = names
        form = Form(partial(_rnn_loop, _RNN_FUNCTIONS[name]), products=(1,))
        return layer_step(form, reverse, x, w, r, b)
    return left_to(
        rnn,
        activation_alpha=activation_alpha,
        activation_beta=activation_beta,
        activations=activations,
        clip=clip,
        direction=direction,
        hidden_size=hidden_size,
        layout=layout,
    )


def _rnn_loop(
    function: Callable[[Array, Array], Any],
    weights: Weights,
    memory: Memory,
    states: Sequence[Array],
) -> Array:
    (h,), (recurrence,), (recurred,) = states, weights.recurrence, memory.recurred
    for inputs, output in zip(memory.inputs[:, 0], memory.outputs, strict=True):
        memory.multiply(h, recurrence, recurred)
        np.add(recurred, inputs, recurred)
        function(recurred, output)
        h = output
    return h


def _reset_after(weights: Weights, memory: Memory, states: Sequence[Array]) -> Array:
    (h,), (recurrence,), (recurred,) = states, weights.recurrence, memory.recurred
    (by_gate,), multiply = memory.by_gate, memory.multiply
    recurred_gates, recurred_new = by_gate[:2], by_gate[2]
    gates, new = memory.work[:2], memory.work[2]
    z, reset = gates
    one = constant(1, h.dtype)
    for inputs, inputs_new, output in zip(
        memory.inputs[:, :2], memory.inputs[:, 2], memory.outputs, strict=True
    ):
        multiply(h, recurrence, recurred)
        np.add(recurred_gates, inputs, gates)
        sigmoid_of_turned(gates, one)
        np.add(recurred_new, weights.late, new)
        np.multiply(reset, new, new)
        np.add(new, inputs_new, new)
        h = _blended(h, z, new, reset, output)
    return h


def _reset_before(weights: Weights, memory: Memory, states: Sequence[Array]) -> Array:
    (h,), (recurrence, recurrence_new) = states, weights.recurrence
    recurred, new = memory.recurred
    (recurred_gates, _), gates, multiply = memory.by_gate, memory.work, memory.multiply
    z, reset = gates
    one = constant(1, h.dtype)
    for inputs, inputs_new, output in zip(
        memory.inputs[:, :2], memory.inputs[:, 2], memory.outputs, strict=True
    ):
        multiply(h, recurrence, recurred)
        np.add(recurred_gates, inputs, gates)
        sigmoid_of_turned(gates, one)
        np.multiply(reset, h, reset)
        multiply(reset, recurrence_new, new)
        np.add(new, inputs_new, new)
        h = _blended(h, z, new, reset, output)
    return h


def _blended(h: Array, z: Array, new: Array, spare: Array, output: Array) -> Array:
    """`output`, which becomes `n + z (h - n)` of `n`, the tanh of `new`."""
    np.tanh(new, new)
    np.subtract(h, new, spare)
    np.multiply(z, spare, spare)
    return np.add(new, spare, output)


_RESET_AFTER = Form(_reset_after, products=(3,), turned=2, late=1, work=3)
_RESET_BEFORE = Form(_reset_before, products=(2, 1), turned=2, work=2)
