"""Calls of local functions: what each returns, and what a function is called with altogether."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from foldline.dialects.onnx.attributes import ReferenceAttr
from foldline.dialects.onnx.structure import CallOp, FunctionOp, functions, terminator
from foldline.dialects.onnx.tensor import TensorAttr
from foldline.dialects.onnx.types import UNKNOWN
from foldline.stages.inference.joining import join
from foldline.stages.inference.scope import CallScope
from foldline.support.errors import InvalidModel

Problem = Callable[[Operation, str], None]


class BodyInference(Protocol):
    """Inference in some scope."""

    def block(self, block: Block) -> None:
        """Infer every node of a body, in order."""
        ...


InferenceOf = Callable[[CallScope, Problem], BodyInference]


class Calls:
    """The local functions of a module while its types are inferred."""

    def __init__(self, module: ModuleOp, inference_of: InferenceOf):
        self._functions = by_symbol(module)
        self._inference_of = inference_of
        self._arguments: dict[FunctionOp, list[Attribute]] = {}
        self._results: dict[tuple[object, ...], tuple[list[Attribute], object]] = {}

    def arguments(self, function: FunctionOp) -> list[Attribute]:
        """What is true of the arguments in every call met so far."""
        return self._arguments.get(function, [])

    def results(
        self,
        op: CallOp,
        types: Sequence[Attribute],
        constants: Sequence[TensorAttr | None],
        on_ill_typed: Problem,
    ) -> list[Attribute]:
        """What a call returns, inferred from the function's body for its types and constants."""
        function = self._functions.get(callee(op))
        if function is None:
            raise InvalidModel(f"the module has no function {callee(op)}, which a node calls")
        given = {**function.defaults.data, **op.onnx_attributes}
        if any(isinstance(value, ReferenceAttr) for value in given.values()):
            return [UNKNOWN] * len(op.results)
        block = function.body.block
        self._record(function, block, types)
        kept = (*types, *constants, *given.values())
        key = (function, len(types), *map(id, kept))
        known = self._results.get(key)
        if known is None:
            values: dict[SSAValue, Attribute] = dict(zip(block.args, types, strict=False))
            fixed = zip(block.args, constants, strict=False)
            scope = CallScope(values, {a: c for a, c in fixed if c is not None}, given)
            self._inference_of(scope, lambda _, why: on_ill_typed(op, why)).block(block)
            found = [scope.type_of(value) for value in terminator(block).operands]
            # What the key names by identity is kept alive with it.
            known = self._results[key] = found, kept
        return known[0][: len(op.results)]

    def _record(self, function: FunctionOp, block: Block, types: Sequence[Attribute]) -> None:
        padded = [*types, *[UNKNOWN] * len(block.args)][: len(block.args)]
        before = self._arguments.get(function)
        self._arguments[function] = (
            padded if before is None else [join(a, b) for a, b in zip(before, padded, strict=True)]
        )


def callee(op: CallOp) -> str:
    """The symbol of the function that a node calls."""
    symbol = op.properties["callee"]
    assert isinstance(symbol, SymbolRefAttr)
    return symbol.string_value()


def by_symbol(module: ModuleOp) -> dict[str, FunctionOp]:
    """The functions of a module by symbol."""
    return {function.sym_name.data: function for function in functions(module)}


def functions_callers_first(module: ModuleOp) -> list[FunctionOp]:
    """The functions so that each stands after all that call it.

    Raises InvalidModel for a function that calls itself, directly or not.
    """
    table = by_symbol(module)
    ordered: list[FunctionOp] = []
    state: dict[FunctionOp, bool] = {}

    def place(function: FunctionOp) -> None:
        if (done := state.get(function)) is not None:
            if not done:
                raise InvalidModel(f"function {function.sym_name.data} calls itself")
            return
        state[function] = False
        for op in function.walk():
            if isinstance(op, CallOp) and (called := table.get(callee(op))) is not None:
                place(called)
        state[function] = True
        ordered.append(function)

    for function in table.values():
        place(function)
    ordered.reverse()
    return ordered
