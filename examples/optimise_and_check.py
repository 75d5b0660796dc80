"""Compile a model, save it, and prove that the file computes what the original does."""

from pathlib import Path

import numpy as np
from onnx import parser

import foldline

MODEL = parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[N, 4] x) => (float[N, 2] y) <float[2, 2] m = {1, 2, 3, 4}> {
        tall = Constant <value_ints = [2, 1]> ()
        w = Tile(m, tall)
        same = Identity(x)
        p = MatMul(same, w)
        shape = Shape(p)
        r = Reshape(p, shape)
        y = Relu(r)
    }
""")


def main() -> None:
    """Four of five operators are not needed at run time."""
    compiled = foldline.compile(MODEL, options={"oo.level": "O2"})
    for row in compiled.report.rows:
        if row.changes:
            print(f"{row.stage}/{row.name}: {row.nodes_before} -> {row.nodes_after} nodes")

    compiled.save("small.onnx", force=True)
    result = foldline.check(MODEL, "small.onnx")
    print(f"equal: {result.equal}, compared on {', '.join(case.name for case in result.cases)}")
    assert result.equal, result.cases

    (y,) = compiled.session(threads=2).run(None, {"x": np.ones((3, 4), np.float32)})
    print(y.tolist())
    print(f"{Path('small.onnx').stat().st_size} bytes")


if __name__ == "__main__":
    main()
