"""compact-weights: mark the weights that will be held in a half type while the model runs.

    W, float32, read only as weights of Conv, MatMul and Gemm   ->   the same, marked

What `weightStorage` says is done when the model is lowered; files keep the weights as they are. The
mark tells rewrites, which go on around such a weight, to leave it alone. Weights of fewer than 1024
elements, and those that would not stay finite, are not marked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from xdsl.ir import SSAValue

from foldline.dialects.fold.compact import (
    STORAGE,
    WEIGHTS,
    clear_compact,
    mark_compact,
    rounded_weights,
)
from foldline.dialects.onnx.constant import constant_tensor, is_constant
from foldline.dialects.onnx.op import NodeOp
from foldline.stages.context import PassContext, PassOptions
from foldline.stages.pass_base import GraphPass
from foldline.support.passes import PASSES


@dataclass(frozen=True)
class CompactWeights(GraphPass):
    """Mark weights to be held in a half type."""

    name = "compact-weights"
    INFO: ClassVar = PASSES["compact-weights"]
    storage: str = "Float32"
    """How weights are held: Float32, Binary16, BFloat16."""

    def configured(self, options: PassOptions) -> Self:
        """With `weightStorage`."""
        return replace(self, storage=options["weightStorage"])

    def run(self, context: PassContext) -> None:
        """Mark what qualifies, and nothing else."""
        storage = STORAGE.get(self.storage)
        for op in context.module.walk():
            if not is_constant(op):
                continue
            if storage is not None and _qualifies(op.results[0], storage):
                mark_compact(op)
            else:
                clear_compact(op)


def _qualifies(value: SSAValue, storage: np.dtype[Any]) -> bool:
    uses = list(value.uses)
    are_weights = bool(uses) and all(
        isinstance(use.operation, NodeOp)
        and WEIGHTS.get((use.operation.domain, use.operation.op_type)) == use.index
        for use in uses
    )
    tensor = constant_tensor(value) if are_weights else None
    return tensor is not None and rounded_weights(tensor, storage) is not None
