"""Operators with bodies. Bodies use outer values directly, so they are not isolated."""

from __future__ import annotations

from xdsl.ir import Block, SSAValue
from xdsl.irdl import traits_def
from xdsl.traits import RecursiveMemoryEffect

from foldline.dialects.onnx.attributes import ReferenceAttr
from foldline.dialects.onnx.op import BodyArity, OnnxOp, Operand, RequiredOperand, onnx_op
from foldline.dialects.onnx.traits import DataDependentShape


@onnx_op("If")
class IfOp(OnnxOp):
    """One of two bodies without inputs. ONNX `If` (1, 11, 13, 16, 19, 21, 23, 24, 25)."""

    condition = RequiredOperand(0)
    traits = traits_def(RecursiveMemoryEffect())

    @property
    def then_block(self) -> Block:
        """The body run where the condition holds."""
        return self.regions[self.region_names().index("then_branch")].block

    @property
    def else_block(self) -> Block:
        """The body run where it does not."""
        return self.regions[self.region_names().index("else_branch")].block

    def body_arity(self, name: str) -> BodyArity:
        """No inputs; the outputs of the If."""
        del name
        return BodyArity(0, len(self.results))


@onnx_op("Loop")
class LoopOp(OnnxOp):
    """A body repeated at most `trip_count` times while a condition holds.

    ONNX `Loop` (1, 11, 13, 16, 19, 21, 23, 24, 25).
    """

    trip_count = Operand(0)
    condition = Operand(1)
    traits = traits_def(RecursiveMemoryEffect(), DataDependentShape())

    @property
    def carried(self) -> tuple[SSAValue, ...]:
        """Initial values of what the body carries from turn to turn."""
        return tuple(self.operands[2:])

    def body_arity(self, name: str) -> BodyArity:
        """Iteration number, condition, carried values; condition, carried values, scan outputs."""
        del name
        return BodyArity(2 + len(self.carried), 1 + len(self.results))


@onnx_op("Scan")
class ScanOp(OnnxOp):
    """A body run over slices of its inputs. ONNX `Scan` (8, 9, 11, 16, 19, 21, 23, 24, 25)."""

    traits = traits_def(RecursiveMemoryEffect())

    def body_arity(self, name: str) -> BodyArity:
        """States and slices; version 8 has the sequence lengths before them."""
        del name
        lengths = 1 if self.since < 9 else 0
        return BodyArity(len(self.operands) - lengths, len(self.results))

    def misfit(self) -> str:
        """Inputs are states and what is scanned, outputs states and what is stacked."""
        if any(isinstance(given, ReferenceAttr) for given in self.properties.values()):
            return ""
        scanned, lengths = self.int_of("num_scan_inputs"), 1 if self.since < 9 else 0
        if scanned is None:
            return ""
        states = len(self.operands) - lengths - scanned
        if scanned < 1 or not 0 <= states <= len(self.results):
            return (
                f"num_scan_inputs is {scanned}, which does not fit {len(self.operands)} inputs and "
                f"{len(self.results)} outputs"
            )
        counts = {"input": scanned, "output": len(self.results) - states}
        for side, count in counts.items():
            for name in (f"scan_{side}_axes", f"scan_{side}_directions", "directions"):
                values = self.ints_of(name)
                if values and len(values) != (scanned if name == "directions" else count):
                    return f"{name} has {len(values)} entries for {count} scanned {side}s"
        return ""


@onnx_op("SequenceMap")
class SequenceMapOp(OnnxOp):
    """A body run over the elements of sequences. ONNX `SequenceMap` (17)."""

    sequence = RequiredOperand(0)
    traits = traits_def(RecursiveMemoryEffect())

    def body_arity(self, name: str) -> BodyArity:
        """One element of each input; one of each output."""
        del name
        return BodyArity(len(self.operands), len(self.results))


OPERATORS = (
    IfOp,
    LoopOp,
    ScanOp,
    SequenceMapOp,
)
