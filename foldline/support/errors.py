"""The one exception tree. A message says where, what is wrong, and what to do."""

from __future__ import annotations

from typing import Any


class FoldlineError(Exception):
    """Base of everything Foldline raises on purpose."""

    status: str = "INTERNAL"
    """The kind of error in one word, as reports have it."""


class InvalidModel(FoldlineError):
    """The model breaks the ONNX specification, or its data cannot be read."""


class UnsupportedOperator(FoldlineError):
    """The model needs operators that have no kernel; all of them are named at once."""


class InvalidOption(FoldlineError):
    """An option, configuration key or value is not known or not valid."""


class InvalidArgumentError(FoldlineError, ValueError):
    """A call was made with an argument that does not fit: missing input, wrong dtype or rank."""

    status = "INVALID_ARGUMENT"


class PassFailed(FoldlineError):
    """A pass raised, or left IR that does not verify."""


class KernelFailed(FoldlineError):
    """A kernel raised while the model ran or was folded."""


class ResourceLimit(FoldlineError):
    """A bound on size, nesting or number of steps was reached."""


class RewriteError(FoldlineError):
    """A rewrite rule is ill-formed or asked for something impossible."""

    status = "FAILED_PRECONDITION"


class RuleFailed(RewriteError):
    """A function of a transform raised, or its replacement was refused. The cause is chained.

    Status and code are those of the cause, if it has them.
    """

    def __init__(self, transform: str, node: str, iteration: int, cause: BaseException):
        where = f" at '{node}'" if node else ""
        super().__init__(
            f"transform '{transform}' failed{where} in iteration {iteration}: "
            f"{type(cause).__name__}: {cause}"
        )
        self.status = str(getattr(cause, "status", FoldlineError.status))
        self.code: Any = getattr(cause, "code", None)
        self.transform = transform
        self.node = node
        """The first matched node, or ''."""
        self.iteration = iteration
        self.report: Any = None
        """The report of the optimisation as far as it came."""
