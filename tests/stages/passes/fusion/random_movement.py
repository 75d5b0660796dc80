"""Random chains of element-wise operators, and random Transposes among what they may pass."""

from __future__ import annotations

import numpy as np

from tests.stages.passes.fusion.random_graphs import UNARY, Family, Graph

BINARY = ("Add", "Div", "Max", "Min", "Mul", "Sub")
SMOOTH = (*UNARY, "Ceil", "Exp", "Sigmoid", "Softsign", "Sqrt", "Elu", "Softplus")


def element_wise(g: Graph) -> None:
    """A few operators of values of one shape, or of shapes that broadcast."""
    shape = g.shape(0, 4)
    live = [g.input(g.normal(*shape), special=True) for _ in range(g.pick((1, 2, 3)))]
    if g.chance(0.5):
        small = tuple(n if g.chance(0.5) else 1 for n in shape)[int(g.rng.integers(3)) :]
        array = g.normal(*small)
        live.append(g.constant(array) if g.chance(0.5) else g.input(array))
    for _ in range(int(g.rng.integers(2, 8))):
        a, b = g.pick(live[-3:]), g.pick(live)
        match int(g.rng.integers(6)):
            case 0 | 1:
                live.append(g.op(g.pick(SMOOTH), a))
            case 2 | 3:
                live.append(g.both(g.pick(BINARY), a, b))
            case 4:
                live.append(g.clip(a, *g.pick(((0.0, 6.0), (-1.0, 1.0)))))
            case _:
                test = g.op(g.pick(("Greater", "Less", "Equal")) if g.opset >= 11 else "Less", a, b)
                live.append(g.op("Where", test, b, a) if g.chance(0.8) else a)
                if live[-1] == a:
                    g.outputs.append(g.op("Cast", g.op("Not", test), to=g.pick((1, 6, 11))))
    _unread(g, live)


def _unread(g: Graph, live: list[str]) -> None:
    """What nothing reads is given out."""
    read = {name for node in g.nodes for name in node.input}
    made = {name for node in g.nodes for name in node.output if node.op_type != "Constant"}
    left = [name for name in live if name not in read and name in made]
    g.outputs += left or [g.op("Relu", live[0])]


def transposes(g: Graph) -> None:
    """Transposes, some of which undo others, among what they may pass."""
    rank = g.pick((2, 3, 4))
    shape = tuple(g.size(1, 2, 3, 4) for _ in range(rank))
    sizes = {name: shape for name in [g.input(g.normal(*shape), special=True)]}
    orders: dict[str, tuple[int, ...]] = {}
    live = list(sizes)
    for _ in range(int(g.rng.integers(3, 9))):
        x = g.pick(live[-2:])
        own = sizes[x]
        match int(g.rng.integers(8)):
            case 0 | 1:
                order = tuple(int(axis) for axis in g.rng.permutation(rank))
                if x in orders and g.chance(0.6):
                    order = tuple(int(axis) for axis in np.argsort(orders[x]))
                y = g.op(
                    "Transpose", x, **({} if order == tuple(range(rank))[::-1] else {"perm": order})
                )
                orders[y], sizes[y] = order, tuple(own[axis] for axis in order)
                live.append(y)
                continue
            case 2 | 3:
                y, result = g.op(g.pick(UNARY), x), own
            case 4:
                other = [name for name in live if sizes[name] == own]
                y, result = g.both(g.pick(("Add", "Mul", "Sub")), x, g.pick(other)), own
            case 5:
                small = g.normal(*(n if g.chance(0.4) else 1 for n in own))
                y, result = g.both("Mul", x, g.constant(small)), own
            case 6:
                axis = int(g.rng.integers(rank))
                y = g.mean(x, axis) if own[axis] else g.op("Abs", x)
                result = tuple(1 if at == axis and n else n for at, n in enumerate(own))
            case _:
                axis = int(g.rng.integers(rank))
                y = g.op("Concat", x, x, axis=axis)
                result = tuple(2 * n if at == axis else n for at, n in enumerate(own))
        sizes[y] = result
        if x in orders:
            orders[y] = orders[x]
        live.append(y)
    _unread(g, live)


FAMILIES = {
    "element-wise": Family(element_wise, ("element-wise-fusion",)),
    "transposes": Family(
        transposes,
        ("cancel-transposes", "sink-transposes"),
        dtypes=(np.float32, np.float32, np.float64),
        share=0.2,
    ),
}
