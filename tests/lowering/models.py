"""Models written as text, and programs made of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import parser

from foldline.importer import import_model
from foldline.lowering import Program, lower

HEAD = '<ir_version: 8, opset_import: ["" : 17, "test.lowering" : 1]>'


def model(graph: str, head: str = HEAD, functions: str = "") -> onnx.ModelProto:
    """A model of a graph in ONNX's text form."""
    return parser.parse_model(f"{head}\n{graph}\n{functions}")


def program(graph: str, head: str = HEAD, functions: str = "", **options: Any) -> Program:
    """The program of a graph in ONNX's text form."""
    return lower(import_model(model(graph, head, functions)), **options)


def every_kind(ready: Program, inputs: Sequence[Any]) -> list[list[Any]]:
    """The outputs of the generic run, the watched one, and two of the plan."""
    return [ready.run(inputs) for _ in range(4)]


def assert_same(actual: Sequence[Any], expected: Sequence[Any]) -> None:
    """Equal dtypes, shapes and elements, NaN included."""
    assert len(actual) == len(expected)
    for one, other in zip(actual, expected, strict=True):
        if isinstance(other, list):
            assert_same(one, other)
        else:
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


def in_threads(count: int, body: Callable[[int], None]) -> None:
    """Run `body(0) … body(count - 1)` at once in threads; raises what the first of them raised."""
    errors: list[BaseException] = []
    gate = threading.Barrier(count)

    def guarded(index: int) -> None:
        try:
            gate.wait()
            body(index)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
