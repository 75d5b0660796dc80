"""The versioned builder: an operator in the form that the enclosing operator set wants.

A parameter (the axes of a Squeeze) is given once; whether it becomes an attribute, or a Constant
and an input, is the builder's business. It may be a plain value, an array or an SSA value; None
leaves it out. Every method gives the operations to insert, the operator last:

    ops = Builder.at(op).unsqueeze(op.data, axes=(0,))
    block.insert_ops_before(ops, op)
    op.results[0].replace_all_uses_with(ops[-1].results[0])

Raises RewriteError where the imported operator set cannot say what is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import Attribute, Operation, SSAValue

from foldline.dialects.onnx.attributes import Names
from foldline.dialects.onnx.form import Form, Types, constant
from foldline.dialects.onnx.indexing import SliceOp, TopKOp
from foldline.dialects.onnx.math import CastOp, ClipOp
from foldline.dialects.onnx.op import OnnxOp, opset_versions
from foldline.dialects.onnx.reduction import ReduceOp
from foldline.dialects.onnx.resizing import PadOp
from foldline.dialects.onnx.schema import signature
from foldline.dialects.onnx.shape import (
    ConcatOp,
    ExpandOp,
    IdentityOp,
    ReshapeOp,
    SplitOp,
    SqueezeOp,
    TileOp,
    TransposeOp,
    UnsqueezeOp,
)
from foldline.dialects.onnx.tensor import Array, TensorAttr
from foldline.dialects.onnx.types import UNKNOWN
from foldline.support.dtypes import ElementType
from foldline.support.errors import RewriteError

Ints: TypeAlias = "Sequence[int] | SSAValue"
"""A list of integers: constant, or computed by the model."""
Scalar: TypeAlias = "int | float | np.generic | Array | SSAValue"
Ops: TypeAlias = list[Operation]


@dataclass(frozen=True)
class Builder:
    """Creates operators for one place; `opsets` are the imported versions there."""

    opsets: Mapping[str, int]

    @classmethod
    def at(cls, op: Operation) -> Builder:
        """The builder for the graph or function that an operation stands in."""
        return cls(opset_versions(op))

    def operator(
        self,
        operator: type[OnnxOp],
        operands: Sequence[SSAValue | None],
        parameters: Mapping[str, Any],
        types: Types = (UNKNOWN,),
        names: Names | None = None,
    ) -> Ops:
        """Any operator: `operands` first, `parameters` wherever the version has them.

        Parameters bear the names of the newest version. `types`: one a result.
        """
        domain, op_type = operator.DOMAIN, operator.OP_TYPE
        version = self.opsets.get(domain)
        found = None if version is None else signature(domain, op_type, version)
        if found is None or found.is_deprecated:
            raise RewriteError(f"{op_type} is not in operator set {domain or 'ai.onnx'} {version}")
        form = Form(found, operands, self.opsets.get(""))
        for name, value in parameters.items():
            if value is not None:
                form.give(name, value)
        return form.finish(operator, types, names)

    def constant(self, array: Array, names: Names | None = None) -> Ops:
        """Constant; below version 9 of floats only."""
        return [constant(TensorAttr.of(array), self.opsets.get(""), names)]

    def identity(self, value: SSAValue, names: Names | None = None) -> Ops:
        """Identity."""
        return self.operator(IdentityOp, [value], {}, (value.type,), names)

    def cast(
        self,
        value: SSAValue,
        to: ElementType,
        type_: Attribute = UNKNOWN,
        names: Names | None = None,
        saturate: bool = True,
    ) -> Ops:
        """Cast to an element type."""
        parameters = {"to": to, "saturate": None if saturate else 0}
        return self.operator(CastOp, [value], parameters, (type_,), names)

    def transpose(
        self,
        value: SSAValue,
        permutation: Sequence[int],
        type_: Attribute = UNKNOWN,
        names: Names | None = None,
    ) -> Ops:
        """Transpose."""
        return self.operator(TransposeOp, [value], {"perm": permutation}, (type_,), names)

    def concat(
        self,
        values: Sequence[SSAValue],
        axis: int,
        type_: Attribute = UNKNOWN,
        names: Names | None = None,
    ) -> Ops:
        """Concat."""
        return self.operator(ConcatOp, values, {"axis": axis}, (type_,), names)

    def reshape(
        self,
        value: SSAValue,
        shape: Ints,
        type_: Attribute = UNKNOWN,
        names: Names | None = None,
        allow_zero: bool = False,
    ) -> Ops:
        """Reshape; `allow_zero`: a 0 in the shape is a size, not a copy of the input's."""
        parameters = {"shape": shape, "allowzero": 1 if allow_zero else None}
        return self.operator(ReshapeOp, [value], parameters, (type_,), names)

    def squeeze(
        self,
        value: SSAValue,
        axes: Ints | None,
        type_: Attribute = UNKNOWN,
        names: Names | None = None,
    ) -> Ops:
        """Squeeze; no axes: all of size 1."""
        return self.operator(SqueezeOp, [value], {"axes": axes}, (type_,), names)

    def unsqueeze(
        self, value: SSAValue, axes: Ints, type_: Attribute = UNKNOWN, names: Names | None = None
    ) -> Ops:
        """Unsqueeze."""
        return self.operator(UnsqueezeOp, [value], {"axes": axes}, (type_,), names)

    def expand(
        self, value: SSAValue, shape: Ints, type_: Attribute = UNKNOWN, names: Names | None = None
    ) -> Ops:
        """Expand."""
        return self.operator(ExpandOp, [value], {"shape": shape}, (type_,), names)

    def tile(
        self, value: SSAValue, repeats: Ints, type_: Attribute = UNKNOWN, names: Names | None = None
    ) -> Ops:
        """Tile (version 6 or later)."""
        return self.operator(TileOp, [value], {"repeats": repeats}, (type_,), names)

    def split(
        self,
        value: SSAValue,
        sizes: Sequence[int],
        axis: int,
        types: Types | None = None,
        names: Names | None = None,
    ) -> Ops:
        """Split into parts of given sizes."""
        parameters = {"split": sizes, "axis": axis}
        results = (UNKNOWN,) * len(sizes) if types is None else types
        return self.operator(SplitOp, [value], parameters, results, names)

    def slice(
        self,
        value: SSAValue,
        starts: Ints,
        ends: Ints,
        axes: Ints | None = None,
        steps: Ints | None = None,
        type_: Attribute = UNKNOWN,
        names: Names | None = None,
    ) -> Ops:
        """Slice; steps other than 1 need operator set 10."""
        parameters = {"starts": starts, "ends": ends, "axes": axes, "steps": steps}
        return self.operator(SliceOp, [value], parameters, (type_,), names)

    def pad(
        self,
        value: SSAValue,
        pads: Ints,
        fill: Scalar | None = None,
        mode: str | None = None,
        type_: Attribute = UNKNOWN,
        names: Names | None = None,
    ) -> Ops:
        """Pad all axes; `pads` are all begins, then all ends."""
        parameters = {"pads": pads, "constant_value": fill, "mode": mode}
        return self.operator(PadOp, [value], parameters, (type_,), names)

    def clip(
        self,
        value: SSAValue,
        minimum: Scalar | None = None,
        maximum: Scalar | None = None,
        type_: Attribute = UNKNOWN,
        names: Names | None = None,
    ) -> Ops:
        """Clip; a plain limit takes the element type of `value`."""
        parameters = {"min": minimum, "max": maximum}
        return self.operator(ClipOp, [value], parameters, (type_,), names)

    def reduce(
        self,
        operator: type[ReduceOp],
        value: SSAValue,
        axes: Ints | None,
        keepdims: bool = True,
        type_: Attribute = UNKNOWN,
        names: Names | None = None,
    ) -> Ops:
        """A reduction; no axes: all of them."""
        parameters = {"axes": axes, "keepdims": int(keepdims)}
        return self.operator(operator, [value], parameters, (type_,), names)

    def top_k(
        self,
        value: SSAValue,
        k: int | SSAValue,
        axis: int = -1,
        largest: bool = True,
        types: Types = (UNKNOWN, UNKNOWN),
        names: Names | None = None,
    ) -> Ops:
        """TopK: values and indices."""
        parameters = {"K": k, "axis": axis, "largest": None if largest else 0}
        return self.operator(TopKOp, [value], parameters, types, names)
