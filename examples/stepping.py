"""Step through a compile from Python: forwards by stages and changes, and back."""

from onnx import parser

from foldline.workbench.breakpoints import Breakpoint
from foldline.workbench.console import Console
from foldline.workbench.stepper import Stepper

MODEL = parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[N, 4] x) => (float[N, 2] y)
    <float[4, 2] w = {1, 2, 3, 4, 5, 6, 7, 8}, float[2] b = {1, 2}> {
        [product] p = MatMul(x, w)
        [sum] s = Add(p, b)
        [relu] y = Relu(s)
    }
""")


def main() -> None:
    """What becomes of the MatMul."""
    stepper = Stepper.of(MODEL, {"oo.level": "O3"})
    stepper.breakpoints.append(Breakpoint("type", "MatMul"))
    while stepper.resume() is not None:
        change = stepper.next_change()
        assert change is not None
        print(f"{stepper.here.due.stage}: {change.pass_name} is about to change '{change.node}'")

    print("at the end:")
    for line in stepper.since_start().lines():
        print("  ", line)

    stepper.undo()
    print("back:", stepper.here.why)
    print("same as the original here:", stepper.compare(None, None).equal)

    console = Console(stepper, read_inputs=lambda path: {})
    for line in ("continue", "why product"):
        print(">", line)
        print("\n".join(console.execute(line)))


if __name__ == "__main__":
    main()
