"""What a fused operator stands for, computed by the kernels of its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import helper
from onnx.helper import np_dtype_to_tensor_dtype

from foldline.exporter import export_model
from foldline.importer import import_model
from foldline.kernels.registry import GRADES
from foldline.lowering import lower
from foldline.session import Session

Array = npt.NDArray[Any]


def of_expansion(
    op_type: str, inputs: Sequence[Array], attributes: Mapping[str, Any], opset: int = 13
) -> Array:
    """The first result of the standard operators of a fused one, in a model of `opset`."""
    names = [f"i{n}" for n in range(len(inputs))]
    node = helper.make_node(op_type, names, ["y"], domain="foldline", **attributes)
    infos = [
        helper.make_tensor_value_info(name, np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in zip(names, inputs, strict=True)
    ]
    result = helper.make_tensor_value_info("y", infos[0].type.tensor_type.elem_type, None)
    graph = helper.make_graph([node], "g", infos, [result])
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("foldline", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    standard = export_model(import_model(model, []))
    assert all(not n.domain for n in standard.graph.node)
    session = Session(lower(import_model(standard, []), grades=GRADES["fast"]), 1)
    with np.errstate(all="ignore"):
        return session.run(None, dict(zip(names, inputs, strict=True)))[0]
