"""Compares modules, at whatever stage, with the model as imported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from foldline.checking import Baseline, Case
from foldline.dialects.onnx.types import element_of, element_type
from foldline.importer import import_function
from foldline.kernels.registry import GRADES
from foldline.lowering import lower
from foldline.session import Session
from foldline.support.errors import FoldlineError
from foldline.workbench.caught import Caught

DEFAULT_RTOL = 1e-3
"""Fusions may move last bits, and errors grow along a deep model; what is broken is far above."""
QUANTISED_RTOL = 5e-2
"""In quantised models a last bit before a rounding moves a whole step, and others behind it."""

ONE_STEP = 1
"""What integers that come out of a quantised model may be off by."""


class DoesNotRun(FoldlineError):
    """A module cannot be lowered as it is."""


class Comparison:
    """Compares modules with the original, which is run once on random, edge and given inputs."""

    def __init__(
        self,
        original: ModuleOp,
        mode: str,
        inputs: Mapping[str, Any] | None = None,
        rtol: float | None = None,
        *,
        made_up: bool = True,
    ):
        """Without `rtol` differences that fusions and quantisation explain are none.

        `made_up`: whether to compare on other inputs than those given, too.
        """
        self._baseline = Baseline(session_of(original, mode), inputs=inputs, made_up=made_up)
        self._mode = mode
        quantised = is_quantised(original)
        self._rtol = (QUANTISED_RTOL if quantised else DEFAULT_RTOL) if rtol is None else rtol
        self._steps = ONE_STEP if quantised and rtol is None else 0

    def __call__(self, module: ModuleOp) -> Case | None:
        """The first case in which a module differs; None where it differs in none.

        Raises DoesNotRun, and InvalidArgumentError where no inputs suit.
        """
        session = self._session(module)
        result = self._baseline.compare(session, self._rtol, self._steps)
        return next((case for case in result.cases if not case.equal), None)

    def _session(self, module: ModuleOp) -> Session:
        with Caught() as caught:
            return session_of(module, self._mode)
        raise DoesNotRun(f"{type(caught.error).__name__}: {caught.error}") from caught.error

    def feed(self, case: Case) -> Mapping[str, Any]:
        """The inputs of a case; made up for one that is about no inputs."""
        found = self._baseline.feeds.get(case.name)
        return self._baseline.sample() if found is None else found


def session_of(module: ModuleOp, mode: str) -> Session:
    """A session that runs a module as it is, at whatever stage."""
    return Session(lower(module, grades=GRADES[mode], read_function=import_function))


def is_quantised(module: ModuleOp) -> bool:
    """Whether a node or constant gives integers of at most 8 bits."""
    types = (element_type(result.type) for op in module.walk() for result in op.results)
    rows = (element_of(found) for found in dict.fromkeys(types) if found is not None)
    return any(
        row is not None and row.bits <= 8 and row.name.startswith(("int", "uint")) for row in rows
    )
