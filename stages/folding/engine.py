"""Folding engines: who computes the results of a node whose inputs are known.

Engines are asked in order; the first that does not decline has the say. The host engine runs the
kernels that also execute models, so folding cannot disagree with execution. Others register under
the entry point group `foldline.folding_engines` and are asked before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import entry_points
from time import perf_counter
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from foldline.dialects.onnx.op import NodeOp, OnnxOp, describe
from foldline.dialects.onnx.types import element_of, element_type
from foldline.kernels.registry import GRADES, Kernel, compute, find_kernel
from foldline.kernels.ufunc_state import quiet_ufuncs
from foldline.stages.folding.splats import fill, is_splat, splat_elements, splat_of_shape
from foldline.support.errors import KernelFailed
from foldline.support.report import EngineRow

Array = npt.NDArray[Any]
Results = tuple[object, ...]

GROUP = "foldline.folding_engines"
DATA_ERRORS = (ValueError, IndexError, ArithmeticError)
"""What a kernel raises when its inputs, not its code, are wrong."""


@dataclass(frozen=True)
class Declined:
    """An engine cannot compute a node, and why."""

    reason: str


class FoldingEngine(Protocol):
    """Computes nodes on known inputs."""

    name: str

    def fold(self, op: NodeOp, inputs: Sequence[Array | None]) -> Results | Declined:
        """The results in order, arrays where they are tensors; or why it cannot.

        Raises KernelFailed when it should have been able to.
        """
        ...


class HostEngine:
    """The runtime's own kernels, of the grades that serve a mode."""

    name = "host"

    def __init__(self, mode: str = "fast"):
        self.mode = mode

    def fold(self, op: NodeOp, inputs: Sequence[Array | None]) -> Results | Declined:
        """Run the kernel of the node's operator at its version."""
        if not isinstance(op, OnnxOp):
            return Declined(f"no kernel is known for {op.op_type}")
        entry = find_kernel(op.domain, op.op_type, op.since, GRADES[self.mode])
        if entry is None:
            return Declined(f"no kernel computes {op.op_type} {op.since}")
        if (filled := splat_of_shape(op, inputs)) is not None:
            return (filled,)
        elements = splat_elements(op, inputs)
        try:
            results = _run(entry, op, _in_c_order(inputs) if elements is None else elements)
        except IndexError as error:
            return Declined(f"it fails when run: {error}")
        except ImportError as error:
            return Declined(str(error))
        except FloatingPointError:
            return Declined("it divides an integer by zero, which fails when run")
        return results if elements is None else fill(op, results)


def _in_c_order(inputs: Sequence[Array | None]) -> Sequence[Array | None]:
    """As a run has constants: the order of memory decides the order of sums."""
    return [x if x is None or is_splat(x) else np.asarray(x, order="C") for x in inputs]


def _run(entry: Kernel, op: OnnxOp, inputs: Sequence[Array | None]) -> Results:
    keywords: dict[str, Any] = dict(op.attribute_values())
    if "output_count" in entry.reserved:
        keywords["output_count"] = len(op.results)
    if "output_dtypes" in entry.reserved:
        keywords["output_dtypes"] = tuple(_dtype(result.type) for result in op.results)
    # Division of integers by zero must not be folded; of floats it is an ordinary infinity.
    divide = "raise" if _only_integers(op, inputs) else "ignore"
    with quiet_ufuncs(), np.errstate(divide=divide):
        result = compute(entry, inputs, **keywords)
    return cast(Results, result) if isinstance(result, tuple) else (result,)


def _dtype(attribute: Any) -> np.dtype[Any] | None:
    element = element_type(attribute)
    row = None if element is None else element_of(element)
    return None if row is None else row.numpy


def _only_integers(op: OnnxOp, inputs: Sequence[Array | None]) -> bool:
    outputs = [_dtype(result.type) for result in op.results]
    dtypes = [*(x.dtype for x in inputs if x is not None), *outputs]
    return bool(inputs) and all(dtype is not None and dtype.kind in "iu" for dtype in dtypes)


class _Blame:
    """Turns what a kernel raises inside the block into KernelFailed that names the node."""

    def __init__(self, engine: str, op: NodeOp, inputs: Sequence[Array | None]):
        self.engine, self.op, self.inputs = engine, op, inputs

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, KernelFailed):
            shapes = ", ".join(
                "absent" if x is None else f"{x.dtype}{list(x.shape)}" for x in self.inputs
            )
            raise KernelFailed(
                f"folding {describe(self.op)} on ({shapes}) failed in the {self.engine} engine: "
                f"{type(error).__name__}: {error}"
            ) from error


class Engines:
    """Engines in the order they are asked, with what each did."""

    def __init__(self, engines: Sequence[FoldingEngine]):
        self.engines = tuple(engines)
        self._rows: dict[tuple[str, str], EngineRow] = {}

    def copied(self) -> Engines:
        """The same engines, with statistics that go on from these."""
        copy = Engines(self.engines)
        copy._rows = deepcopy(self._rows)
        return copy

    @property
    def rows(self) -> list[EngineRow]:
        """Statistics, by engine and operator."""
        return [self._rows[key] for key in sorted(self._rows)]

    def fold(self, op: NodeOp, inputs: Sequence[Array | None]) -> Results | Declined:
        """The results of the first engine that can, or the reasons of all.

        Raises KernelFailed when an engine fails; its cause is what the kernel raised.
        """
        reasons: dict[str, None] = {}
        for engine in self.engines:
            row = self._row(engine.name, op.op_type)
            start = perf_counter()
            row.failed += 1
            with _Blame(engine.name, op, inputs):
                outcome = engine.fold(op, inputs)
            row.failed -= 1
            row.seconds += perf_counter() - start
            if not isinstance(outcome, Declined):
                row.computed += 1
                return outcome
            row.declined[outcome.reason] = row.declined.get(outcome.reason, 0) + 1
            reasons[outcome.reason] = None
        return Declined("; ".join(reasons) or "there is no folding engine")

    def _row(self, engine: str, op_type: str) -> EngineRow:
        key = engine, op_type
        if key not in self._rows:
            self._rows[key] = EngineRow(engine, op_type)
        return self._rows[key]


@lru_cache(maxsize=2)
def installed_engines(mode: str = "fast") -> tuple[FoldingEngine, ...]:
    """Engines of installed packages, by name, and then the host engine.

    Exact mode asks no other engine than the host, for nothing is known of the bits of others.
    """
    if mode == "exact":
        return (HostEngine(mode),)
    plugged = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    return (*(entry.load()() for entry in plugged), HostEngine(mode))
