"""The onnx dialect: one class an operator of the installed onnx, and what stands around them."""

from __future__ import annotations

from xdsl.ir import Dialect

from foldline.dialects.onnx import (
    attributes,
    constant,
    control,
    generate,
    indexing,
    math,
    nn,
    quantisation,
    random,
    reduction,
    resizing,
    shape,
    signal,
    structure,
    tensor,
    terse,
    text,
    types,
)
from foldline.dialects.onnx.op import OnnxOp

OPERATORS: dict[tuple[str, str], type[OnnxOp]] = generate.complete(
    (
        *constant.OPERATORS,
        *control.OPERATORS,
        *indexing.OPERATORS,
        *math.OPERATORS,
        *nn.OPERATORS,
        *quantisation.OPERATORS,
        *random.OPERATORS,
        *reduction.OPERATORS,
        *resizing.OPERATORS,
        *shape.OPERATORS,
        *signal.OPERATORS,
    )
)
"""The class of each operator by domain and name."""

ONNX = Dialect(
    "onnx",
    [
        structure.NoneOp,
        structure.InitializerOp,
        structure.DefaultOp,
        structure.AnnotationOp,
        structure.ReturnOp,
        structure.GraphOp,
        structure.FunctionOp,
        structure.CustomOp,
        structure.CallOp,
        *OPERATORS.values(),
    ],
    [
        terse.FloatBitsAttr,
        text.TextAttr,
        text.TextsAttr,
        text.ResidualAttr,
        attributes.NamesAttr,
        text.MetadataAttr,
        attributes.OpsetsAttr,
        attributes.InterfaceAttr,
        attributes.ReferenceAttr,
        tensor.TensorAttr,
        tensor.SparseTensorAttr,
        types.DimsAttr,
        types.StringType,
        types.UnknownType,
        types.AbsentType,
        types.SequenceType,
        types.OptionalType,
        types.MapType,
        types.SparseTensorType,
    ],
)
