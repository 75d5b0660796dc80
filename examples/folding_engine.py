"""A folding engine of your own, which is asked before the built-in one.

Installed packages offer engines as entry points of the group `foldline.folding_engines`; here
one is put into a run by hand.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import parser

from foldline.dialects.onnx.op import NodeOp
from foldline.exporter import export_model
from foldline.importer import import_model
from foldline.stages.context import PassContext
from foldline.stages.folding.engine import Declined, Engines, installed_engines
from foldline.stages.run import PipelineRun
from foldline.support.options import resolve

MODEL = parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[3] x) => (float[3] y) <float[3] a = {1, 2, 3}, float[3] b = {4, 5, 6}> {
        p = MatMul(a, b)
        n = Neg(p)
        y = Add(x, n)
    }
""")


class ProductEngine:
    """Computes MatMul, and leaves all else to the next engine."""

    name = "products"

    def fold(self, op: NodeOp, inputs: Sequence[Any]) -> tuple[object, ...] | Declined:
        """The results in order, or why there are none."""
        if op.op_type != "MatMul":
            return Declined("only products are computed here")
        left, right = inputs
        return (np.asarray(np.matmul(left, right)),)


def main() -> None:
    """Both engines have a part in it; the report tells which."""
    context = PassContext(import_model(MODEL), resolve({"oo.level": "O2"}))
    context.engines = Engines((ProductEngine(), *installed_engines()))
    run = PipelineRun(context)
    while run.due is not None:
        run.advance()
    for row in run.report.engines:
        print(f"{row.engine}: {row.op_type}: {row.computed} computed, declined: {row.declined}")
    print([node.op_type for node in export_model(context.module).graph.node])


if __name__ == "__main__":
    main()
