"""Choose the kernel of every node that may run, or name all operators that have none.

Bodies and called functions are included, functions that nothing calls are not. A node that has no
kernel may have a function that its schema defines it by, whose nodes have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from foldline.dialects.fused.element_wise import ElementWiseOp
from foldline.dialects.onnx.constant import is_constant
from foldline.dialects.onnx.op import NodeOp, OnnxOp, node_name, opset_versions, result_names
from foldline.dialects.onnx.schema import operators
from foldline.dialects.onnx.structure import CallOp, FunctionOp, main_graph
from foldline.kernels.registry import GRADES, Grade, Kernel, find_kernel
from foldline.lowering.expand_functions import ReadFunction, function_of
from foldline.support.errors import InvalidModel, UnsupportedOperator
from foldline.support.suggest import did_you_mean

NAMES_SHOWN = 3
MOST_NESTED = 8
"""So deep may functions of schemas be made of others: none in ONNX needs more than two."""


@dataclass(frozen=True)
class Selected:
    """The kernel of a node and the schema version that chose it."""

    kernel: Kernel
    since: int


@dataclass
class _Missing:
    version: str
    nodes: list[str] = field(default_factory=list[str])


Chosen: TypeAlias = Selected | FunctionOp
"""How a node runs: by a kernel, or as a call of a function that no module holds."""


def select_kernels(
    module: ModuleOp,
    grades: Sequence[Grade] = GRADES["fast"],
    read_function: ReadFunction | None = None,
) -> dict[Operation, Chosen]:
    """What runs each node reachable from the main graph, and from functions so chosen.

    Raises UnsupportedOperator, once, with every operator that has no kernel of `grades`, and no
    function or no `read_function` to make it of; InvalidModel for a function that calls itself.
    """
    selection = _Selection(grades, read_function)
    missing: dict[tuple[str, str, str], _Missing] = {}
    for op in selection.choose(main_graph(module), MOST_NESTED):
        version = _version_text(op, schema_version(op))
        key = (op.domain, op.op_type, version)
        missing.setdefault(key, _Missing(version)).nodes.append(_name(op))
    if missing:
        raise UnsupportedOperator(_message(missing, tuple(grades) == GRADES["exact"]))
    return selection.chosen


class _Selection:
    def __init__(self, grades: Sequence[Grade], read_function: ReadFunction | None):
        self.chosen: dict[Operation, Chosen] = {}
        self._grades = grades
        self._read_function = read_function

    def choose(self, scope: Operation, depth: int) -> list[NodeOp]:
        """Choose for all nodes within `scope`; gives those for which there is nothing."""
        missing: list[NodeOp] = []
        for op in _reachable(scope, {}, ()):
            found = self._kernel(op) or self._function(op, depth)
            if found is None:
                missing.append(op)
            else:
                self.chosen[op] = found
        return missing

    def _kernel(self, op: NodeOp) -> Selected | None:
        since = schema_version(op)
        if since is None:
            return None
        kernel = find_kernel(op.domain, op.op_type, since, self._grades)
        return None if kernel is None else Selected(kernel, since)

    def _function(self, op: NodeOp, depth: int) -> FunctionOp | None:
        """The function of a node, if there is something for all nodes of that."""
        if self._read_function is None or not depth:
            return None
        function = function_of(op, self._read_function)
        return None if function is None or self.choose(function, depth - 1) else function


def schema_version(op: NodeOp) -> int | None:
    """The version a kernel is chosen by; None where the imports do not hold the operator.

    For an operator that no schema defines it is the imported version of its domain.
    """
    if isinstance(op, OnnxOp):
        found = op.signature
        return None if found is None else found.since
    return opset_versions(op).get(op.domain, 1)


def _reachable(
    scope: Operation, done: dict[FunctionOp, None], calls: tuple[FunctionOp, ...]
) -> Iterator[NodeOp]:
    for op in scope.walk():
        if isinstance(op, CallOp):
            function = op.function
            if function in calls:
                chain = " → ".join(f.op_type.data for f in (*calls, function))
                raise InvalidModel(f"function '{function.op_type.data}' calls itself: {chain}")
            if function not in done:
                yield from _reachable(function, done, (*calls, function))
                done[function] = None
        elif isinstance(op, NodeOp) and not is_constant(op) and not isinstance(op, ElementWiseOp):
            yield op


def _name(op: NodeOp) -> str:
    return node_name(op) or next((name for name in result_names(op) if name), "")


def _version_text(op: NodeOp, since: int | None) -> str:
    if since is not None:
        return f"version {since}"
    imported = opset_versions(op).get(op.domain)
    if imported is None:
        return "of a domain that the model does not import"
    return f"not defined in version {imported} of its domain"


_ADVICE = {
    False: "register one with foldline.kernels.registry.kernel, define the operator as a function "
    "in the model, or export the model without it",
    True: 'run the model in mode fast, register one with kernel(…, grade="exact") of '
    "foldline.kernels.registry, or define the operator as a function in the model",
}


def _message(missing: dict[tuple[str, str, str], _Missing], is_exact: bool) -> str:
    lines: list[str] = []
    for (domain, op_type, version), entry in sorted(missing.items()):
        names = [f"'{name}'" for name in entry.nodes if name][:NAMES_SHOWN]
        more = ["…"] if len(entry.nodes) > len(names) and names else []
        count = f"{len(entry.nodes)} node{'s' * (len(entry.nodes) > 1)}"
        where = f": {', '.join(names + more)}" if names else ""
        hint = _hint(domain, op_type)
        lines.append(f"\n  {domain or 'ai.onnx'} {op_type}, {version}, {count}{where}{hint}")
    head = "1 operator has" if len(lines) == 1 else f"{len(lines)} operators have"
    what = "exact kernel" if is_exact else "kernel"
    return f"{head} no {what}:{''.join(lines)}\n{_ADVICE[is_exact]}"


def _hint(domain: str, op_type: str) -> str:
    """For an operator that no schema defines: the nearest of its domain, if there is any."""
    known = [name for of, name in operators() if of == domain]
    if op_type in known:
        return ""
    return did_you_mean(op_type, known) if known else "; no operator of this domain is known"
