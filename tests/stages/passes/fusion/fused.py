"""How fusions are tested: the session before and after, and the file, on the same numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import ModuleOp

from foldline.kernels.registry import GRADES
from foldline.lowering import lower
from foldline.session import Session
from foldline.stages.pass_base import Pass
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from tests.stages.check import run_pass, values

Array = npt.NDArray[Any]

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-39, -1e-39, 1e38, -1e38]
"""Zeros, infinities, NaN, numbers below the smallest normal one, and large ones."""


def grid(dtype: Any = np.float32, reach: float = 20.0, count: int = 4001) -> Array:
    """Numbers densely from -reach to reach."""
    return np.linspace(-reach, reach, count).astype(dtype)


def sizes(x: Array, least: float = 0.0) -> Array:
    """One eps of each |x|, of the smallest normal number and `least` at least."""
    info = np.finfo(x.dtype)
    wide = np.abs(np.where(np.isfinite(x), x, 0).astype(np.float64))
    return float(info.eps) * np.maximum(wide, max(float(info.tiny), least))


def typed(module: ModuleOp) -> ModuleOp:
    """A module with the types of all its values, as fusion finds it."""
    run_pass(InferShapes(), module)
    return module


def session_values(module: ModuleOp, feed: Mapping[str, Array]) -> list[Array]:
    """What a session of fast kernels computes for a module."""
    return Session(lower(module, grades=GRADES["fast"]), 1).run(None, dict(feed))


@dataclass
class Results:
    """The first output of the parts and of what they became."""

    parts: Array
    fused: Array

    def check(self, bound: npt.ArrayLike) -> None:
        """They are within an absolute bound, and NaN and infinite in the same places."""
        assert self.fused.dtype == self.parts.dtype
        assert self.fused.shape == self.parts.shape
        wanted, found = self.parts.astype(np.float64), self.fused.astype(np.float64)
        finite = np.isfinite(wanted)
        np.testing.assert_array_equal(found[~finite], wanted[~finite])
        error = np.abs(found[finite] - wanted[finite])
        limit = np.broadcast_to(bound, wanted.shape)[finite]
        assert (error <= limit).all(), float((error / np.maximum(limit, 1e-300)).max())


def results(given: Pass, module: ModuleOp, feed: Mapping[str, Array]) -> Results:
    """A session of a module before and after a pass."""
    parts = session_values(module.clone(), feed)[0]
    run_pass(given, module)
    return Results(parts, session_values(module, feed)[0])


def file_results(given: Pass, module: ModuleOp, feed: Mapping[str, Array]) -> Results:
    """The file of a module before and after a pass, on ONNX Runtime."""
    parts = values(module.clone(), feed)[0]
    run_pass(given, module)
    return Results(parts, values(module, feed)[0])


def real(kind: str, **numbers: float) -> str:
    """Initializers of one element in ONNX's text, which has half types as their bits."""
    dtype = np.dtype({"float": np.float32, "double": np.float64, "float16": np.float16}[kind])
    bits = {name: np.asarray(n, dtype) for name, n in numbers.items()}
    texts = {
        name: str(int(a.view(np.uint16))) if kind == "float16" else repr(float(a))
        for name, a in bits.items()
    }
    return f"<{', '.join(f'{kind} {name} = {{{text}}}' for name, text in texts.items())}>"
