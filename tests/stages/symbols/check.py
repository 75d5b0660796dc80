"""How rules are tested: what is known of the outputs of a small model, as text and as it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from foldline.dialects.onnx.structure import interface, main_graph, terminator
from foldline.dialects.onnx.types import dims_of, element_of, element_type
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.stages.symbols.expression import Expr
from foldline.stages.symbols.facts import Elements
from foldline.stages.symbols.knowledge import Knowledge
from tests.stages.check import Array, from_onnx, run_pass, values
from tests.stages.symbols.evaluate import evaluate


def knowledge_of(module: ModuleOp) -> Knowledge:
    """What is known after inference."""
    return run_pass(InferShapes(), module).knowledge


def outputs(module: ModuleOp) -> Sequence[SSAValue]:
    """The values that the main graph returns."""
    return terminator(main_graph(module).body.block).operands


def dims_text(text: str, opset: int = 21) -> list[str]:
    """The sizes of each output of a graph in ONNX's text."""
    module = from_onnx(text, opset=opset)
    known = knowledge_of(module)
    return [_sizes_text(known.dims(value)) for value in outputs(module)]


def _sizes_text(sizes: tuple[Expr, ...] | None) -> str:
    return "?" if sizes is None else ", ".join(map(str, sizes))


def elements_text(text: str, opset: int = 21) -> list[str]:
    """The elements of each output."""
    module = from_onnx(text, opset=opset)
    known = knowledge_of(module)
    found = [known.elements(value) for value in outputs(module)]
    return ["?" if e is None else _items_text(e) for e in found]


def _items_text(elements: Elements) -> str:
    return ", ".join("?" if item is None else str(item) for item in elements.items)


def check_runs(text: str, sizes: Mapping[str, int], opset: int = 21) -> None:
    """All that is known of the outputs is so where the model runs with inputs of these sizes.

    Symbols of the model's own names only: nothing else can be evaluated.
    """
    module = from_onnx(text, opset=opset)
    known = knowledge_of(module)
    block = main_graph(module).body.block
    feed: dict[str, Array] = {}
    random = np.random.default_rng(0)
    for info, argument in zip(interface(block).inputs, block.args, strict=True):
        shape = [sizes[d] if isinstance(d, str) else d for d in dims_of(argument.type) or ()]
        element = element_type(argument.type)
        row = None if element is None else element_of(element)
        assert row is not None
        limit = 1 if row.numpy.kind == "i" else 2  # Integers are indices here.
        feed[info.name] = random.integers(0, limit, [d or 0 for d in shape]).astype(row.numpy)
    for value, array in zip(outputs(module), values(module, feed), strict=True):
        dims = known.dims(value)
        assert dims is not None
        assert tuple(evaluate(size, sizes) for size in dims) == array.shape
        elements = known.elements(value)
        if elements is None:
            continue
        assert (elements.shape, elements.dtype) == (array.shape, array.dtype)
        for item, actual in zip(elements.items, array.reshape(-1).tolist(), strict=True):
            if item is not None:
                number = evaluate(item, sizes) if isinstance(item, Expr) else item
                assert number == actual
