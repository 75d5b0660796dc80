"""What computes ensembles of trees: once by the reference, once as fast as the forest allows."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from foldline.kernels.ml_scores import ML, feature_rows
from foldline.kernels.ml_tree_table import tabulated
from foldline.kernels.ml_tree_walk import walker
from foldline.kernels.ml_trees import Forest, Votes, aggregated, leaves_of
from foldline.kernels.precision import widening_maker
from foldline.kernels.registry import Array, Function, Operand, maker

Answer = Callable[[Array, npt.NDArray[np.bool_]], Any]
"""From the scores `(N, targets)` and which of them got a vote to the results."""


@dataclass(frozen=True)
class Ensemble:
    """Trees, what their leaves say, and what is made of it."""

    forest: Forest
    votes: Votes
    targets: int
    aggregate: str
    """SUM, AVERAGE, MIN or MAX."""
    answer: Answer

    def run(self, x: Array) -> Any:
        """The results of rows of features, by the reference."""
        leaves = leaves_of(self.forest, feature_rows(x))
        return self.answer(*aggregated(leaves, self.votes, self.targets, self.aggregate))


def fastest(ensemble: Ensemble, x: Operand) -> Callable[[Array], Any]:
    """What computes the same bits, looked up in a small table or walked in tiles."""
    table = tabulated(ensemble.forest, ensemble.run, x)
    if table is not None:
        return table
    features = x.shape[-1] if x.shape else 1
    score = walker(ensemble.forest, ensemble.votes, ensemble.targets, ensemble.aggregate, features)
    if score is None:
        return ensemble.run
    return lambda x: ensemble.answer(*score(feature_rows(x)))


def ensemble_kernel(op_type: str) -> Callable[[Function], Function]:
    """Register what makes an ensemble from attributes. Float16 is computed in float32."""

    def register(make: Function) -> Function:
        @maker(op_type, domain=ML, grade="reference", exact=True)
        @widening_maker
        @functools.wraps(make)
        def walking(x: Operand, **attributes: Any) -> Callable[..., Any]:
            return make(x, **attributes).run

        @maker(op_type, domain=ML)
        @widening_maker
        @functools.wraps(make)
        def fast(x: Operand, **attributes: Any) -> Callable[..., Any]:
            return fastest(make(x, **attributes), x)

        return make

    return register
