"""RNN, GRU and LSTM 1..22: forward, reverse and bidirectional layers.

    all inputs @ W' + biases   one product, outside the loop
    for each step              state = cell(projected input, state)

A reversed sequence is turned round within its own length, run forward, and turned back. Beyond
the length of its sequence a batch row keeps its state, and its outputs are zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from foldline.kernels.parallel import parallel_for
from foldline.kernels.precision import rounded, widened
from foldline.kernels.recurrent_activations import Activation, named_activations
from foldline.kernels.registry import Array, kernel

State = tuple[Array, ...]
Step = Callable[[Array, State], State]
"""(projected inputs (batch, gates * hidden), state) -> new state; the first of it is the output."""

Product = Callable[[Array], Array]
"""From the rows of a matrix to those of its product with weights."""
Multiplier = Callable[[Array], Product]
"""From a matrix to products with it; what it can prepare, it prepares once."""


def by_matmul(weights: Array) -> Product:
    """The Multiplier of `numpy.matmul`."""
    return lambda rows: np.matmul(rows, weights)


@dataclass(frozen=True)
class Cell:
    """One direction of a layer: what is added to all projected inputs, and the step."""

    bias: Array
    step: Step
    project: Product
    """Inputs `(rows, size)` to gates `(rows, gates * hidden)`."""


def run_layer(
    x: Array,
    w: Array,
    initial: Sequence[Array | None],
    lengths: Array | None,
    cell: Callable[[int], Cell],
    hidden: int,
    direction: str,
    layout: int,
) -> tuple[Array, ...]:
    """Y and the last states, in the dtype of `x`; `cell(d)` makes the cell of direction `d`.

    The states are float32 where `x` is of a narrow float. ValueError when the directions of `w`
    are not those of `direction`.
    """
    reverse = directions(direction)
    if w.shape[0] != len(reverse):
        raise ValueError(f"direction is {direction!r}, but W has {w.shape[0]} directions")
    dtype, x = x.dtype, widened(x)
    x = x.swapaxes(0, 1) if layout else x
    steps, batch, _ = x.shape
    shape = (len(reverse), batch, hidden)
    y = np.zeros((steps, *shape), x.dtype)
    states = [np.zeros(shape, x.dtype) for _ in initial]
    for state, given in zip(states, initial, strict=True):
        if given is not None:
            state[...] = given.swapaxes(0, 1) if layout else given
    if lengths is not None and (lengths >= steps).all():
        lengths = None

    def run(d: int) -> None:
        last = _run_cell(x, cell(d), reverse[d], lengths, [s[d] for s in states], y[:, d])
        for state, value in zip(states, last, strict=True):
            state[d] = value

    parallel_for(len(reverse), run)
    if layout:
        y, states = y.transpose(2, 0, 1, 3), [s.swapaxes(0, 1) for s in states]
    return tuple(rounded(np.ascontiguousarray(a), dtype) for a in (y, *states))


def directions(direction: str) -> tuple[bool, ...]:
    """For each direction, whether it runs from the end. The schema of GRU 1 spells "foward"."""
    known = {
        "forward": (False,),
        "foward": (False,),
        "reverse": (True,),
        "bidirectional": (False, True),
    }
    if direction not in known:
        raise ValueError(
            f"direction is {direction!r}, expected 'forward', 'reverse' or 'bidirectional'"
        )
    return known[direction]


def _run_cell(
    x: Array,
    cell: Cell,
    reverse: bool,
    lengths: Array | None,
    initial: Sequence[Array],
    y: Array,
) -> State:
    steps, batch, size = x.shape
    x = _turned(x, lengths) if reverse else x
    rows = x.reshape(steps * batch, size)
    projected = cell.project(rows)
    projected = np.add(projected, cell.bias, out=projected).reshape(steps, batch, len(cell.bias))
    outputs = np.zeros(y.shape, y.dtype) if reverse else y
    last = state = tuple(initial)
    for t in range(steps):
        new = cell.step(projected[t], state)
        if lengths is None:
            last = state = new
            outputs[t] = state[0]
        else:
            active = (t < lengths)[:, None]
            last = tuple(np.where(active, n, s) for n, s in zip(new, last, strict=True))
            # What ended must not count where a cell quantises the outputs of all rows.
            state = tuple(np.where(active, n, n.dtype.type(0)) for n in new)
            outputs[t] = state[0]
    if reverse:
        y[...] = _turned(outputs, lengths)
    return last


def _turned(x: Array, lengths: Array | None) -> Array:
    """`x` `(steps, batch, size)` with each sequence turned round, what follows it left alone."""
    if lengths is None:
        return x[::-1]
    places = np.arange(x.shape[0], dtype=np.intp)[:, None]
    mirrored = np.where(places < lengths, lengths - 1 - places, places)
    return x[mirrored, np.arange(x.shape[1])]


def clipper(clip: float | None) -> Callable[[Array], Array]:
    if clip is None:
        return lambda x: x
    return lambda x: np.clip(x, -clip, clip)


def biases(b: Array | None, d: int, count: int) -> tuple[Array, Array]:
    """Biases of direction `d`, of the inputs and of the recurrence, `count` each."""
    if b is None:
        return np.zeros(count, np.float32), np.zeros(count, np.float32)
    return widened(b[d, :count]), widened(b[d, count:])


@kernel("RNN")
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
    functions = named_activations(
        activations, activation_alpha, activation_beta, ("Tanh",), len(directions(direction))
    )
    return rnn_layer(
        x, w, r, b, sequence_lens, initial_h, functions, by_matmul, clip, direction, layout
    )


def rnn_layer(
    x: Array,
    w: Array,
    r: Array,
    b: Array | None,
    lengths: Array | None,
    initial_h: Array | None,
    functions: Sequence[Sequence[Activation]],
    multiplier: Multiplier,
    clip: float | None,
    direction: str,
    layout: int,
) -> tuple[Array, ...]:
    """RNN with given activations for each direction and a given product of matrices."""
    clipped = clipper(clip)

    def cell(d: int) -> Cell:
        (f,) = functions[d]
        project, recur = multiplier(widened(w[d]).T), multiplier(widened(r[d]).T)
        bias_w, bias_r = biases(b, d, r.shape[1])

        def step(projected: Array, state: State) -> State:
            return (f(clipped(projected + recur(state[0]))),)

        return Cell(bias_w + bias_r, step, project)

    return run_layer(x, w, [initial_h], lengths, cell, r.shape[-1], direction, layout)


@kernel("GRU")
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
    functions = named_activations(
        activations, activation_alpha, activation_beta, ("Sigmoid", "Tanh"),
        len(directions(direction)),
    )  # fmt: skip
    after = bool(linear_before_reset)
    return gru_layer(
        x, w, r, b, sequence_lens, initial_h, functions, by_matmul, clip, direction, layout, after
    )


def gru_layer(
    x: Array,
    w: Array,
    r: Array,
    b: Array | None,
    lengths: Array | None,
    initial_h: Array | None,
    functions: Sequence[Sequence[Activation]],
    multiplier: Multiplier,
    clip: float | None,
    direction: str,
    layout: int,
    linear_before_reset: bool,
) -> tuple[Array, ...]:
    """GRU with given activations for each direction and a given product of matrices."""
    clipped = clipper(clip)
    size = r.shape[-1]
    gates, hidden = slice(0, 2 * size), slice(2 * size, None)

    def cell(d: int) -> Cell:
        f, g = functions[d]
        project, recurrence = multiplier(widened(w[d]).T), widened(r[d]).T
        bias_w, bias_r = biases(b, d, r.shape[1])
        bias = bias_w + bias_r
        if linear_before_reset:
            bias[hidden] = bias_w[hidden]  # the other is part of what the reset gate scales

        def reset_before() -> Step:
            to_gates, to_hidden = (multiplier(recurrence[:, part]) for part in (gates, hidden))

            def step(projected: Array, state: State) -> State:
                (h,) = state
                z, reset = _halves(f(clipped(projected[:, gates] + to_gates(h))))
                new = g(clipped(projected[:, hidden] + to_hidden(reset * h)))
                return ((1 - z) * new + z * h,)

            return step

        def reset_after() -> Step:
            recur = multiplier(recurrence)

            def step(projected: Array, state: State) -> State:
                (h,) = state
                recurred = recur(h)
                z, reset = _halves(f(clipped(projected[:, gates] + recurred[:, gates])))
                inner = reset * (recurred[:, hidden] + bias_r[hidden])
                new = g(clipped(projected[:, hidden] + inner))
                return ((1 - z) * new + z * h,)

            return step

        return Cell(bias, reset_after() if linear_before_reset else reset_before(), project)

    return run_layer(x, w, [initial_h], lengths, cell, size, direction, layout)


def _halves(x: Array) -> tuple[Array, Array]:
    half = x.shape[1] // 2
    return x[:, :half], x[:, half:]
