"""Look on while stages run: an observer that counts operators after each stage."""

from collections import Counter

from onnx import parser

import foldline
from foldline.dialects.onnx.op import NodeOp
from foldline.stages.context import PassContext
from foldline.stages.observers import Observer
from foldline.stages.stage import Stage

MODEL = parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[N, 4] x) => (float[N, 4] y) <float[4] b = {1, 2, 3, 4}> {
        c = Neg(b)
        s = Identity(x)
        a = Add(s, c)
        h = Sigmoid(a)
        y = Mul(a, h)
    }
""")


class Census(Observer):
    """Counts operators. Observers look and change nothing."""

    def __init__(self) -> None:
        self.counts: dict[str, Counter[str]] = {}

    def after_stage(self, stage: Stage, number: int, context: PassContext) -> None:
        """Count what is there."""
        nodes = (op for op in context.module.walk() if isinstance(op, NodeOp))
        self.counts[stage.name] = Counter(op.op_type for op in nodes)


def main() -> None:
    """Operators by stage."""
    census = Census()
    foldline.compile(MODEL, observers=[census])
    for stage, counts in census.counts.items():
        print(f"{stage}: {', '.join(f'{n} {name}' for name, n in sorted(counts.items()))}")


if __name__ == "__main__":
    main()
