"""The limit of a model's error, measured where it hangs on ONNX Runtime's own levels."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.common import ORT_LEVELS, ort_session
from benchmarks.model_sets import Feed
from benchmarks.zoo import Kind
from tests.zoo.limits import limit, worst_error


def limit_of(path: Path, kind: Kind, runs: Iterable[tuple[Feed, list[Any] | None]]) -> float:
    """The limit for a model; `runs`: inputs, and what it gives at level off, or None."""
    if kind != "quantised":
        return limit(kind)
    wanted = [(feed, expected) for feed, expected in runs if expected is not None]
    spread = 0.0
    for level in ORT_LEVELS:
        session = ort_session(path, level)
        errors = (worst_error(session.run(None, feed), expected) for feed, expected in wanted)
        spread = max(spread, *errors)
    return limit(kind, spread)
