"""Operations of the plan dialect.

    plan.program() {interface = …} ({
    ^bb0(%x : tensor<?x4xf32>):
      %w = plan.constant() {value = #onnx.tensor<…>} : tensor<4xf32>
      %y = plan.call(%x, %w) {op_type = #onnx.text<"Add">, since = 14 : i64,
                              kernel = #onnx.text<"fast foldline.kernels.math.add">, …} : …
      plan.return(%y)
    })

Functions are inlined, attributes resolved, and bodies closed: what a body takes from outside
follows the operator's own inputs among the operands of `plan.call`, and the body's own inputs
among the arguments of its block. An absent input is the value of `onnx.none`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, DictionaryAttr, IntegerAttr, UnitAttr
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.traits import ConstantLike, IsolatedFromAbove, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from foldline.dialects.onnx.attributes import InterfaceAttr, TextAttr, TextsAttr
from foldline.dialects.onnx.op import TerseOp
from foldline.dialects.onnx.tensor import TensorAttr


@irdl_op_definition
class ReturnOp(TerseOp):
    """The end of a program or body."""

    name = "plan.return"
    values = var_operand_def()
    traits = traits_def(IsTerminator())


@irdl_op_definition
class ConstantOp(TerseOp):
    """A constant of the model."""

    name = "plan.constant"
    value = prop_def(TensorAttr)
    output = result_def(Attribute)
    traits = traits_def(Pure(), ConstantLike())


@irdl_op_definition
class ProgramOp(TerseOp):
    """A model ready to run. Block arguments are its inputs."""

    name = "plan.program"
    interface = prop_def(InterfaceAttr)
    defaults = prop_def(ArrayAttr)
    """For each input: the tensor it has when the caller gives none, or `unit`."""
    arena_bytes = opt_prop_def(IntegerAttr)
    """Size of the arena, in a plan for given input shapes."""
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove())


@irdl_op_definition
class CallOp(TerseOp):
    """A call of a kernel.

    C1. `frees`, `shape_operands` and `widens` are positions of operands.
    C2. There is one region a name in `bodies`.
    C3. `places` has one entry a result.
    """

    name = "plan.call"
    inputs = var_operand_def()
    outputs = var_result_def()
    regions_ = var_region_def("single_block")
    domain_ = prop_def(TextAttr, prop_name="domain")
    op_type_ = prop_def(TextAttr, prop_name="op_type")
    since_ = prop_def(IntegerAttr, prop_name="since")
    """The version of the schema the node resolves to."""
    kernel_ = prop_def(TextAttr, prop_name="kernel")
    """Grade and function of the kernel, `fast foldline.kernels.matmul.matmul`."""
    given_ = prop_def(DictionaryAttr, prop_name="given")
    """The node's attributes, references to those of functions resolved."""
    bodies_ = opt_prop_def(TextsAttr, prop_name="bodies")
    """The GRAPH attribute that each region stands for."""
    captures_ = opt_prop_def(IntegerAttr, prop_name="captures")
    """So many of the last operands are not inputs of the operator but what its bodies take."""
    facts_ = opt_prop_def(TextsAttr, prop_name="facts")
    """What of `random`, `reads-shape`, `open-shape`, `element-wise` holds for the operator."""
    shape_operands_ = opt_prop_def(DenseArrayBase, prop_name="shape_operands")
    frees_ = opt_prop_def(DenseArrayBase, prop_name="frees")
    """Operands that nothing uses later."""
    widens_ = opt_prop_def(DenseArrayBase, prop_name="widens")
    """Operands that are held in a half type and widened to float32 at every run."""
    once_ = opt_prop_def(UnitAttr, prop_name="once")
    """Hangs on constants only: computed once in the life of the program."""
    places_ = opt_prop_def(TextsAttr, prop_name="places")
    """Where the results are: `arena 128`, `known`, `view`, `fresh`; in a plan for given shapes."""

    @property
    def operator(self) -> tuple[str, str, int]:
        """Domain, name and schema version."""
        domain, op_type = (cast(TextAttr, self.properties[key]) for key in ("domain", "op_type"))
        since = cast("IntegerAttr", self.properties["since"])
        return domain.data, op_type.data, since.value.data

    @property
    def kernel(self) -> str:
        """Grade and function of the kernel."""
        return cast(TextAttr, self.properties["kernel"]).data

    @property
    def given(self) -> Mapping[str, Attribute]:
        """The node's attributes."""
        return cast(DictionaryAttr, self.properties["given"]).data

    @property
    def arguments(self) -> tuple[SSAValue, ...]:
        """The operator's own inputs, absent ones included."""
        return tuple(self.operands[: len(self.operands) - self.capture_count])

    @property
    def captures(self) -> tuple[SSAValue, ...]:
        """What the bodies take from outside."""
        return tuple(self.operands[len(self.operands) - self.capture_count :])

    @property
    def capture_count(self) -> int:
        """The number of captures."""
        count = self.properties.get("captures")
        return count.value.data if isinstance(count, IntegerAttr) else 0

    @property
    def bodies(self) -> dict[str, Block]:
        """The bodies by the GRAPH attribute they stand for."""
        names = self.texts("bodies")
        return {name: region.block for name, region in zip(names, self.regions, strict=True)}

    @property
    def is_once(self) -> bool:
        """Whether it is computed once in the life of the program."""
        return "once" in self.properties

    @property
    def chain(self) -> int:
        """The number of the chain of element-wise calls that this one is a part of, or 0."""
        number = self.properties.get("chain")
        return number.value.data if isinstance(number, IntegerAttr) else 0

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of words among the properties; empty where it is absent."""
        value = self.properties.get(key)
        return value.data if isinstance(value, TextsAttr) else ()

    def positions(self, key: str) -> tuple[int, ...]:
        """A list of positions among the properties; empty where it is absent."""
        value = self.properties.get(key)
        if not isinstance(value, DenseArrayBase):
            return ()
        return tuple(int(position) for position in value.get_values())

    def verify_(self) -> None:
        """Check C1 to C3."""
        for key in ("frees", "shape_operands", "widens"):
            beyond = [p for p in self.positions(key) if not 0 <= p < len(self.operands)]
            if beyond:
                raise VerifyException(f"C1: {key} names operands {beyond} that it has not")
        if len(self.texts("bodies")) != len(self.regions):
            raise VerifyException(f"C2: {len(self.regions)} regions, {self.texts('bodies')}")
        if "places" in self.properties and len(self.texts("places")) != len(self.results):
            raise VerifyException(f"C3: {len(self.results)} results, {self.texts('places')}")
