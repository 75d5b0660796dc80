"""Tiny models with known right values: compiled, run, compared bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import parser

from foldline.compiler import compile
from foldline.workbench.caught import Caught

Array = npt.NDArray[Any]
Feed = dict[str, Array]


Test = Callable[[], str]
"""Says what is wrong; nothing where all is well."""


def self_test() -> Iterator[tuple[str, str]]:
    """The name of each test, and what is wrong; empty where nothing is."""
    for name, test in TESTS.items():
        yield name, attempted(test)


def attempted(test: Test) -> str:
    """What a test says is wrong; what it raises, whatever that is, is what is wrong, too."""
    with Caught() as caught:
        return test()
    return f"{type(caught.error).__name__}: {caught.error}"


def _compared(
    graph: str, feed: Feed, *expected: npt.ArrayLike, nodes: int | None = None, **options: Any
) -> str:
    """Compile and run a graph; what is wrong with the outputs, or with the number of nodes.

    `nodes`: so many must be left, not counting constants.
    """
    imports = '<ir_version: 9, opset_import: ["" : 19]>'
    model = parser.parse_model(f"{imports} g {graph}")
    compiled = compile(model, options=options)
    left = sum(node.op_type != "Constant" for node in compiled.to_proto().graph.node)
    if nodes is not None and left != nodes:
        return f"{left} nodes are left, expected {nodes}"
    session = compiled.session()
    for argument, got, right in zip(
        session.get_outputs(), session.run(None, feed), expected, strict=True
    ):
        want = np.asarray(right, got.dtype)
        if got.shape != want.shape or got.tobytes() != want.tobytes():
            return f"'{argument.name}' is {got.tolist()}, expected {want.tolist()}"
    return ""


def _arange(*shape: int) -> Array:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def _folding() -> str:
    graph = """(float[2] x) => (float[2] y) <float[2] a = {1, 2}, float[2] b = {3, 5}> {
        c = Mul (a, b)
        d = Sub (c, a)
        y = Add (x, d)
    }"""
    return _compared(graph, {"x": _arange(2)}, [2, 9], nodes=1)


def _gemm() -> str:
    graph = """(float[2, 64] x, float[64, 2] w) => (float[2, 2] y) <float[2] b = {0.5, -4096}> {
        g = Gemm (x, w, b)
        y = Relu (g)
    }"""
    x, w = _arange(2, 64) % 7, _arange(64, 2) % 5
    exact = x.astype(np.int64) @ w.astype(np.int64)
    return _compared(graph, {"x": x, "w": w}, np.maximum(exact + np.array([0.5, -4096]), 0))


def _conv() -> str:
    graph = """(float[1, 1, 3, 3] x) => (float[1, 1, 3, 3] y)
        <float[1, 1, 3, 3] w = {0, 1, 0, 1, -4, 1, 0, 1, 0}, float[1] b = {1}> {
        y = Conv <pads = [1, 1, 1, 1]> (x, w, b)
    }"""
    right = [[[[5, 3, -1], [-1, 1, -5], [-13, -9, -19]]]]
    return _compared(graph, {"x": _arange(1, 1, 3, 3)}, right)


def _quantised() -> str:
    graph = """(float[4] x) => (uint8[4] q, float[4] y)
        <float s = {0.5}, uint8 z = {128}> {
        q = QuantizeLinear (x, s, z)
        y = DequantizeLinear (q, s, z)
    }"""
    x = np.array([0.25, 0.75, -100, 100], np.float32)
    return _compared(graph, {"x": x}, [128, 130, 0, 255], [0, 1, -64, 63.5])


def _control_flow() -> str:
    graph = """(int64 n, bool c, float[2] x) => (float[2] y) {
        d = Loop (n, , x) <body = body
            (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
                on = Identity (go)
                t = Add (s, s)
            }>
        y = If (c) <
            then_branch = yes () => (float[2] p) { p = Neg (d) },
            else_branch = no () => (float[2] q) { q = Identity (d) }>
    }"""
    feed: Feed = {"n": np.array(10), "c": np.array(True), "x": _arange(2)}
    return _compared(graph, feed, [-0.0, -1024])


def _exact_mode() -> str:
    """The bits of exp and of a matrix product whose every step rounds."""
    graph = """(float[1, 3] x, float[3, 1] w) => (float[1, 3] e, float[1, 1] m) {
        e = Exp (x)
        m = MatMul (x, w)
    }"""
    feed: Feed = {
        "x": np.array([[0.1, -1.7, 3.3]], np.float32),
        "w": np.array([[3e7], [1.1], [0.3]], np.float32),
    }
    bits = np.array([0x3F8D763E, 0x3E3B1163, 0x41D8E6AF], np.uint32).view(np.float32)
    return _compared(graph, feed, bits[None], [[2999999.25]], mode="exact")


TESTS: dict[str, Test] = {
    "folding": _folding,
    "matrix product": _gemm,
    "convolution": _conv,
    "quantised": _quantised,
    "control flow": _control_flow,
    "exact mode": _exact_mode,
}
