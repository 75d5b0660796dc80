"""DynamicQuantizeLSTM of ONNX Runtime: LSTM whose two products are of 8-bit integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from foldline.kernels.contrib_integer_matmul import dynamic_quantize_matmul
from foldline.kernels.lstm import lstm_step
from foldline.kernels.recurrent import Cell, Product, biases, clipper, directions, run_layer
from foldline.kernels.recurrent_activations import named_activations
from foldline.kernels.registry import Array, Operand, maker


@maker("DynamicQuantizeLSTM", domain="com.microsoft")
def dynamic_quantize_lstm(
    x: Operand,
    w: Operand,
    r: Operand,
    b: Operand | None,
    sequence_lens: Operand | None,
    initial_h: Operand | None,
    initial_c: Operand | None,
    p: Operand | None,
    w_scale: Operand,
    w_zero_point: Operand,
    r_scale: Operand,
    r_zero_point: Operand,
    *,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
) -> Callable[..., tuple[Array, ...]]:
    """DynamicQuantizeLSTM 1: the LSTM of ONNX, with products as DynamicQuantizeMatMul has them.

    `w` and `r` are `(directions, size, 4 * hidden)`. Their scales and zero points have one for
    each direction, or for each column of it too. The input is quantised as a whole, the output of
    a step for the next one.
    """
    size = r.shape[1]
    functions = named_activations(
        activations,
        activation_alpha,
        activation_beta,
        ("Sigmoid", "Tanh", "Tanh"),
        len(directions(direction)),
    )
    steps, batch, _ = x.shape
    kind = np.dtype(np.float32)
    by_direction = [
        (
            _product(Operand((steps * batch, x.shape[2]), kind), w, w_scale, w_zero_point, d),
            _product(Operand((batch, size), kind), r, r_scale, r_zero_point, d),
        )
        for d in range(len(functions))
    ]

    def run(
        x: Array,
        w: Array,
        r: Array,
        b: Array | None,
        sequence_lens: Array | None,
        initial_h: Array | None,
        initial_c: Array | None,
        p: Array | None,
        w_scale: Array,
        w_zero_point: Array,
        r_scale: Array,
        r_zero_point: Array,
    ) -> tuple[Array, ...]:
        def cell(d: int) -> Cell:
            of_inputs, of_outputs = by_direction[d]
            step = lstm_step(
                of_outputs(r, r_scale, r_zero_point),
                functions[d],
                clipper(clip),
                None if p is None else p[d].reshape(3, size),
                input_forget,
            )
            bias_w, bias_r = biases(b, d, 4 * size)
            return Cell(bias_w + bias_r, step, of_inputs(w, w_scale, w_zero_point))

        initial = [initial_h, initial_c]
        return run_layer(x, w, initial, sequence_lens, cell, size, direction, layout=0)

    return run


def _product(
    rows: Operand, weights: Operand, scale: Operand, zero: Operand, d: int
) -> Callable[[Array, Array, Array], Product]:
    """What makes the product of direction `d` from weights, scale and zero point of all."""
    multiply = dynamic_quantize_matmul(rows, *(_of_direction(x, d) for x in (weights, scale, zero)))

    def bind(weights: Array, scale: Array, zero: Array) -> Product:
        return lambda rows: multiply(rows, weights[d], scale[d], zero[d])

    return bind


def _of_direction(x: Operand, d: int) -> Operand:
    return Operand(x.shape[1:], x.dtype, None if x.value is None else x.value[d])
