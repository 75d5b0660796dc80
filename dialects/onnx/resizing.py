"""Operators that pad, crop, interpolate and place onto a given size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from xdsl.ir import SSAValue
from xdsl.irdl import traits_def
from xdsl.traits import Pure

from foldline.dialects.onnx.op import OnnxOp, Operand, RequiredOperand, onnx_op
from foldline.dialects.onnx.parameters import (
    Given,
    given_floats,
    given_ints,
    given_number,
    known_ints,
)

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Pads:
    """The border of a Pad, one entry for each listed axis; negative sizes crop."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    axes: tuple[int, ...]


def _unless_empty(found: Given[tuple[Item, ...]] | None) -> Given[tuple[Item, ...]] | None:
    return Given(None) if found is not None and found.value == () else found


@onnx_op("Pad", shape_operands=(1, 3))
class PadOp(OnnxOp):
    """Add a border. ONNX `Pad` (1, 2, 11, 13, 18, 19, 21, 23, 24, 25)."""

    data = RequiredOperand(0)
    pads = Operand(1)
    constant_value = Operand(2)
    axes = Operand(3)
    traits = traits_def(Pure())

    def pads_known(self) -> Pads | None:
        """Sizes of the border; None if they are not constant."""
        name = "paddings" if "paddings" in self.properties else "pads"
        pads, axes = known_ints(self, name, 1), given_ints(self, "axes", 3)
        if pads is None or axes is None:
            return None
        half = len(pads) // 2
        listed = tuple(range(half)) if axes.value is None else axes.value
        return Pads(pads[:half], pads[half:], listed)

    def fill_known(self) -> Given[int | float] | None:
        """The value of a constant border; None if it is not constant."""
        return given_number(self, "value", 2)


@onnx_op("CenterCropPad", shape_operands=(1,))
class CenterCropPadOp(OnnxOp):
    """Crop or pad around the centre. ONNX `CenterCropPad` (18)."""

    input = RequiredOperand(0)
    shape = RequiredOperand(1)
    traits = traits_def(Pure())


@onnx_op("Resize", shape_operands=(1, 2, 3))
class ResizeOp(OnnxOp):
    """Interpolate to another size. ONNX `Resize` (10, 11, 13, 18, 19)."""

    X = RequiredOperand(0)
    sizes = Operand(3)
    traits = traits_def(Pure())

    @property
    def roi(self) -> SSAValue | None:
        """The region of interest; absent below version 11."""
        return None if self.since < 11 else self.operand(1)

    @property
    def scales(self) -> SSAValue | None:
        """The scales: the second input in version 10, the third in later ones."""
        return self.operand(1 if self.since < 11 else 2)

    def scales_known(self) -> Given[tuple[float, ...]] | None:
        """Scales; None if not constant. Empty ones, which old exporters write, are left out."""
        return _unless_empty(given_floats(self, "scales", 1 if self.since < 11 else 2))

    def sizes_known(self) -> Given[tuple[int, ...]] | None:
        """Sizes; None if they are not constant. Empty ones are left out."""
        return _unless_empty(given_ints(self, "sizes", 3))


@onnx_op("Upsample", shape_operands=(1,))
class UpsampleOp(OnnxOp):
    """Interpolate to a larger size. ONNX `Upsample` (1, 7, 9, 10)."""

    X = RequiredOperand(0)
    scales = Operand(1)
    traits = traits_def(Pure())

    def scales_known(self) -> tuple[float, ...] | None:
        """Scale of every axis; None if they are not constant."""
        if self.since < 7:
            height, width = self.value_of("height_scale"), self.value_of("width_scale")
            if isinstance(height, float) and isinstance(width, float):
                return (1.0, 1.0, height, width)
            return None
        found = given_floats(self, "scales", 1)
        return None if found is None else found.value


@onnx_op("Col2Im", shape_operands=(1, 2))
class Col2ImOp(OnnxOp):
    """Sum columns back into an image. ONNX `Col2Im` (18)."""

    input = RequiredOperand(0)
    image_shape = RequiredOperand(1)
    block_shape = RequiredOperand(2)
    traits = traits_def(Pure())


@onnx_op("AffineGrid", shape_operands=(1,))
class AffineGridOp(OnnxOp):
    """Sampling positions of an affine map. ONNX `AffineGrid` (20)."""

    theta = RequiredOperand(0)
    size = RequiredOperand(1)
    traits = traits_def(Pure())


@onnx_op("MaxUnpool", shape_operands=(2,))
class MaxUnpoolOp(OnnxOp):
    """Inverse of MaxPool with indices. ONNX `MaxUnpool` (9, 11, 22)."""

    X = RequiredOperand(0)
    indices = RequiredOperand(1)
    output_shape = Operand(2)
    traits = traits_def(Pure())


OPERATORS = (
    PadOp,
    CenterCropPadOp,
    ResizeOp,
    UpsampleOp,
    Col2ImOp,
    AffineGridOp,
    MaxUnpoolOp,
)
