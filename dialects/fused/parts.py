"""Making operators one after another, in the form of the operator sets at one place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from xdsl.ir import Operation, SSAValue

from foldline.dialects import onnx
from foldline.dialects.onnx.builder import Builder
from foldline.dialects.onnx.op import OnnxOp
from foldline.dialects.onnx.schema import signature
from foldline.dialects.onnx.types import UNKNOWN
from foldline.support.errors import RewriteError


class Parts:
    """Operators of ONNX that are made here, in order.

        y = parts.op("Add", parts.Erf(x), parts.constant(one))

    `parts.Erf(x)` is the same as `parts.op("Erf", x)`.
    """

    def __init__(self, opsets: Mapping[str, int]):
        self.opsets = dict(opsets)
        self.made: list[Operation] = []

    def op(
        self,
        op_type: str,
        *inputs: SSAValue | None,
        domain: str = "",
        outputs: int = 1,
        **parameters: Any,
    ) -> Any:
        """Make an operator; its result, or a tuple of them where `outputs` is not 1.

        Parameters are attributes under the names of the newest version of ONNX, or, where a version
        has an input instead, constants. Raises RewriteError for an operator that the operator sets
        here do not have.
        """
        cls = self.operator_class(domain, op_type)
        if cls is None:
            raise RewriteError(f"no operator is called {op_type!r} in domain {domain!r}")
        types = (UNKNOWN,) * outputs
        ops = Builder(self.opsets).operator(cls, list(inputs), parameters, types)
        self.made += ops
        results = tuple(ops[-1].results)
        return results[0] if outputs == 1 else results

    def constant(self, array: Any) -> SSAValue:
        """Make a constant."""
        ops = Builder(self.opsets).constant(np.asarray(array))
        self.made += ops
        return ops[-1].results[0]

    def has(self, op_type: str, domain: str = "") -> bool:
        """Whether the operator sets here have an operator."""
        version = self.opsets.get(domain)
        found = None if version is None else signature(domain, op_type, version)
        return found is not None and not found.is_deprecated

    def operator_class(self, domain: str, op_type: str) -> type[OnnxOp] | None:
        """The class of an operator that can be made."""
        return onnx.OPERATORS.get((domain, op_type))

    def __getattr__(self, op_type: str) -> Callable[..., Any]:
        if op_type.startswith("_"):
            raise AttributeError(op_type)
        return lambda *inputs, **parameters: self.op(op_type, *inputs, **parameters)
