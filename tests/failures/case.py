"""A case: a model that some optimiser got wrong, what to feed it, and what must come out.

The models are our own; the cited reports describe the fault in some optimiser or runtime.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import onnx

from tests.failures.building import Array

Feed = dict[str, Array]


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What must hold of the optimised model. Names of outputs must always survive."""

    outputs: list[Any] | None = None
    """The right values, a list for each of several feeds."""
    same_as_reference: bool = False
    """The right values are those of the model as it is."""
    rtol: float = 1e-4
    atol: float = 1e-5
    random: dict[str, Any] | None = None
    """`shape` of the outputs, and `distinct_runs` where each run draws anew."""
    not_run: bool = False
    """No executor has the operator."""
    max_nodes: int | None = None
    """So many nodes of the main graph may be left, without Constants."""
    operators_kept: list[str] | None = None
    operators_gone: list[str] | None = None
    max_bytes: int | None = None
    max_seconds: float | None = None
    dims_kept: bool = False
    """Symbolic dims of outputs do not become numbers."""
    metadata_kept: bool = False
    inputs_kept: bool = False
    rejected: str | None = None
    """Why the model is wrong: refusing it is right, and so is leaving the fault in place."""
    may_be_rejected: bool = False
    """A clear error is as right as right outputs."""
    big: int | None = None
    """So many floats stand in a file beside the model, under the name `big`."""


Made = tuple[onnx.ModelProto, Any, Expected]


@dataclass(frozen=True)
class Case:
    """One case."""

    name: str
    kind: str
    reports: tuple[str, ...]
    make: Callable[[], Made]


CASES: dict[str, Case] = {}
"""Every case by name, filled by the modules that hold them."""


def case(kind: str, *reports: str) -> Callable[[Callable[[], Made]], Callable[[], Made]]:
    """Register a function that makes a case of its name."""

    def register(make: Callable[[], Made]) -> Callable[[], Made]:
        assert make.__name__ not in CASES
        CASES[make.__name__] = Case(make.__name__, kind, reports, make)
        return make

    return register
