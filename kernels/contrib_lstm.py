"""DynamicQuantizeLSTM of ONNX Runtime: LSTM whose two products are of 8-bit integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from foldline.kernels.contrib_integer_matmul import dynamic_quantize_matmul
from foldline.kernels.dynamic_quantisation import centred_codes
from foldline.kernels.integer_products import ExactMatMul
from foldline.kernels.lstm import lstm_step
from foldline.kernels.recurrent import (
    Cell,
    Product,
    State,
    Step,
    biases,
    clipper,
    directions,
    run_layer,
)
from foldline.kernels.recurrent_activations import named_activations
from foldline.kernels.registry import Array, Operand, maker

_PLAIN = ("sigmoid", "tanh", "tanh")
_ZERO, _ONE = np.zeros((), np.float32), np.ones((), np.float32)


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
    count = len(functions)
    inputs, outputs = Operand((steps * batch, x.shape[2]), kind), Operand((batch, size), kind)
    of_inputs = [_product(inputs, w, w_scale, w_zero_point, d) for d in range(count)]
    names = [name.lower() for name in activations or _PLAIN * count]
    is_plain = names == [*_PLAIN] * count and clip is None and p is None and not input_forget
    known = [_factor(outputs, r, r_zero_point, d) if is_plain else None for d in range(count)]
    of_outputs = [
        _product(outputs, r, r_scale, r_zero_point, d) if each is None else None
        for d, each in enumerate(known)
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
            bias_w, bias_r = biases(b, d, 4 * size)
            return Cell(bias_w + bias_r, step(d), of_inputs[d](w, w_scale, w_zero_point))

        def step(d: int) -> Step:
            factor, multiply = known[d], of_outputs[d]
            if factor is not None:
                return _plain_step(factor, r_scale[d], batch)
            assert multiply is not None
            return lstm_step(
                multiply(r, r_scale, r_zero_point),
                functions[d],
                clipper(clip),
                None if p is None else p[d].reshape(3, size),
                input_forget,
            )

        initial = [initial_h, initial_c]
        return run_layer(x, w, initial, sequence_lens, cell, size, direction, layout=0)

    return run


def _factor(outputs: Operand, r: Operand, zero: Operand, d: int) -> Array | None:
    """The centred weights of a step in float32, if one product with them is exact."""
    byte = np.dtype(np.uint8)
    operands = Operand(outputs.shape, byte), _of_direction(r, d), Operand((), byte)
    return ExactMatMul(*operands, _of_direction(zero, d)).factor


def _plain_step(weights: Array, weight_scale: Array, batch: int) -> Step:
    """What `lstm_step` does for gates of Sigmoid, Tanh and Tanh, in place."""
    size, columns = weights.shape
    gates = np.empty((batch, columns), np.float32)
    iof, new = gates[:, : 3 * size], gates[:, 3 * size :]
    i, o, forget = (gates[:, n * size : (n + 1) * size] for n in range(3))

    def step(projected: Array, state: State) -> State:
        last, c = state
        codes, scale = centred_codes(last)
        np.dot(codes, weights, gates)  # For one row a tenth faster than numpy.matmul.
        np.add(gates, _ZERO, gates)  # Integers have no -0.
        np.multiply(gates, scale * weight_scale, gates)
        np.add(gates, projected, gates)
        np.negative(iof, iof)
        np.exp(iof, iof)
        np.add(iof, _ONE, iof)
        np.reciprocal(iof, iof)
        np.tanh(new, new)
        np.multiply(i, new, new)
        c = np.multiply(forget, c)
        np.add(c, new, c)
        h = np.tanh(c)
        return np.multiply(o, h, h), c

    return step


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
