"""Run a program with named inputs and outputs, in the manner of ONNX Runtime's sessions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from foldline.dialects.onnx.types import Dim, dims_of
from foldline.feed import Feed, type_text
from foldline.kernels.blas import limit_blas, one_blas_thread, unlimit_blas
from foldline.kernels.parallel import threads_in_use, use_threads
from foldline.lowering.memory import Memory
from foldline.lowering.profile import RUNS_TO_PLAN, Profile, Recorder
from foldline.lowering.program import Port, Program
from foldline.support.errors import InvalidArgumentError
from foldline.support.report import PassRow
from foldline.support.suggest import did_you_mean


@dataclass(frozen=True)
class NodeArg:
    """What a session says of an input or output."""

    name: str
    type: str
    """As ONNX spells it: `tensor(float)`, `seq(tensor(int64))`; empty if it is not known."""
    shape: list[Dim] | None
    """Sizes, names of unknown sizes, or None; None altogether where the rank is not known."""


class Session:
    """A program and the number of threads it may use. Many threads may run one session at once."""

    def __init__(
        self,
        program: Program,
        threads: int | None = None,
        applied_passes: Sequence[PassRow] = (),
    ):
        """`threads`: how many serve one run, by default one a processor; results are the same.

        Raises InvalidArgumentError for a number below 1.
        """
        if threads is not None and threads < 1:
            raise InvalidArgumentError(f"threads must be at least 1, got {threads}")
        self.program = program
        self.threads = threads or os.cpu_count() or 1
        self.applied_passes = tuple(applied_passes)
        """The passes and rules that changed the model, in order, with nodes before and after."""
        self._feed = Feed(program.inputs)
        self._positions = {port.name: i for i, port in enumerate(program.outputs)}

    def get_inputs(self) -> list[NodeArg]:
        """The inputs a caller must give, in the model's order."""
        return [_node_arg(port) for port in self.program.inputs if port.default is None]

    def get_overridable_initializers(self) -> list[NodeArg]:
        """The inputs a caller may give: those with a default value."""
        return [_node_arg(port) for port in self.program.inputs if port.default is not None]

    def get_outputs(self) -> list[NodeArg]:
        """The outputs, in the model's order."""
        return [_node_arg(port) for port in self.program.outputs]

    def run(self, output_names: Sequence[str] | None, feed: Mapping[str, Any]) -> list[Any]:
        """The outputs named, in that order; all of them for None.

        `feed` gives arrays of the inputs' dtypes by name; a Python number or list is taken where
        it has an exact meaning in that dtype. Sequences are lists of arrays, an empty optional is
        None. Inputs are never written; results are fresh arrays that the caller owns.
        Raises InvalidArgumentError naming the input or output that does not fit, KernelFailed.
        """
        wanted = None if output_names is None else [self._position(name) for name in output_names]
        inputs, key = self._feed.checked(feed)
        limit_blas()
        try:
            # To set what is set already would take half a microsecond.
            if threads_in_use() == self.threads:
                return self.program.run(inputs, wanted, key)
            with use_threads(self.threads):
                return self.program.run(inputs, wanted, key)
        finally:
            unlimit_blas()

    def values(self, feed: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        """Values by name, intermediate ones too, from one run without plan; for debugging.

        Raises InvalidArgumentError, also for a name the program does not have, KernelFailed.
        """
        known = self.program.value_names
        for name in names:
            if name not in known:
                raise InvalidArgumentError(f"no value {name!r}{did_you_mean(name, known)}")
        inputs, _ = self._feed.checked(feed)
        with one_blas_thread(), use_threads(self.threads):
            return self.program.values(inputs, names)

    def profile(self, feed: Mapping[str, Any], repeat: int = 10) -> Profile:
        """How long each step takes, on average of `repeat` runs of the plan for these inputs.

        Runs without a plan, as with inputs that are sequences, have no steps to show. Raises
        InvalidArgumentError, KernelFailed.
        """
        if repeat < 1:
            raise InvalidArgumentError(f"repeat must be at least 1, got {repeat}")
        inputs, _ = self._feed.checked(feed)
        recorder, plain = Recorder(), list[float]()
        with one_blas_thread(), use_threads(self.threads):
            for _ in range(RUNS_TO_PLAN):
                self.program.run(inputs)
            for _ in range(repeat):
                start = perf_counter()
                self.program.run(inputs)
                plain.append(perf_counter() - start)
                recorder.run(lambda: self.program.run(inputs))
        return recorder.profile(sorted(plain)[repeat // 2])

    def memory(self) -> Memory:
        """Bytes of weights, and of the plans that earlier runs have made."""
        return self.program.memory()

    def _position(self, name: str) -> int:
        position = self._positions.get(name)
        if position is None:
            hint = did_you_mean(name, self._positions)
            raise InvalidArgumentError(f"no output {name!r}{hint}")
        return position


def _node_arg(port: Port) -> NodeArg:
    dims = None if port.type is None else dims_of(port.type)
    shape: list[Dim] | None = (
        None if dims is None else [None if isinstance(d, int) and d < 0 else d for d in dims]
    )
    return NodeArg(port.name, "" if port.type is None else type_text(port.type), shape)
