"""Whether a module is a valid model: one linear walk, all faults in one message.

Checked: order and scope of values, interfaces against block arguments and results, bodies, arity,
attributes and element types against the schemas, imports, calls, names. Not checked: shapes
(inference does that), and what xDSL's own `module.verify()` sees: that graphs, functions,
initializers and returns have the properties they are declared with.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.onnx.structure import FunctionOp, GraphOp
from foldline.dialects.onnx.verify_scope import Faults, ScopeWalk


def verify_model(module: ModuleOp, *, names: bool = True) -> None:
    """Check a module. Raises InvalidModel with up to 20 faults: where, what, and what is expected.

    `names`: also refuse two values of one name where one is in sight of the other. Models must
    not have them; rewrites may leave them, and export makes names unique.
    """
    faults = Faults()
    scopes = [op for op in module.body.block.ops if isinstance(op, GraphOp | FunctionOp)]
    graphs = [op for op in scopes if isinstance(op, GraphOp)]
    if len(graphs) != 1:
        faults.add("module", f"holds {len(graphs)} graphs, expected 1")
    for op in module.body.block.ops:
        if not isinstance(op, GraphOp | FunctionOp):
            faults.add("module", f"holds {op.name}, expected onnx.graph and onnx.function")
    functions: dict[str, FunctionOp] = {}
    for op in scopes:
        if isinstance(op, FunctionOp):
            if op.sym_name.data in functions:
                faults.add("module", f"two functions have the symbol '{op.sym_name.data}'")
            functions[op.sym_name.data] = op
    calls: dict[str, dict[str, None]] = {}
    for op in scopes:
        symbol = op.sym_name.data if isinstance(op, FunctionOp) else ""
        calls[symbol] = ScopeWalk(op, functions, faults, names).verify()
    _refuse_recursion(calls, faults)
    faults.raise_any()


def _refuse_recursion(calls: dict[str, dict[str, None]], faults: Faults) -> None:
    """Functions may not call each other in a circle."""
    done: set[str] = set()

    def visit(symbol: str, path: list[str]) -> None:
        if symbol in path:
            circle = " -> ".join([*path[path.index(symbol) :], symbol])
            faults.add("module", f"functions call each other in a circle: {circle}")
            return
        if symbol not in done:
            for callee in calls.get(symbol, ()):
                visit(callee, [*path, symbol])
            done.add(symbol)

    for symbol in calls:
        visit(symbol, [])
