"""The walk over one graph or function that `verify_model` makes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from foldline.dialects.onnx.attributes import Interface, NamesAttr, OpsetsAttr, ReferenceAttr
from foldline.dialects.onnx.demands import ABSENT, Checker, attribute_kind, not_in_version
from foldline.dialects.onnx.op import NodeOp, OnnxOp, describe
from foldline.dialects.onnx.schema import newest_versions, operators
from foldline.dialects.onnx.structure import (
    CallOp,
    CustomOp,
    DefaultOp,
    FunctionOp,
    GraphOp,
    InitializerOp,
    NoneOp,
    ReturnOp,
)
from foldline.dialects.onnx.types import AbsentType
from foldline.support.dtypes import BY_NUMPY
from foldline.support.errors import InvalidModel
from foldline.support.suggest import did_you_mean

MAX_FAULTS = 20


class Faults:
    """Collects faults; raises InvalidModel when there are enough."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, where: str, what: str, op: Operation | None = None) -> None:
        """Note a fault of a place, or of an operation there."""
        self.lines.append(f"{where}: {what}" if op is None else f"{where}: {describe(op)}: {what}")
        if len(self.lines) >= MAX_FAULTS:
            self.raise_any("at least ")

    def raise_any(self, how_many: str = "") -> None:
        """Raise InvalidModel if there are faults."""
        if len(self.lines) == 1:
            raise InvalidModel(self.lines[0])
        if self.lines:
            head = f"the model has {how_many}{len(self.lines)} faults:"
            raise InvalidModel("\n  ".join([head, *self.lines]))


class ScopeWalk:
    """Checks one graph or function, which sees no values of the others."""

    def __init__(
        self,
        op: GraphOp | FunctionOp,
        functions: dict[str, FunctionOp],
        faults: Faults,
        check_names: bool,
    ):
        self.op = op
        self.functions = functions
        self.faults = faults
        self.check_names = check_names
        self.visible: set[int] = set()
        """Identities of the values in sight."""
        self.names: dict[str, str] = {}
        """Names in sight, and the block that defines each."""
        self.calls: dict[str, None] = {}
        parameters = None
        if isinstance(op, FunctionOp):
            parameters = frozenset(op.parameters.data) | op.defaults.data.keys()
        self.opsets: OpsetsAttr = op.opsets
        self.checker = Checker(self.opsets.versions, parameters)

    def verify(self) -> dict[str, None]:
        """Walk; gives the symbols of the functions that are called."""
        if isinstance(self.op, FunctionOp):
            where = f"function '{self.op.sym_name.data}'"
        else:
            where = "graph"
        newest = newest_versions()
        for domain, version in self.opsets.versions.items():
            if not 1 <= version <= newest.get(domain, version):
                self.faults.add(
                    where,
                    f"imports version {version} of operator set '{domain or 'ai.onnx'}', "
                    f"expected 1 to {newest.get(domain, 'any')}",
                )
        self._region(self.op.body, where)
        return self.calls

    def _region(self, region: Region, where: str) -> Block | None:
        """Walk a region; gives its block if there is exactly one that ends as it should."""
        blocks = list(region.blocks)
        if len(blocks) != 1:
            self.faults.add(where, f"has {len(blocks)} blocks, expected 1")
            return None
        last = blocks[0].last_op
        if not isinstance(last, ReturnOp):
            self.faults.add(where, f"ends with {last.name if last else 'nothing'}, not onnx.return")
            return None
        self._block(blocks[0], last, where)
        return blocks[0]

    def _block(self, block: Block, end: ReturnOp, where: str) -> None:
        it = end.interface.data
        defined: list[SSAValue] = list(block.args)
        named = self._arguments(block, it, where)
        visible = self.visible
        visible.update(map(id, defined))
        for op in block.ops:
            for operand in op.operands:
                if id(operand) not in visible:
                    self._out_of_sight(op, operand, where)
            if op.regions:
                self._bodies(op, where)
            for result in op.results:
                visible.add(id(result))
                defined.append(result)
            if isinstance(op, OnnxOp):
                for fault in (*self.checker.faults(op), op.misfit()):
                    if fault:
                        self.faults.add(where, fault, op)
            else:
                self._other(op, block, where)
            names = op.attributes.get("onnx.names")
            if isinstance(names, NamesAttr) and op.results:
                self._result_names(op, names, where, named)
        self._outputs(end, it, where)
        visible.difference_update(map(id, defined))
        for name in named:
            del self.names[name]

    def _arguments(self, block: Block, it: Interface, where: str) -> list[str]:
        """Check the inputs and bring their names in sight."""
        infos = it.argument_infos()
        if len(infos) != len(block.args):
            self.faults.add(
                where, f"declares {len(infos)} inputs for {len(block.args)} block arguments"
            )
        names = [info.name for info in it.inputs]
        for name in _repeated(names):
            self.faults.add(where, f"two inputs are named '{name}'")
        if "" in names:
            self.faults.add(where, f"input {names.index('')} has no name")
        named: list[str] = []
        if self.check_names:
            for info in infos:
                self._define(info.name, where, named, None)
        return named

    def _result_names(self, op: Operation, names: NamesAttr, where: str, named: list[str]) -> None:
        values = names.data.values
        if len(values) > len(op.results):
            self.faults.add(where, f"has {len(values)} names for {len(op.results)} results", op)
        if self.check_names:
            for name in values:
                if name:
                    self._define(name, where, named, op)

    def _define(self, name: str, where: str, named: list[str], op: Operation | None) -> None:
        before = self.names.get(name)
        if before is None:
            self.names[name] = where
            named.append(name)
        elif before == where:
            self.faults.add(where, f"'{name}' is defined twice", op)
        else:
            self.faults.add(where, f"'{name}' is already defined in {before}", op)

    def _outputs(self, end: ReturnOp, it: Interface, where: str) -> None:
        if len(it.outputs) != len(end.operands):
            self.faults.add(
                where, f"declares {len(it.outputs)} outputs, but returns {len(end.operands)} values"
            )
        returned: dict[str, SSAValue] = {}
        for info, value in zip(it.outputs, end.operands, strict=False):
            if not info.name:
                self.faults.add(where, "an output has no name")
            elif returned.setdefault(info.name, value) is not value:
                self.faults.add(where, f"two outputs are named '{info.name}'")
            if isinstance(value.type, AbsentType):
                self.faults.add(where, f"output '{info.name}' is an absent value")

    def _bodies(self, op: Operation, where: str) -> None:
        labels = op.region_names() if isinstance(op, NodeOp) else ()
        for index, region in enumerate(op.regions):
            label = labels[index] if index < len(labels) else str(index)
            inner = f"{where}: body '{label}' of {describe(op)}"
            block = self._region(region, inner)
            arity = op.body_arity(label) if isinstance(op, OnnxOp) else None
            if block is None or arity is None:
                continue
            outputs = len(cast(ReturnOp, block.last_op).operands)
            if arity.inputs != len(block.args):
                self.faults.add(inner, f"has {len(block.args)} inputs, expected {arity.inputs}")
            if arity.outputs != outputs:
                self.faults.add(inner, f"has {outputs} outputs, expected {arity.outputs}")

    def _other(self, op: Operation, block: Block, where: str) -> None:
        """Check an operation that no schema describes."""
        match op:
            case InitializerOp():
                self._tensor(op, op.output.type, where)
            case DefaultOp():
                if op.argument not in block.args:
                    self.faults.add(where, "gives a default to what is no input", op)
                self._tensor(op, op.argument.type, where)
            case ReturnOp():
                if op is not block.last_op:
                    self.faults.add(where, "stands before the end", op)
            case CallOp():
                self._call(op, where)
            case CustomOp():
                self._custom(op, where)
            case NoneOp():
                if self.checker.spelled(op.value.type) != ABSENT:
                    self.faults.add(where, f"has type {op.value.type}", op)
            case _:
                self._foreign(op, where)

    def _tensor(self, op: InitializerOp | DefaultOp, type_: Attribute, where: str) -> None:
        declared = self.checker.spelled(type_)
        actual = f"tensor({BY_NUMPY[op.value.array.dtype].name})"
        if declared not in (None, actual):
            self.faults.add(where, f"is {declared}, but holds {actual}", op)

    def _call(self, op: CallOp, where: str) -> None:
        symbol = op.callee.string_value()
        function = self.functions.get(symbol)
        if function is None:
            self.faults.add(where, f"calls '{symbol}', which the module does not define", op)
            return
        self.calls[symbol] = None
        last = function.body.block.last_op if len(function.body.blocks) == 1 else None
        if isinstance(last, ReturnOp):
            it = last.interface.data
            for what, actual, most in (
                ("inputs", len(op.operands), len(it.inputs)),
                ("outputs", len(op.results), len(it.outputs)),
            ):
                if actual > most:
                    self.faults.add(where, f"has {actual} {what}, '{symbol}' has {most}", op)
        declared = {*function.parameters.data, *function.defaults.data}
        for name in (*op.given.data, *(op.region_names() if op.regions else ())):
            if name not in declared:
                hint = did_you_mean(name, declared)
                self.faults.add(where, f"'{symbol}' has no attribute '{name}'{hint}", op)
        wanted = _parameter_kinds(function) if op.given.data else {}
        for name, value in op.given.data.items():
            expected = wanted.get(name, "")
            actual = attribute_kind(value, expected)
            if expected and actual != expected:
                what = f"attribute '{name}' of '{symbol}' is {actual}, expected {expected}"
                self.faults.add(where, what, op)

    def _custom(self, op: CustomOp, where: str) -> None:
        domain, version = op.domain or "ai.onnx", self.opsets.versions.get(op.domain)
        if version is None:
            what = f"operator set '{domain}' is not imported: add it to opset_import"
            self.faults.add(where, what, op)
        elif (op.domain, op.op_type) in operators():
            self.faults.add(where, not_in_version(op.domain, op.op_type, version), op)

    def _foreign(self, op: Operation, where: str) -> None:
        try:
            op.verify(verify_nested_ops=False)
        except VerifyException as error:
            self.faults.add(where, str(error), op)

    def _out_of_sight(self, op: Operation, value: SSAValue, where: str) -> None:
        index = next(i for i, operand in enumerate(op.operands) if operand is value)
        owner = value.owner
        maker = describe(owner) if isinstance(owner, Operation) else "a block"
        home = owner.parent if isinstance(owner, Operation) else owner
        block = op.parent
        while block is not None and block is not home:
            block = block.parent_block()
        if block is not None:
            what = f"reads input {index} from {maker} before it is defined"
        else:
            what = f"reads input {index} from {maker}, which is out of its sight"
        self.faults.add(where, what, op)


def _parameter_kinds(function: FunctionOp) -> dict[str, str]:
    """The kinds of a function's attributes: that of the default, or the one its nodes ask for."""
    kinds: dict[str, str] = {}
    for op in function.walk():
        if isinstance(op, NodeOp):
            for value in op.onnx_attributes.values():
                if isinstance(value, ReferenceAttr):
                    kinds.setdefault(value.data.attribute, attribute_kind(value))
    kinds.update((name, attribute_kind(value)) for name, value in function.defaults.data.items())
    return kinds


def _repeated(names: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    return [name for name in names if name in seen or seen.add(name)]
