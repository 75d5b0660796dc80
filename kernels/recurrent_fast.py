"""What the fast makers of LSTM, GRU and RNN share: layers that allocate nothing in their loop.

    projected = x @ W' + biases    one product for all steps of a direction
    for each step                  calls in place, on contiguous memory, for both directions

A step is bound by the calls it takes. A sigmoid is `1 / (1 + exp(z))`, with the sign of `z` turned
in the weights, once, which does not change a bit. For a reversed direction the inputs are turned
round, and what comes out is turned back. What is rare is left to the reference.

One sequence in one direction is computed on vectors, without those two axes: then `numpy.dot`
multiplies, which takes 2.9 us where `numpy.matmul` takes 3.5 for 128 x 512 and gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from foldline.kernels.epilogue import Apply, Epilogue
from foldline.kernels.precision import rounded
from foldline.kernels.registry import Array, Operand, Step, aligned_bytes
from foldline.kernels.tiled_products import Product, flat_product
from foldline.kernels.windows import aligned_size

COMPUTED = frozenset(map(np.dtype, (np.float32, np.float64)))


@dataclass(frozen=True)
class Weights:
    """The weights as a loop wants them; of one sequence, all but `inputs` without two axes."""

    inputs: Array
    """`(directions, size, gates * hidden)`."""
    recurrence: tuple[Array, ...]
    """For each product of a step, `(directions, hidden, gates * hidden)`."""
    late: Array
    """`(directions, 1, gates * hidden)`: biases of the recurrence that the step itself adds."""
    added: Sequence[Apply | None]
    """For each direction, what adds the bias to the projected inputs."""


class Memory(NamedTuple):
    """What a loop works in; of one sequence, without the axes of directions and batch."""

    inputs: Array
    """Projected, `(steps, gates, directions, batch, hidden)`."""
    recurred: Sequence[Array]
    """For each product of a step, `(directions, batch, gates * hidden)`."""
    by_gate: Sequence[Array]
    """The same, `(gates, directions, batch, hidden)`."""
    work: Array
    """`(arrays, directions, batch, hidden)`."""
    outputs: Array
    """`(steps, directions, batch, hidden)`, to be filled."""
    multiply: Callable[[Array, Array, Array], object]
    """(output of a step, recurrence, where to)"""


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
    swapped: tuple[int, int] = (0, 0)
    """Two gates that take each other's place, for neighbours to be computed together."""

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
        return layer.bound(x, projections, weights, initial, y, scratch)()

    def bind(
        x: Array, w: Array, r: Array, *others: Array | None, out: Array, scratch: Array
    ) -> Callable[[], tuple[Array, ...]]:
        assert static is not None, "only constant weights are bound"
        return layer.bound(x, projections, static, others[2:], out, scratch)

    return Step(run, layer.scratch_bytes, bind=None if static is None else bind)


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
        self._is_single = count == self.batch == 1
        self._axes = () if self._is_single else (count, self.batch)
        shapes = (
            self._projected_shape,
            (self.steps, *self._axes, hidden),  # outputs in the order of the steps
            (form.work, *self._axes, hidden),
            *((*self._axes, gates * hidden) for gates in form.products),
        )
        *offsets, total = accumulate(
            (aligned_size(shape, dtype.itemsize) for shape in shapes), initial=0
        )
        self._places = list(zip(offsets, shapes, strict=True))
        self.scratch_bytes = max(total, 64)

    def projections(self, weights: Weights | None) -> list[Product]:
        """The product of all inputs with the weights of each direction, which may be known."""
        count, rows, columns = self._projected_shape
        known = [None] * count if weights is None else weights.inputs
        return [flat_product(rows, self.size, columns, self.dtype, each) for each in known]

    def weights(self, w: Array, r: Array, b: Array | None) -> Weights:
        """The weights as the loop wants them."""
        form, hidden = self.form, self.hidden
        recurrence = self._arranged(r)
        ends = accumulate(form.products, initial=0)
        parts = [recurrence[:, i * hidden : j * hidden] for i, j in pairwise(ends)]
        late = np.zeros((len(w), 1, form.late * hidden), self.dtype)
        added: list[Apply | None] = [None] * len(w)
        if b is not None:
            both = b.astype(self.dtype, copy=False).reshape(len(w), 2, form.gates * hidden)
            joined = (form.gates - form.late) * hidden
            bias = both[:, 0].copy()
            np.add(bias[:, :joined], both[:, 1, :joined], bias[:, :joined])
            added = [Epilogue(each, None).apply for each in self._arranged(bias)]
            late = both[:, 1:, joined:].copy()
        recurrences = tuple(_aligned(part.transpose(0, 2, 1)) for part in parts)
        return Weights(
            _aligned(self._arranged(w).transpose(0, 2, 1)),
            tuple(each[0] for each in recurrences) if self._is_single else recurrences,
            late[0, 0] if self._is_single else late,
            added,
        )

    def _arranged(self, gates: Array) -> Array:
        """A copy with signs turned and gates swapped."""
        form, rest = self.form, gates.shape[2:]
        arranged = gates.reshape(len(gates), form.gates, self.hidden, *rest).copy()
        front = arranged[:, : form.turned]
        np.negative(front, front)
        arranged[:, form.swapped] = arranged[:, form.swapped[::-1]]
        return arranged.reshape(gates.shape)

    def bound(
        self,
        x: Array,
        projections: Sequence[Product],
        weights: Weights,
        initial: Sequence[Array | None],
        y: Array,
        scratch: Array,
    ) -> Callable[[], tuple[Array, ...]]:
        """What computes Y, which is `y`, and the last states."""
        projected, outputs, work, *recurred = [
            np.ndarray(shape, self.dtype, scratch, offset) for offset, shape in self._places
        ]
        inputs = [x[::-1] if turned else x for turned in self.reverse]
        steps = list(
            zip(projections, inputs, weights.inputs, projected, weights.added, strict=True)
        )
        is_turned = any(self.reverse)
        outputs = outputs if is_turned else y.reshape(outputs.shape)
        memory = self._memory(projected, recurred, work, outputs)
        given = (*initial, *[None] * self.form.states)[: self.form.states]

        def compute() -> tuple[Array, ...]:
            for project, seen, matrix, into, added in steps:
                rows = np.ascontiguousarray(seen).reshape(self.steps * self.batch, self.size)
                project(rows, matrix, into, added)
            states = [self._state(each) for each in given]
            loop_states = [state[0, 0] for state in states] if self._is_single else states
            last = self.form.loop(weights, memory, loop_states).reshape(self.state_shape)
            if is_turned:
                ordered = outputs.reshape(self.y_shape)
                for d, turned in enumerate(self.reverse):
                    y[:, d] = ordered[::-1, d] if turned else ordered[:, d]
            return (y, last.copy(), *states[1:])

        return compute

    def _memory(
        self, projected: Array, recurred: Sequence[Array], work: Array, outputs: Array
    ) -> Memory:
        hidden, products = self.hidden, self.form.products
        if self._is_single:
            inputs = projected.reshape(self.steps, self.form.gates, hidden)
            by_gate = [
                each.reshape(gates, hidden) for each, gates in zip(recurred, products, strict=True)
            ]
            return Memory(inputs, recurred, by_gate, work, outputs, np.dot)
        count, batch = self.state_shape[:2]
        inputs = projected.reshape(count, self.steps, batch, self.form.gates, hidden)
        by_gate = [
            each.reshape(count, batch, gates, hidden).transpose(2, 0, 1, 3)
            for each, gates in zip(recurred, products, strict=True)
        ]
        inputs = inputs.transpose(1, 3, 0, 2, 4)
        return Memory(inputs, recurred, by_gate, work, outputs, np.matmul)

    def _state(self, initial: Array | None) -> Array:
        return np.zeros(self.state_shape, self.dtype) if initial is None else initial.copy()
