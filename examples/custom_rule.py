"""A rewrite of your own: as code, as data, and what to do when it does not match."""

import numpy as np
from onnx import parser

import foldline
from foldline import transforms

MODEL = parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[N, 8] x) => (float[N, 8] y) {
        two = Constant <value_float = 2.0> ()
        three = Constant <value_float = 3.0> ()
        a = Mul(x, two) b = Relu(a)
        c = Mul(b, three) d = Relu(c)
        y = Neg(d)
    }
""")


@transforms.traced
def scaled_relu(op, x):
    """Relu(x * s), for one positive number s."""
    return op.Relu(x * op.constant(where=lambda array: array.size == 1, name="s"), name="r")


def is_positive(match):
    """Only then may the factor move."""
    return bool(match.constant("s") > 0) or match.refuse("the factor is not positive")


def scale_last(build, match):
    """Relu(x) * s"""
    return build.Mul(build.Relu(match.value("x")), build.constant(match.constant("s")))


RULE = transforms.rewrite("scale-last", scaled_relu, scale_last, is_positive)

AS_DATA = transforms.rules_from(
    {"rules": [{"name": "one-relu", "pattern": "Relu(Relu(x))", "replace": "Relu(x)"}]}
)


def main() -> None:
    """Search, try, run in a compile, and see near misses."""
    graph = foldline.ModelGraph(MODEL)
    print("found:", [match.op("r").op_type for match in graph.find_pattern(scaled_relu)])
    report = graph.optimize(transforms.OptimizeOptions([RULE], verify=True))
    for row in report.rows:
        print(f"{row.name}: {row.matches} matches, {row.replacements} replaced")

    plain = foldline.compile(MODEL, options={"oo.level": "O1"})
    ruled = foldline.compile(MODEL, options={"oo.level": "O1"}, rules=[RULE, *AS_DATA])
    x = np.float32([[-1, 0, 1, 2, 3, 4, 5, 6]])
    first, second = (c.session().run(None, {"x": x})[0] for c in (plain, ruled))
    assert np.allclose(first, second)
    print("operators:", [node.op_type for node in ruled.to_proto().graph.node])

    @transforms.traced
    def softened(op, x):
        return op.Tanh(op.Relu(x * op.constant(2.0)))

    for miss in foldline.ModelGraph(MODEL).near_misses(softened):
        print("near:", miss.message)


if __name__ == "__main__":
    main()
