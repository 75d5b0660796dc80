"""Kernels against the functions that ONNX defines their operators by.

Every node case of the suite whose operator has a function runs by its kernel, and again with the
kernel hidden, so that the node is expanded at lowering.
"""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx.backend.test.case.test_case import TestCase as Case

from foldline.dialects.onnx.op import NodeOp, OnnxOp
from foldline.dialects.onnx.structure import main_graph
from foldline.dialects.onnx.traits import NonDeterministic
from foldline.dialects.plan import CallOp
from foldline.importer import import_function, import_model
from foldline.kernels.registry import find_kernel
from foldline.lowering import Program, lower, select_kernels
from foldline.session import Session
from tests.conformance.suite import node_cases

STEPS = 8
"""A function rounds after each of its steps: its result may be so many roundings away."""
ROUNDED = [np.dtype(kind) for kind in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16)]


@functools.cache
def cases() -> dict[str, Case]:
    """The cases of one node whose operator has a function, by name."""
    return {case.name: case for case in node_cases() if _has_function(case.model)}


def _has_function(model: onnx.ModelProto) -> bool:
    if len(model.graph.node) > 1:
        return False
    nodes = main_graph(import_model(model)).body.block.ops
    (op,) = [op for op in nodes if isinstance(op, NodeOp)]
    if not isinstance(op, OnnxOp) or op.regions or op.has_trait(NonDeterministic):
        return False
    return op.signature is not None and op.signature.has_function


def hide(monkeypatch: pytest.MonkeyPatch, *op_types: str) -> None:
    """Let no kernel be found for the operators."""

    def find(domain: str, op_type: str, *rest: Any) -> Any:
        return None if op_type in op_types else find_kernel(domain, op_type, *rest)

    monkeypatch.setattr(select_kernels, "find_kernel", find)


def expanded(model: onnx.ModelProto) -> Program:
    """A program none of whose kernels is that of the only node."""
    program = lower(import_model(model), read_function=import_function)
    called = {op.operator[1] for op in program.source.walk() if isinstance(op, CallOp)}
    assert model.graph.node[0].op_type not in called
    return program


@pytest.mark.parametrize("name", list(cases()))
def test_kernel_and_function_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = cases()[name]
    by_kernel = lower(import_model(case.model))
    hide(monkeypatch, case.model.graph.node[0].op_type)
    by_function = expanded(case.model)
    for given, _ in case.data_sets:
        names = [info.name for info in case.model.graph.input]
        feed = dict(zip(names, map(_array, given), strict=False))
        results = [Session(program, 1).run(None, feed) for program in (by_kernel, by_function)]
        for own, wanted in zip(*results, strict=True):
            assert_near(own, wanted)


def _array(value: Any) -> Any:
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def assert_near(own: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> None:
    """Equal but for some roundings of floats that are computed in."""
    assert own.dtype == wanted.dtype
    assert own.shape == wanted.shape
    if own.dtype.kind not in "fV":
        np.testing.assert_array_equal(own, wanted)
        return
    tolerance = STEPS * float(ml_dtypes.finfo(own.dtype).eps) if own.dtype in ROUNDED else 0
    np.testing.assert_allclose(
        own.astype(np.float64), wanted.astype(np.float64), rtol=tolerance, atol=tolerance
    )
