"""Graphs of attention in the ways that exporters write it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from xdsl.dialects.builtin import ModuleOp

from tests.stages.check import Array
from tests.stages.passes.fusion.graphs import Node, module, normal

HEADS_FIRST = {"perm": (0, 2, 1, 3)}
NAMES: dict[Any, int] = {
    np.dtype(np.float16): onnx.TensorProto.FLOAT16,
    np.dtype(np.float32): onnx.TensorProto.FLOAT,
    np.dtype(np.float64): onnx.TensorProto.DOUBLE,
}

LAYOUTS: dict[str, tuple[Sequence[Node], Sequence[int]]] = {
    "b s h d, keys at once": (
        [
            ("Transpose", "q", "q4", HEADS_FIRST),
            ("Transpose", "k", "kt", {"perm": (0, 2, 3, 1)}),
            ("Transpose", "v", "v4", HEADS_FIRST),
        ],
        (0, 2, 1, 3),
    ),
    "b s h d, keys in two steps": (
        [
            ("Transpose", "q", "q4", HEADS_FIRST),
            ("Transpose", "k", "k4", HEADS_FIRST),
            ("Transpose", "k4", "kt", {"perm": (0, 1, 3, 2)}),
            ("Transpose", "v", "v4", HEADS_FIRST),
        ],
        (0, 2, 1, 3),
    ),
    "b h s d": (
        [
            ("Identity", "q", "q4"),
            ("Transpose", "k", "kt", {"perm": (0, 1, 3, 2)}),
            ("Identity", "v", "v4"),
        ],
        (0, 1, 2, 3),
    ),
    "s b h d": (
        [
            ("Transpose", "q", "q4", {"perm": (1, 2, 0, 3)}),
            ("Transpose", "k", "kt", {"perm": (1, 2, 3, 0)}),
            ("Transpose", "v", "v4", {"perm": (1, 2, 0, 3)}),
        ],
        (1, 2, 0, 3),
    ),
}
"""Nodes that make q4, kt and v4, and what brings stored axes to batch, heads, length, size."""


@dataclass
class Case:
    """Attention of random numbers."""

    layout: str = "b s h d, keys at once"
    batch: int = 2
    heads: int = 3
    queries: int = 5
    keys: int = 5
    size: int = 8
    scale: str = "Mul"
    """`Mul`, `Div` or nothing on the scores; `queries`, `both` before the product."""
    mask: Array | None = None
    opset: int = 17
    softmax: Mapping[str, Any] = field(default_factory=lambda: {"axis": -1})
    merge: Sequence[int] | None = (0, 2, 1, 3)
    guarded: bool = False
    dtype: Any = np.float32
    more: Sequence[Node] = ()
    outputs: Sequence[str] = ("y",)
    factor: Array | None = None
    dynamic: bool = False

    @property
    def feed(self) -> dict[str, Array]:
        """Queries, keys and values as they are stored."""
        lengths = {"q": self.queries, "k": self.keys, "v": self.keys}
        order = np.argsort(LAYOUTS[self.layout][1])
        return {
            name: normal(self.batch, self.heads, n, self.size, seed=seed, dtype=self.dtype)
            .transpose(tuple(order))
            .copy()
            for seed, (name, n) in enumerate(lengths.items())
        }

    def graph(self) -> list[Node]:
        """The nodes."""
        made = list(LAYOUTS[self.layout][0])
        q, k = "q4", "kt"
        if self.scale in ("queries", "both"):
            made.append(("Mul", "q4 factor", "qs"))
            q = "qs"
        if self.scale == "both":
            made.append(("Mul", "factor kt", "ks"))
            k = "ks"
        made.append(("MatMul", f"{q} {k}", "s"))
        last = "s"
        if self.scale in ("Mul", "Div"):
            made.append((self.scale, "s factor", "scaled"))
            last = "scaled"
        if self.mask is not None and self.mask.dtype == np.bool_:
            made.append(("Where", f"mask {last} low", "masked"))
            last = "masked"
        elif self.mask is not None:
            made.append(("Add", f"{last} mask", "masked"))
            last = "masked"
        made.append(("Softmax", last, "p", self.softmax))
        shares = "p"
        if self.guarded:
            made += [("IsNaN", "p", "nan"), ("Where", "nan zero p", "kept")]
            shares = "kept"
        if self.merge is None:
            return [*made, ("MatMul", f"{shares} v4", "y"), *self.more]
        made.append(("MatMul", f"{shares} v4", "o"))
        return [*made, ("Transpose", "o", "y", {"perm": self.merge}), *self.more]

    def module(self) -> ModuleOp:
        """The graph, typed; the mask is a constant."""
        root = np.sqrt(self.size) if self.scale == "Div" else 1 / np.sqrt(self.size)
        root = np.sqrt(root) if self.scale == "both" else root
        low = np.asarray(-1e9, self.dtype) if self.dtype != np.float16 else np.float16(-1e4)
        weights = {
            "factor": np.asarray(root if self.factor is None else self.factor, self.dtype),
            "zero": np.asarray(0, self.dtype),
            "low": np.asarray(low),
        }
        if self.mask is not None:
            weights["mask"] = self.mask
        shapes: dict[str, Sequence[Any]] = {n: x.shape for n, x in self.feed.items()}
        if self.dynamic:
            shapes = {n: [f"{n}{i}" for i in range(3)] + [s[3]] for n, s in shapes.items()}
        element = NAMES[np.dtype(self.dtype)]
        used = {name for node in self.graph() for name in node[1].split()}
        kept = {name: value for name, value in weights.items() if name in used}
        return module(
            self.graph(), kept, shapes, opset=self.opset, outputs=self.outputs, element=element
        )


def bound(case: Case) -> Array:
    """8 eps of the sum of |P| |V|, with the scores' own size, in the order of the result."""
    order = LAYOUTS[case.layout][1]
    q, k, v = (case.feed[name].transpose(order).astype(np.float64) for name in "qkv")
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(case.size)
    weight = np.exp(scores - scores.max(-1, keepdims=True, initial=0))
    largest = 1 + np.abs(scores).max(initial=0)
    if case.mask is not None:
        largest, weight = largest + 4, np.ones_like(weight)
    shares = weight / np.maximum(weight.sum(-1, keepdims=True), 1)
    found = 8 * float(np.finfo(case.dtype).eps) * largest * (shares @ np.abs(v))
    return found if case.merge is None else found.transpose(tuple(case.merge))
