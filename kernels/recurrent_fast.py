"""What the fast makers of LSTM, GRU and RNN share: layers that allocate nothing in their loop.

    projected = x @ W' + biases    one product for all steps of a direction
    for each step                  calls in place, on contiguous memory, for both directions

A step is bound by the calls it takes. A sigmoid is `1 / (1 + exp(z))`, with the sign of `z` turned
in the weights, once, which does not change a bit. For a reversed direction the inputs are turned
round, and what comes out is turned back. What is rare is left to the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, TypeAlias

import numpy as np

from foldline.kernels.epilogue import Epilogue
from foldline.kernels.precision import rounded
from foldline.kernels.registry import Array, Operand, Step, aligned_bytes
from foldline.kernels.tiled_products import Product, flat_product
from foldline.kernels.windows import aligned_size, scratch_view

COMPUTED = frozenset(map(np.dtype, (np.float32, np.float64)))


@dataclass(frozen=True)
class Weights:
    """The weights as a loop wants them."""

    inputs: Array
    """`(directions, size, gates * hidden)`."""
    recurrence: tuple[Array, ...]
    """For each product of a step, `(directions, hidden, gates * hidden)`."""
    bias: Array | None
    """`(directions, gates * hidden)`: what is added to the projected inputs."""
    late: Array
    """`(directions, 1, gates * hidden)`: biases of the recurrence that the step itself adds."""


@dataclass(frozen=True)
class Memory:
    """What a loop works in."""

    inputs: Array
    """Projected, `(steps, gates, directions, batch, hidden)`."""
    recurred: tuple[Array, ...]
    """For each product of a step, `(directions, batch, gates * hidden)`."""
    work: Array
    """`(arrays, directions, batch, hidden)`."""
    outputs: Array
    """`(steps, directions, batch, hidden)`, to be filled."""


Loop: TypeAlias = Callable[[Weights, Memory, Sequence[Array]], Array]
"""(weights, memory, states) -> the last output; states other than the output change in place."""


@dataclass(frozen=True)
class Form:
    """What sets one kind of layer apart from another."""

    loop: Loop
    products: tuple[int, ...]
    """How many gates each product of a step is for."""
    turned: int = 0
    """So many gates at the front are sigmoids, whose signs are turned."""
    late: int = 0
    """So many at the end have their recurrent bias apart."""
    work: int = 0
    """How many arrays of the size of a state a step needs."""
    states: int = 1

    @property
    def gates(self) -> int:
        """How many there are."""
        return sum(self.products)


def is_plain(
    x: Operand,
    w: Operand,
    r: Operand,
    lengths: Operand | None,
    directions: int,
    clip: float | None,
    layout: int,
) -> bool:
    """Whether nothing but the activations may ask for the reference."""
    return (
        x.dtype in COMPUTED
        and x.dtype == w.dtype == r.dtype
        and w.shape[0] == directions
        and not _some_end_early(lengths, x.shape[0])
        and clip is None
        and not layout
    )


def _some_end_early(lengths: Operand | None, steps: int) -> bool:
    return lengths is not None and (lengths.value is None or bool((lengths.value < steps).any()))


def left_to(reference: Callable[..., tuple[Array, ...]], **attributes: Any) -> Callable[..., Any]:
    """The reference kernel, with a destination for Y."""
    compute = partial(reference, **attributes)

    def run_rare(*inputs: Any, out: Array | None = None) -> tuple[Array, ...]:
        y, *states = compute(*inputs)
        return (rounded(y, y.dtype, out), *states)

    return run_rare


def layer_step(
    form: Form, reverse: Sequence[bool], x: Operand, w: Operand, r: Operand, b: Operand | None
) -> Step:
    """What computes Y and the last states; constant weights are made ready once."""
    layer = _Layer(form, reverse, x.shape, r.shape[2], x.dtype)
    static = None
    if w.value is not None and r.value is not None and (b is None or b.value is not None):
        static = layer.weights(w.value, r.value, None if b is None else b.value)
    projections = layer.projections(static)

    def run(
        x: Array,
        w: Array,
        r: Array,
        b: Array | None = None,
        sequence_lens: Array | None = None,
        *initial: Array | None,
        out: Array | None = None,
        scratch: Array,
    ) -> tuple[Array, ...]:
        weights = layer.weights(w, r, b) if static is None else static
        y = np.empty(layer.y_shape, x.dtype) if out is None else out
        return layer.run(x, projections, weights, initial, y, scratch)

    return Step(run, layer.scratch_bytes)


def gates_of(recurred: Array, hidden: int) -> Array:
    """The result of a product by gates, `(gates, directions, batch, hidden)`."""
    count, batch, columns = recurred.shape
    gates = columns // hidden if hidden else 0
    return recurred.reshape(count, batch, gates, hidden).transpose(2, 0, 1, 3)


def sigmoid_of_turned(z: Array, one: Array) -> None:
    """The sigmoid of `-z`, in place."""
    np.exp(z, z)
    np.add(z, one, z)
    np.divide(one, z, z)


def _aligned(array: Array) -> Array:
    """A copy at the start of a cache line, where a row times it takes up to a sixth less time."""
    copy = aligned_bytes(array.nbytes).view(array.dtype).reshape(array.shape)
    np.copyto(copy, array)
    return copy


class _Layer:
    """What shapes decide."""

    def __init__(
        self,
        form: Form,
        reverse: Sequence[bool],
        x: tuple[int, ...],
        hidden: int,
        dtype: np.dtype[Any],
    ):
        self.form, self.reverse, self.dtype = form, reverse, dtype
        self.steps, self.batch, self.size = x
        self.hidden = hidden
        count = len(reverse)
        self.state_shape = (count, self.batch, hidden)
        self.y_shape = (self.steps, *self.state_shape)
        self._projected_shape = (count, self.steps * self.batch, form.gates * hidden)
        self._shapes = (
            self._projected_shape,
            self.y_shape,  # outputs in the order of the steps
            (form.work, *self.state_shape),
            *((count, self.batch, gates * hidden) for gates in form.products),
        )
        sizes = [aligned_size(shape, dtype.itemsize) for shape in self._shapes]
        *self._offsets, total = accumulate(sizes, initial=0)
        self.scratch_bytes = max(total, 64)

    def projections(self, weights: Weights | None) -> list[Product]:
        """The product of all inputs with the weights of each direction, which may be known."""
        count, rows, columns = self._projected_shape
        known = [None] * count if weights is None else weights.inputs
        return [flat_product(rows, self.size, columns, self.dtype, each) for each in known]

    def weights(self, w: Array, r: Array, b: Array | None) -> Weights:
        """The weights as the loop wants them."""
        form, hidden = self.form, self.hidden
        recurrence = self._turned(r)
        ends = accumulate(form.products, initial=0)
        parts = [recurrence[:, i * hidden : j * hidden] for i, j in pairwise(ends)]
        late = np.zeros((len(w), 1, form.late * hidden), self.dtype)
        bias = None
        if b is not None:
            both = b.astype(self.dtype, copy=False).reshape(len(w), 2, form.gates * hidden)
            joined = (form.gates - form.late) * hidden
            bias = both[:, 0].copy()
            np.add(bias[:, :joined], both[:, 1, :joined], bias[:, :joined])
            bias, late = self._turned(bias), both[:, 1:, joined:].copy()
        return Weights(
            _aligned(self._turned(w).transpose(0, 2, 1)),
            tuple(_aligned(part.transpose(0, 2, 1)) for part in parts),
            bias,
            late,
        )

    def _turned(self, gates: Array) -> Array:
        turned = gates.copy()
        front = turned[:, : self.form.turned * self.hidden]
        np.negative(front, front)
        return turned

    def run(
        self,
        x: Array,
        projections: Sequence[Product],
        weights: Weights,
        initial: Sequence[Array | None],
        y: Array,
        scratch: Array,
    ) -> tuple[Array, ...]:
        """Y, which is `y`, and the last states."""
        projected, outputs, work, *recurred = (
            scratch_view(scratch, offset, shape, self.dtype)
            for offset, shape in zip(self._offsets, self._shapes, strict=True)
        )
        for d, project in enumerate(projections):
            rows = np.ascontiguousarray(x[::-1] if self.reverse[d] else x)
            bias = None if weights.bias is None else weights.bias[d]
            apply = Epilogue(bias, None).apply
            rows = rows.reshape(self.steps * self.batch, self.size)
            project(rows, weights.inputs[d], projected[d], apply)
        count, batch, hidden = self.state_shape
        by_gate = projected.reshape(count, self.steps, batch, self.form.gates, hidden)
        is_turned = any(self.reverse)
        outputs = outputs if is_turned else y
        memory = Memory(by_gate.transpose(1, 3, 0, 2, 4), tuple(recurred), work, outputs)
        given = (*initial, *[None] * self.form.states)[: self.form.states]
        states = [self._state(each) for each in given]
        last = self.form.loop(weights, memory, states)
        if is_turned:
            for d, turned in enumerate(self.reverse):
                y[:, d] = outputs[::-1, d] if turned else outputs[:, d]
        return (y, last.copy(), *states[1:])

    def _state(self, initial: Array | None) -> Array:
        return np.zeros(self.state_shape, self.dtype) if initial is None else initial.copy()
