"""Lowering: from the onnx dialect to a program that runs."""

from __future__ import annotations

from foldline.lowering.lower import lower
from foldline.lowering.program import Port, Program

__all__ = ["Port", "Program", "lower"]
