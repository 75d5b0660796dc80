"""A small model with something for every stage, and steppers that stand on it."""

from __future__ import annotations

from typing import Any

import onnx
from xdsl.dialects.builtin import ModuleOp

from foldline.stages.observers import module_text
from foldline.workbench.console import Console
from foldline.workbench.stepper import Stepper

TEXT = """
<ir_version: 10, opset_import: ["" : 20]>
g (float[N, 8] x) => (float[N, 8] y, float[N, 4] z)
<float[2, 2] m = {1, 2, 3, 4}, float[8] b = {1, 2, 3, 4, 5, 6, 7, 8}, int64[1] axis = {1}>
{
    shape = Shape(x)
    zero = Constant <value_int = 0> ()
    n = Gather <axis = 0> (shape, zero)
    axes = Constant <value_ints = [0]> ()
    batch = Unsqueeze(n, axes)
    rest = Constant <value_ints = [2, 4]> ()
    target = Concat <axis = 0> (batch, rest)
    [same] same = Identity(x)
    tall = Constant <value_ints = [4, 4]> ()
    [tiled] w = Tile(m, tall)
    [product] p = MatMul(same, w)
    [sum] s = Add(p, b)
    [relu] y = Relu(s)
    r = Reshape(y, target)
    t = Transpose <perm = [0, 2, 1]> (r)
    u = Transpose <perm = [0, 2, 1]> (t)
    [most] most = ReduceMax <keepdims = 0> (u, axis)
    z = Identity(most)
}
"""
MODEL = onnx.parser.parse_model(TEXT)


def a_stepper(level: str = "O3", **options: Any) -> Stepper:
    return Stepper.of(MODEL, {"oo.level": level, **options})


def text_of(module: ModuleOp) -> str:
    return module_text(module)


def here(stepper: Stepper) -> str:
    return text_of(stepper.here.module)


def a_console(stepper: Stepper | None = None) -> Console:
    def no_inputs(path: str) -> dict[str, Any]:
        raise AssertionError(path)

    return Console(stepper or a_stepper(), no_inputs)


def said(console: Console, *lines: str) -> list[str]:
    """The answer to the last of several lines."""
    answers = [list(console.execute(line)) for line in lines]
    return answers[-1]
