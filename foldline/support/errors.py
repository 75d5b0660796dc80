"""The one exception tree. A message says where, what is wrong, and what to do."""

from __future__ import annotations


class FoldlineError(Exception):
    """Base of everything Foldline raises on purpose."""


class InvalidModel(FoldlineError):
    """The model breaks the ONNX specification, or its data cannot be read."""


class UnsupportedOperator(FoldlineError):
    """The model needs operators that have no kernel; all of them are named at once."""


class InvalidOption(FoldlineError):
    """An option, configuration key or value is not known or not valid."""


class InvalidArgumentError(FoldlineError):
    """A call was made with an argument that does not fit: missing input, wrong dtype or rank."""


class PassFailed(FoldlineError):
    """A pass raised, or left IR that does not verify."""


class KernelFailed(FoldlineError):
    """A kernel raised while the model ran or was folded."""


class ResourceLimit(FoldlineError):
    """A bound on size, nesting or number of steps was reached."""


class RewriteError(FoldlineError):
    """A rewrite rule is ill-formed or asked for something impossible."""
