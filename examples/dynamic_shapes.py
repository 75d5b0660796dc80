"""One session serves every size; pinning a size lets more be folded."""

import numpy as np
from onnx import parser

import foldline

MODEL = parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[batch, 6] x) => (float[batch, 3, 2] y) {
        shape = Shape(x)
        zero = Constant <value_int = 0> ()
        n = Gather <axis = 0> (shape, zero)
        axes = Constant <value_ints = [0]> ()
        batch1 = Unsqueeze(n, axes)
        rest = Constant <value_ints = [3, 2]> ()
        target = Concat <axis = 0> (batch1, rest)
        r = Reshape(x, target)
        y = Tanh(r)
    }
""")


def operators(compiled: foldline.CompiledModel) -> list[str]:
    """What is left to run."""
    return [n.op_type for n in compiled.to_proto().graph.node if n.op_type != "Constant"]


def main() -> None:
    """The shape computation folds with the batch unknown; the batch stays open."""
    compiled = foldline.compile(MODEL)
    print("open:", operators(compiled))
    session = compiled.session()
    print(session.get_inputs()[0].shape)
    for batch in (1, 5, 0):
        (y,) = session.run(None, {"x": np.ones((batch, 6), np.float32)})
        print(batch, "->", y.shape)

    pinned = foldline.compile(MODEL, options={"inputs.x.shape": [2, 6]})
    print("pinned:", pinned.session().get_inputs()[0].shape)
    try:
        pinned.session().run(None, {"x": np.ones((3, 6), np.float32)})
    except foldline.InvalidArgumentError as error:
        print("refused:", error)


if __name__ == "__main__":
    main()
