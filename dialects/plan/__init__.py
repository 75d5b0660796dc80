"""The plan dialect: a model as it will run, kernel by kernel, for a person to read."""

from __future__ import annotations

from xdsl.ir import Dialect

from foldline.dialects.plan.operations import CallOp, ConstantOp, ProgramOp, ReturnOp

PLAN = Dialect("plan", [ProgramOp, ConstantOp, CallOp, ReturnOp], [])

__all__ = ["PLAN", "CallOp", "ConstantOp", "ProgramOp", "ReturnOp"]
