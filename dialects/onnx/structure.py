"""Operations around the nodes: graphs and functions, initializers, returns, custom nodes, calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast
from urllib.parse import quote

from xdsl.dialects.builtin import (
    DictionaryAttr,
    ModuleOp,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
)
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.irdl import (
    base,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import (
    ConstantLike,
    IsolatedFromAbove,
    IsTerminator,
    Pure,
    SymbolOpInterface,
    SymbolTable,
)

from foldline.dialects.onnx.attributes import Interface, InterfaceAttr, OpsetsAttr
from foldline.dialects.onnx.op import NodeOp
from foldline.dialects.onnx.tensor import TensorAttr
from foldline.dialects.onnx.terse import TerseOp
from foldline.dialects.onnx.text import ResidualAttr, TextAttr, TextsAttr
from foldline.dialects.onnx.types import ABSENT, AbsentType


@irdl_op_definition
class NoneOp(TerseOp):
    """The absent optional input. One stands at the start of a block that needs it."""

    name = "onnx.none"
    value = result_def(AbsentType)
    traits = traits_def(Pure())

    @classmethod
    def new(cls) -> NoneOp:
        """An `onnx.none`."""
        return cls.create(result_types=[ABSENT])


@irdl_op_definition
class InitializerOp(TerseOp):
    """A named constant of a graph: GraphProto.initializer or sparse_initializer."""

    name = "onnx.initializer"
    value = prop_def(TensorAttr)
    sparse = opt_prop_def(ResidualAttr)
    """The SparseTensorProto it came from, written back as it was."""
    output = result_def(Attribute)
    traits = traits_def(Pure(), ConstantLike())


@irdl_op_definition
class DefaultOp(TerseOp):
    """The default value of a graph input that a caller may override (IR >= 4).

    It has the place of the initializer in the model's list and is never dead.
    """

    name = "onnx.default"
    argument = operand_def(Attribute)
    value = prop_def(TensorAttr)


@irdl_op_definition
class AnnotationOp(TerseOp):
    """GraphProto.quantization_annotation: says of a tensor which others hold its scale and so on.

    It reads those, so that they stay; it computes nothing and has no results.
    """

    name = "onnx.annotation"
    parameters = var_operand_def()
    message = prop_def(ResidualAttr)
    """The TensorAnnotation; its entries name the operands, in order."""


@irdl_op_definition
class ReturnOp(TerseOp):
    """The end of a graph, body or function; carries what it declares beside its nodes."""

    name = "onnx.return"
    values = var_operand_def()
    interface = prop_def(InterfaceAttr)
    traits = traits_def(IsTerminator())


@irdl_op_definition
class GraphOp(TerseOp):
    """The main graph. Block arguments are its inputs, initializers are operations."""

    name = "onnx.graph"
    opsets = prop_def(OpsetsAttr)
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove())


@irdl_op_definition
class FunctionOp(TerseOp):
    """A model-local function: FunctionProto. Its symbol is made from domain, name, overload."""

    name = "onnx.function"
    sym_name = prop_def(SymbolNameConstraint())
    domain = prop_def(TextAttr)
    op_type = prop_def(TextAttr)
    overload = opt_prop_def(TextAttr)
    opsets = prop_def(OpsetsAttr)
    parameters = prop_def(TextsAttr)
    """Names of attributes without default."""
    defaults = prop_def(DictionaryAttr)
    """Attributes with default."""
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())


@irdl_op_definition
class CustomOp(NodeOp):
    """A node whose operator nothing here defines; everything it holds is kept."""

    name = "onnx.custom"
    domain_ = prop_def(TextAttr, prop_name="domain")
    op_type_ = prop_def(TextAttr, prop_name="op_type")
    given = prop_def(DictionaryAttr)
    graph_names_ = opt_prop_def(TextsAttr, prop_name="graph_names")

    @property
    def domain(self) -> str:
        """The operator's domain."""
        return cast(TextAttr, self.properties["domain"]).data

    @property
    def op_type(self) -> str:
        """The operator's name."""
        return cast(TextAttr, self.properties["op_type"]).data

    @property
    def onnx_attributes(self) -> Mapping[str, Attribute]:
        """The node's attributes as given."""
        return cast(DictionaryAttr, self.properties["given"]).data


@irdl_op_definition
class CallOp(NodeOp):
    """A call of a model-local function."""

    name = "onnx.call"
    callee = prop_def(base(SymbolRefAttr))
    given = prop_def(DictionaryAttr)
    graph_names_ = opt_prop_def(TextsAttr, prop_name="graph_names")

    @property
    def function(self) -> FunctionOp:
        """The called function. Raises LookupError where the module has none of that symbol."""
        symbol = cast(SymbolRefAttr, self.properties["callee"])
        found = SymbolTable.lookup_symbol(self, symbol)
        if not isinstance(found, FunctionOp):
            raise LookupError(f"no function {symbol} in the module")
        return found

    @property
    def domain(self) -> str:
        """The function's domain."""
        return self.function.domain.data

    @property
    def op_type(self) -> str:
        """The function's name."""
        return self.function.op_type.data

    @property
    def onnx_attributes(self) -> Mapping[str, Attribute]:
        """The attributes that the call gives."""
        return cast(DictionaryAttr, self.properties["given"]).data


def function_symbol(domain: str, op_type: str, overload: str) -> StringAttr:
    """The symbol of a function, in ASCII."""
    parts = [domain, op_type, overload] if overload else [domain, op_type]
    return StringAttr("::".join(quote(part, safe=".") for part in parts))


def main_graph(module: ModuleOp) -> GraphOp:
    """The module's main graph. Raises LookupError if it has none."""
    for op in module.body.block.ops:
        if isinstance(op, GraphOp):
            return op
    raise LookupError("the module holds no onnx.graph")


def functions(module: ModuleOp) -> list[FunctionOp]:
    """The module's local functions, in order."""
    return [op for op in module.body.block.ops if isinstance(op, FunctionOp)]


def terminator(block: Block) -> ReturnOp:
    """The `onnx.return` that ends a block."""
    last = block.last_op
    if not isinstance(last, ReturnOp):
        raise LookupError("the block does not end with onnx.return")
    return last


def interface(block: Block) -> Interface:
    """What the graph or body of this block declares."""
    return terminator(block).interface.data


def is_graph_output(value: SSAValue) -> bool:
    """Whether a value leaves its graph, body or function."""
    return any(isinstance(use.operation, ReturnOp) for use in value.uses)
