"""Passes that are broken on purpose, for tests of what finds them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.ir import Operation

from foldline.dialects.onnx import OPERATORS
from foldline.dialects.onnx.op import node_name
from foldline.stages.passes.cleanup import common_subexpressions, eliminate_identity
from foldline.stages.passes.folding import constant_folding


def folding_adds_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every float that constant-folding computes is off by one."""
    settled = constant_folding._settled

    def off_by_one(array: Any) -> Any:
        return settled(array + np.ones((), array.dtype) if array.dtype.kind == "f" else array)

    monkeypatch.setattr(constant_folding, "_settled", off_by_one)


def identity_drops(monkeypatch: pytest.MonkeyPatch, op_type: str) -> None:
    """eliminate-identity takes an operator for one without effect."""
    operator = OPERATORS["", op_type]
    monkeypatch.setitem(eliminate_identity.RULES, operator, eliminate_identity._always)


def identity_raises(monkeypatch: pytest.MonkeyPatch, op_type: str, node: str = "") -> None:
    """eliminate-identity raises at an operator, or at one node of it."""

    def raises(op: Operation) -> bool:
        if node_name(op) == node or not node:
            raise ValueError("boom")
        return False

    monkeypatch.setitem(eliminate_identity.RULES, OPERATORS["", op_type], raises)


def merging_looks_at_first_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """common-subexpressions merges operators of one kind and first input."""

    def key(self: Any, op: Operation) -> Any:
        return type(op), self._operand(op.operands[0]) if op.operands else id(op)

    monkeypatch.setattr(common_subexpressions._Merging, "_key", key)
